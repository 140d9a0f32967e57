// The IDX format of MNIST and its relatives: a magic number, big-endian sizes, then the values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/byte_reader.h"

namespace ws::data {

enum class IdxType : uint8_t { Uint8 = 8, Int8 = 9, Int16 = 0x0b, Int32 = 0x0c, Float32 = 0x0d, Float64 = 0x0e };

struct IdxArray {
  IdxType type = IdxType::Uint8;
  std::vector<uint32_t> sizes;  // outermost first: rows, height, width
  std::vector<uint8_t> values;  // big-endian, as in the file
  uint64_t values_offset = 0;   // where they start in the file

  int64_t rows() const { return sizes.at(0); }
  int64_t values_per_row() const;
  int64_t value_bytes() const;
};

// Reads a whole array and checks that the file holds exactly what its header says.
IdxArray read_idx(ByteReader& reader);

// Value `first`.. of the array as floats; 8-bit grey levels become 0..1.
void to_floats(const IdxArray& array, int64_t first, int64_t count, float* out);

// One label a row, each in 0..classes-1. `classes` 0: as many as the largest label says.
std::vector<int32_t> to_labels(const IdxArray& array, int64_t classes, const std::string& name);

}  // namespace ws::data
