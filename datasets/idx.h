// Reads the IDX format of MNIST and similar sets: a magic number, big-endian sizes, then the values.
#pragma once
#include <cstdint>
#include <vector>

#include "profiling/base/packed_file.h"

namespace ws::data {

enum class IdxType : uint8_t { Uint8 = 8, Int8 = 9, Int16 = 0x0b, Int32 = 0x0c, Float32 = 0x0d, Float64 = 0x0e };

struct IdxHeader {
  IdxType type = IdxType::Uint8;
  std::vector<uint32_t> sizes;  // outermost first: rows, height, width
  uint64_t values_offset = 0;   // byte offset of the first value in the file

  int64_t rows() const { return sizes.at(0); }
  int64_t values_per_row() const;
  int64_t value_bytes() const;
};

// Throws Failure if a file of this length cannot hold the sizes in its header.
IdxHeader read_idx_header(PackedReader& reader);

// Returns the first `rows` rows as floats; 8-bit grey levels become 0..1. Still reads and checks the whole file.
std::vector<float> read_idx_floats(PackedReader& reader, const IdxHeader& header, int64_t rows);

// Returns one label per row. Each label is in 0..classes-1; with `classes` 0, in 0..65535.
std::vector<int32_t> read_idx_labels(PackedReader& reader, int64_t classes);

}  // namespace ws::data
