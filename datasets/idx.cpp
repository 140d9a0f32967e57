#include "datasets/idx.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <future>

#include "profiling/base/text.h"

namespace ws::data {
namespace {

constexpr int kMostDimensions = 4;
constexpr int64_t kMostIdxClasses = 65536;
constexpr uint64_t kBlock = 1 << 20;  // bytes; a multiple of every value size

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

void read_magic(PackedReader& reader, IdxHeader& header) {
  uint8_t magic[4];
  reader.read_exact(magic, 4, "IDX magic number");
  header.type = static_cast<IdxType>(magic[2]);
  const int dimensions = magic[3];
  if (magic[0] || magic[1] || bytes_of(header.type) == 0 || dimensions < 1 || dimensions > kMostDimensions) {
    reader.fail(0, formatted("not an IDX file: its magic number is 0x{:08X}, expected for example 0x00000803",
                             big_endian(magic)));
  }
  header.sizes.resize(static_cast<size_t>(dimensions));
}

uint64_t read_sizes(PackedReader& reader, IdxHeader& header) {
  uint64_t total = static_cast<uint64_t>(header.value_bytes());
  for (uint32_t& size : header.sizes) {
    const uint64_t at = reader.offset();
    uint8_t raw[4];
    reader.read_exact(raw, 4, "a size");
    size = big_endian(raw);
    if (size == 0) reader.fail(at, "a size is zero, so the file holds no values");
    if (__builtin_mul_overflow(total, uint64_t{size}, &total)) reader.fail(at, "the sizes are impossibly large");
  }
  return total;
}

// Returns the big-endian value at `p`.
double value_at(IdxType type, const uint8_t* p) {
  switch (type) {
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

void to_floats(IdxType type, const uint8_t* p, int64_t count, float* out) {
  if (type == IdxType::Uint8) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(p[i]) * (1.0f / 255.0f);
    return;
  }
  const int64_t step = bytes_of(type);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(value_at(type, p + i * step));
}

// Appends a block's values to `out` through a buffer that stays in the cache, so that `out` is written only once.
void append_floats(const IdxHeader& header, const std::vector<uint8_t>& block, int64_t most, std::vector<float>& out) {
  std::array<float, 16384> buffer;
  const int64_t step = header.value_bytes();
  int64_t left = std::min(static_cast<int64_t>(block.size()) / step, most - static_cast<int64_t>(out.size()));
  for (const uint8_t* p = block.data(); left > 0;) {
    const int64_t count = std::min<int64_t>(left, buffer.size());
    to_floats(header.type, p, count, buffer.data());
    out.insert(out.end(), buffer.data(), buffer.data() + count);
    p += count * step;
    left -= count;
  }
}

// Throws Failure for infinities and NaN, which would silently spoil every weight.
void check_finite(const PackedReader& reader, const IdxHeader& header, const std::vector<float>& values) {
  if (header.type != IdxType::Float32 && header.type != IdxType::Float64) return;
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      reader.fail(header.values_offset + i * static_cast<size_t>(header.value_bytes()),
                  "a value is not a finite number");
}

void check_end(PackedReader& reader, uint64_t end) {
  if (!reader.at_end()) reader.fail(end, "there are more values than the header says");
}

uint64_t total_bytes(const IdxHeader& header) {
  return static_cast<uint64_t>(header.rows()) * static_cast<uint64_t>(header.values_per_row() * header.value_bytes());
}

}  // namespace

int64_t IdxHeader::value_bytes() const { return bytes_of(type); }

int64_t IdxHeader::values_per_row() const {
  int64_t count = 1;
  for (size_t d = 1; d < sizes.size(); ++d) count *= sizes[d];
  return count;
}

IdxHeader read_idx_header(PackedReader& reader) {
  IdxHeader header;
  read_magic(reader, header);
  const uint64_t total = read_sizes(reader, header);
  header.values_offset = reader.offset();
  if (total > reader.most_bytes_allowed())
    reader.fail(4, "the header promises " + std::to_string(total) + " bytes of values, more than such a file can hold");
  return header;
}

std::vector<float> read_idx_floats(PackedReader& reader, const IdxHeader& header, int64_t rows) {
  const uint64_t total = total_bytes(header);
  const int64_t wanted = std::min(rows, header.rows()) * header.values_per_row();
  const auto read_block = [&] {
    const uint64_t left = header.values_offset + total - reader.offset();
    return reader.read_count(std::min<uint64_t>(left, kBlock), "values");
  };
  check_memory(static_cast<double>(wanted) * sizeof(float), reader.name());
  std::vector<float> out;
  out.reserve(static_cast<size_t>(wanted));  // bounded by the size of the file, see read_idx_header()
  // The next block is decompressed while this one is converted.
  std::vector<uint8_t> block = read_block();
  while (!block.empty()) {
    std::future<std::vector<uint8_t>> next = std::async(std::launch::async, read_block);
    append_floats(header, block, wanted, out);
    block = next.get();
  }
  check_end(reader, header.values_offset + total);
  check_finite(reader, header, out);
  return out;
}

std::vector<int32_t> read_idx_labels(PackedReader& reader, int64_t classes) {
  const IdxHeader header = read_idx_header(reader);
  if (header.values_per_row() != 1)
    reader.fail(8, "holds " + std::to_string(header.values_per_row()) + " values a row, not one label");
  check_memory(static_cast<double>(header.rows()) * sizeof(int32_t), reader.name());
  const std::vector<uint8_t> values = reader.read_count(total_bytes(header), "labels");
  check_end(reader, header.values_offset + values.size());
  const int64_t bound = classes > 0 ? classes : kMostIdxClasses;
  std::vector<int32_t> labels(static_cast<size_t>(header.rows()));
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t at = i * static_cast<size_t>(header.value_bytes());
    const double label = value_at(header.type, values.data() + at);
    // The condition also rejects NaN.
    if (!(label >= 0 && label < static_cast<double>(bound)) || label != std::floor(label)) {
      reader.fail(
          header.values_offset + at,
          formatted("row {} has the label {:g}, expected a whole number from 0 to {}", i + 1, label, bound - 1));
    }
    labels[i] = static_cast<int32_t>(label);
  }
  return labels;
}

}  // namespace ws::data
