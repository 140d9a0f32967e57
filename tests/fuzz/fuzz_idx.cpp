// IDX images and labels, plain or gzip-packed.
#include <cmath>

#include "datasets/idx.h"
#include "tests/fuzz/fuzz.h"

namespace {
using ws::fuzz::require;

void read_images(std::string_view bytes) {
  ws::PackedReader reader("fuzz", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  const ws::data::IdxHeader header = ws::data::read_idx_header(reader);
  const std::vector<float> values = ws::data::read_idx_floats(reader, header, header.rows());
  require(static_cast<int64_t>(values.size()) == header.rows() * header.values_per_row(), "as many values as promised");
  for (float value : values) require(std::isfinite(value), "values are finite");
}

void read_labels(std::string_view bytes) {
  ws::PackedReader reader("fuzz", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  for (int32_t label : ws::data::read_idx_labels(reader, 10)) require(label >= 0 && label < 10, "labels are in range");
}

}  // namespace

FUZZ_TARGET(idx) {
  for (const auto read : {read_images, read_labels}) ws::fuzz::accepts([&] { read(bytes); });
}
