// The IDX format of MNIST and its relatives: a magic number, big-endian sizes, then the values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "profiling/base/packed_file.h"

namespace ws::data {

enum class IdxType : uint8_t { Uint8 = 8, Int8 = 9, Int16 = 0x0b, Int32 = 0x0c, Float32 = 0x0d, Float64 = 0x0e };

struct IdxHeader {
  IdxType type = IdxType::Uint8;
  std::vector<uint32_t> sizes;  // outermost first: rows, height, width
  uint64_t values_offset = 0;   // where the values start in the file

  int64_t rows() const { return sizes.at(0); }
  int64_t values_per_row() const;
  int64_t value_bytes() const;
};

// Throws unless the sizes are ones that a file of this length can hold.
IdxHeader read_idx_header(PackedReader& reader);

// The first `rows` rows as floats; 8-bit grey levels become 0..1. Reads and checks the file to its end all the same.
std::vector<float> read_idx_floats(PackedReader& reader, const IdxHeader& header, int64_t rows);

// One label a row, each in 0..classes-1. `classes` 0: any label that is not absurd.
std::vector<int32_t> read_idx_labels(PackedReader& reader, int64_t classes);

}  // namespace ws::data
