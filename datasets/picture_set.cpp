#include "datasets/picture_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "profiling/base/in_parallel.h"
#include "datasets/split.h"
#include "profiling/base/failure.h"
#include "profiling/base/packed_file.h"
#include "profiling/base/philox.h"

namespace ws::data {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kSide = 32, kPixels = kSide * kSide, kChannels = 3, kValues = kPixels * kChannels;
constexpr int64_t kRecord = 1 + kValues, kFileRows = 10000, kFiles = 5, kCifarClasses = 10;

Dataset picture_set(std::vector<std::string> classes) {
  Dataset set;
  set.image_width = set.image_height = kSide;
  set.image_channels = kChannels;
  set.features = kValues;
  set.outputs = static_cast<int64_t>(classes.size());
  set.class_names = std::move(classes);
  return set;
}

// A record holds the label, then the red, the green and the blue plane.
void append_record(const uint8_t* record, Split& split) {
  split.labels.push_back(record[0]);
  const size_t first = split.x.size();
  split.x.resize(first + kValues);
  for (int64_t c = 0; c < kChannels; ++c)
    for (int64_t p = 0; p < kPixels; ++p)
      split.x[first + static_cast<size_t>(p * kChannels + c)] = static_cast<float>(record[1 + c * kPixels + p]) / 255.0f;
  ++split.rows;
}

// Reads at most `most` records of a file.
void read_records(const std::string& path, int64_t most, Split& split) {
  PackedReader reader(path);
  std::array<uint8_t, kRecord> record;
  for (int64_t row = 0; row < most; ++row) {
    const uint64_t at = reader.offset();
    const size_t got = reader.read_some(record.data(), record.size());
    if (got == 0) break;
    if (got < record.size()) reader.fail(at, "a picture is cut short: the file is not whole");
    if (record[0] >= kCifarClasses)
      reader.fail(at, "the label is " + std::to_string(record[0]) + "; CIFAR-10 has the classes 0 to 9");
    append_record(record.data(), split);
  }
  if (split.rows == 0) reader.fail(0, "holds no picture");
}

// The folder itself, or the one in it that CIFAR-10's archive makes.
fs::path cifar_folder(const std::string& path) {
  std::error_code none;
  const fs::path inside = fs::path(path) / "cifar-10-batches-bin";
  return fs::exists(inside / "data_batch_1.bin", none) ? inside : fs::path(path);
}

}  // namespace

Dataset load_cifar10(const DataSpec& spec) {
  const fs::path folder = cifar_folder(spec.path);
  std::error_code none;
  if (!fs::exists(folder / "data_batch_1.bin", none))
    throw Failure(folder.string() + ": holds no data_batch_1.bin; name the folder of CIFAR-10's binary version");
  check_memory(static_cast<double>(kFiles + 1) * kFileRows * kValues * sizeof(float), folder.string());
  Dataset set =
      picture_set({"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"});
  for (int64_t i = 1; i <= kFiles; ++i) {
    const fs::path file = folder / ("data_batch_" + std::to_string(i) + ".bin");
    const int64_t left = spec.limit > 0 ? spec.limit - set.train.rows : kFileRows;
    if (left > 0 && fs::exists(file, none)) read_records(file.string(), left, set.train);
  }
  if (fs::exists(folder / "test_batch.bin", none)) read_records((folder / "test_batch.bin").string(), kFileRows, set.test);
  if (set.test.rows == 0) hold_out(set, spec.validation, spec.seed);
  return set;
}

namespace {

constexpr uint64_t kShapeStream = 0x73686170;

// A shape in a picture: its kind, middle, size and colours.
struct Shape {
  int64_t kind = 0;
  float x = 0, y = 0, size = 0;
  std::array<float, 3> colour{}, ground{};
};

Shape shape_at(uint64_t seed, uint64_t i) {
  const PhiloxWords where = philox_at(seed, kShapeStream, 3 * i), colour = philox_at(seed, kShapeStream, 3 * i + 1),
                    ground = philox_at(seed, kShapeStream, 3 * i + 2);
  Shape s;
  s.kind = static_cast<int64_t>(i % kShapesClasses);
  s.size = 5 + 6 * unit_uniform(where.w[0]);
  s.x = s.size + (kSide - 2 * s.size) * unit_uniform(where.w[1]);
  s.y = s.size + (kSide - 2 * s.size) * unit_uniform(where.w[2]);
  for (size_t c = 0; c < 3; ++c) {
    s.ground[c] = 0.5f * unit_uniform(ground.w[c]);
    s.colour[c] = s.ground[c] + 0.25f + 0.25f * unit_uniform(colour.w[c]);
  }
  return s;
}

// True if the shape covers the point that is (u, v) away from its middle, in units of its size.
bool covers(int64_t kind, float u, float v) {
  const float across = std::max(std::abs(u), std::abs(v)), radius = std::hypot(u, v);
  const auto striped = [](float at) { return static_cast<int>(std::floor((at + 1) * 2.5f)) % 2 == 0; };
  switch (kind) {
    case 0:  // disc
      return radius < 1;
    case 1:  // ring
      return radius < 1 && radius > 0.55f;
    case 2:  // square
      return across < 0.9f;
    case 3:  // frame
      return across < 0.9f && across > 0.5f;
    case 4:  // cross
      return across < 1 && std::min(std::abs(u), std::abs(v)) < 0.3f;
    case 5:  // diagonal cross
      return across < 0.9f && std::abs(std::abs(u) - std::abs(v)) < 0.35f;
    case 6:  // triangle
      return v > -0.9f && v < 0.9f && std::abs(u) < (v + 0.9f) / 1.8f;
    case 7:  // stripes across
      return across < 0.95f && striped(v);
    case 8:  // stripes upright
      return across < 0.95f && striped(u);
    default:  // checkers
      return across < 0.95f && striped(u) == striped(v);
  }
}

void draw(const DataSpec& spec, uint64_t i, float* picture) {
  const Shape s = shape_at(spec.seed, i);
  const uint64_t stream = kShapeStream + 1;
  for (int64_t p = 0; p < kPixels; ++p) {
    const float u = (static_cast<float>(p % kSide) + 0.5f - s.x) / s.size, v = (static_cast<float>(p / kSide) + 0.5f - s.y) / s.size;
    const std::array<float, 3>& colour = covers(s.kind, u, v) ? s.colour : s.ground;
    for (int64_t c = 0; c < kChannels; ++c) {
      const auto value = static_cast<uint64_t>(p * kChannels + c);
      const float noise = static_cast<float>(spec.noise) * normal_at(spec.seed, stream, i * kValues + value);
      picture[value] = std::clamp(colour[static_cast<size_t>(c)] + noise, 0.0f, 1.0f);
    }
  }
}

Split drawn(const DataSpec& spec, int64_t first, int64_t rows) {
  Split split;
  split.rows = rows;
  split.x.resize(static_cast<size_t>(rows * kValues));
  split.labels.resize(static_cast<size_t>(rows));
  in_parallel(rows, 256, [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      split.labels[static_cast<size_t>(r)] = static_cast<int32_t>((first + r) % kShapesClasses);
      draw(spec, static_cast<uint64_t>(first + r), split.x.data() + r * kValues);
    }
  });
  return split;
}

}  // namespace

Dataset make_shapes(const DataSpec& spec) {
  if (spec.points < 2) throw Failure("The data set shapes needs at least 2 points");
  check_memory(static_cast<double>(spec.points) * kValues * sizeof(float), "The data set shapes");
  Dataset set = picture_set({"disc", "ring", "square", "frame", "cross", "diagonals", "triangle", "stripes across",
                             "stripes upright", "checkers"});
  const int64_t test = std::clamp<int64_t>(std::llround(spec.validation * static_cast<double>(spec.points)), 0, spec.points - 1);
  set.train = drawn(spec, 0, spec.points - test);
  set.test = drawn(spec, spec.points - test, test);
  return set;
}

}  // namespace ws::data
