#include "datasets/idx.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "profiling/failure.h"

namespace ws::data {
namespace {

constexpr int kMostDimensions = 4;
constexpr int64_t kMostClasses = 65536;

uint32_t big_endian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

int64_t bytes_of(IdxType type) {
  switch (type) {
    case IdxType::Uint8:
    case IdxType::Int8:
      return 1;
    case IdxType::Int16:
      return 2;
    case IdxType::Int32:
    case IdxType::Float32:
      return 4;
    case IdxType::Float64:
      return 8;
  }
  return 0;
}

void read_magic(ByteReader& reader, IdxArray& array) {
  uint8_t magic[4];
  reader.read_exact(magic, 4, "IDX magic number");
  array.type = static_cast<IdxType>(magic[2]);
  const int dimensions = magic[3];
  if (magic[0] || magic[1] || bytes_of(array.type) == 0 || dimensions < 1 || dimensions > kMostDimensions) {
    char seen[16];
    std::snprintf(seen, sizeof seen, "0x%08X", big_endian(magic));
    reader.fail(0, std::string("not an IDX file: its magic number is ") + seen + ", expected for example 0x00000803");
  }
  array.sizes.resize(static_cast<size_t>(dimensions));
}

uint64_t read_sizes(ByteReader& reader, IdxArray& array) {
  uint64_t total = static_cast<uint64_t>(array.value_bytes());
  for (uint32_t& size : array.sizes) {
    const uint64_t at = reader.offset();
    uint8_t raw[4];
    reader.read_exact(raw, 4, "a size");
    size = big_endian(raw);
    if (size == 0) reader.fail(at, "a size is zero, so the file holds no values");
    if (__builtin_mul_overflow(total, uint64_t{size}, &total)) reader.fail(at, "the sizes are impossibly large");
  }
  return total;
}

// Value `i` of the array; the switch is outside of the hot path, which is 8-bit.
double value_at(const IdxArray& array, int64_t i) {
  const uint8_t* p = array.values.data() + i * array.value_bytes();
  switch (array.type) {
    case IdxType::Uint8:
      return *p;
    case IdxType::Int8:
      return static_cast<int8_t>(*p);
    case IdxType::Int16:
      return static_cast<int16_t>(p[0] << 8 | p[1]);
    case IdxType::Int32:
      return static_cast<int32_t>(big_endian(p));
    case IdxType::Float32:
      return std::bit_cast<float>(big_endian(p));
    case IdxType::Float64:
      return std::bit_cast<double>(uint64_t{big_endian(p)} << 32 | big_endian(p + 4));
  }
  return 0;
}

std::string place(const IdxArray& array, int64_t i, const std::string& name) {
  const uint64_t at = array.values_offset + static_cast<uint64_t>(i * array.value_bytes());
  return name + ": at byte " + std::to_string(at) + ": ";
}

}  // namespace

int64_t IdxArray::value_bytes() const { return bytes_of(type); }

int64_t IdxArray::values_per_row() const {
  int64_t count = 1;
  for (size_t d = 1; d < sizes.size(); ++d) count *= sizes[d];
  return count;
}

IdxArray read_idx(ByteReader& reader) {
  IdxArray array;
  read_magic(reader, array);
  const uint64_t total = read_sizes(reader, array);
  array.values_offset = reader.offset();
  if (total > reader.most_bytes_possible())
    reader.fail(4, "the header promises " + std::to_string(total) + " bytes of values, more than this file can hold");
  array.values = reader.read_count(total, "values");
  if (!reader.at_end()) reader.fail(array.values_offset + total, "there are more values than the header says");
  return array;
}

void to_floats(const IdxArray& array, int64_t first, int64_t count, float* out) {
  if (array.type == IdxType::Uint8) {
    const uint8_t* values = array.values.data() + first;
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(values[i]) * (1.0f / 255.0f);
    return;
  }
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(value_at(array, first + i));
}

std::vector<int32_t> to_labels(const IdxArray& array, int64_t classes, const std::string& name) {
  if (array.values_per_row() != 1)
    throw Failure(name + ": at byte 8: holds " + std::to_string(array.values_per_row()) +
                  " values a row, not one label");
  const int64_t bound = classes > 0 ? classes : kMostClasses;
  std::vector<int32_t> labels(static_cast<size_t>(array.rows()));
  for (int64_t i = 0; i < array.rows(); ++i) {
    const double label = value_at(array, i);
    // Written so that NaN fails too.
    if (!(label >= 0 && label < static_cast<double>(bound)) || label != std::floor(label)) {
      char seen[32];
      std::snprintf(seen, sizeof seen, "%g", label);
      throw Failure(place(array, i, name) + "row " + std::to_string(i + 1) + " has the label " + seen +
                    ", expected a whole number from 0 to " + std::to_string(bound - 1));
    }
    labels[static_cast<size_t>(i)] = static_cast<int32_t>(label);
  }
  return labels;
}

}  // namespace ws::data
