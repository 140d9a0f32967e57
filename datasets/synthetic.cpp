#include "datasets/synthetic.h"

#include <algorithm>
#include <cmath>

#include "profiling/base/in_parallel.h"
#include "profiling/base/failure.h"
#include "profiling/base/packed_file.h"

namespace ws::data {
namespace {

constexpr int64_t kPointsPerThread = 200'000;
constexpr int64_t kMostClasses = 1000;

// A labelled point in the plane.
struct PlanePoint {
  float x, y;
  int32_t label;
};

void check(const DataSpec& spec, double bytes_per_point) {
  if (spec.points < 2) throw Failure("The data set " + spec.name + " needs at least 2 points");
  if (!(spec.noise >= 0) || !std::isfinite(spec.noise)) throw Failure("The noise must be a number of at least 0");
  check_memory(static_cast<double>(spec.points) * bytes_per_point, "The data set " + spec.name);
}

int64_t test_rows(const DataSpec& spec) {
  if (spec.validation <= 0) return 0;
  return std::clamp<int64_t>(std::llround(spec.validation * static_cast<double>(spec.points)), 1, spec.points - 1);
}

Dataset plane_set(int64_t classes) {
  Dataset set;
  set.features = 2;
  set.outputs = classes;
  set.feature_names = {"x", "y"};
  for (int64_t c = 0; c < classes; ++c) set.class_names.push_back(std::to_string(c));
  return set;
}

template <class Make>
Split plane_split(int64_t first, int64_t rows, const Make& make) {
  Split split;
  split.rows = rows;
  split.x.resize(static_cast<size_t>(2 * rows));
  split.labels.resize(static_cast<size_t>(rows));
  in_parallel(rows, kPointsPerThread, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const PlanePoint point = make(first + i);
      split.x[static_cast<size_t>(2 * i)] = point.x;
      split.x[static_cast<size_t>(2 * i + 1)] = point.y;
      split.labels[static_cast<size_t>(i)] = point.label;
    }
  });
  return split;
}

// Classes alternate, so the last points have the same class mix as the first and can serve as the test part.
template <class Make>
Dataset make_plane_set(const DataSpec& spec, int64_t classes, const Make& make) {
  check(spec, 2 * sizeof(float) + sizeof(int32_t));
  if (classes < 2 || classes > kMostClasses)
    throw Failure("The data set " + spec.name + " needs between 2 and " + std::to_string(kMostClasses) + " classes");
  Dataset set = plane_set(classes);
  const int64_t held_out = test_rows(spec);
  set.train = plane_split(0, spec.points - held_out, make);
  set.test = plane_split(spec.points - held_out, held_out, make);
  return set;
}

// Two uniform numbers for the place of a point, and two normal ones for its noise.
struct Draw {
  float u, v;
  NormalPair noise;
};

Draw draw(const DataSpec& spec, int64_t i) {
  const PhiloxWords place = philox_at(spec.seed, kPointStream, static_cast<uint64_t>(2 * i));
  const PhiloxWords blur = philox_at(spec.seed, kPointStream, static_cast<uint64_t>(2 * i + 1));
  const float scale = static_cast<float>(spec.noise);
  const NormalPair normal = standard_normal(blur.w[0], blur.w[1]);
  return {unit_uniform(place.w[0]), unit_uniform(place.w[1]), {scale * normal.first, scale * normal.second}};
}

PlanePoint on_circle(float turn, float radius, const Draw& d, int64_t label) {
  const NormalPair direction = exact::cos_sin_turn(turn - std::floor(turn));
  return {radius * direction.first + d.noise.first, radius * direction.second + d.noise.second,
          static_cast<int32_t>(label)};
}

Split line_split(const DataSpec& spec, int64_t first, int64_t rows) {
  Split split;
  split.rows = rows;
  split.x.resize(static_cast<size_t>(rows));
  split.targets.resize(static_cast<size_t>(rows));
  const float slope = static_cast<float>(spec.slope), intercept = static_cast<float>(spec.intercept);
  const float noise = static_cast<float>(spec.noise);
  in_parallel(rows, kPointsPerThread, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const LinePoint point = line_point(spec.seed, static_cast<uint64_t>(first + i), slope, intercept, noise);
      split.x[static_cast<size_t>(i)] = point.x;
      split.targets[static_cast<size_t>(i)] = point.y;
    }
  });
  return split;
}

}  // namespace

Dataset make_line(const DataSpec& spec) {
  check(spec, 2 * sizeof(float));
  if (!std::isfinite(spec.slope) || !std::isfinite(spec.intercept))
    throw Failure("The slope and the intercept of the line must be numbers");
  Dataset set;
  set.task = Task::Regression;
  set.features = set.outputs = 1;
  set.feature_names = {"x"};
  const int64_t held_out = test_rows(spec);
  set.train = line_split(spec, 0, spec.points - held_out);
  set.test = line_split(spec, spec.points - held_out, held_out);
  return set;
}

Dataset make_blobs(const DataSpec& spec) {
  return make_plane_set(spec, spec.classes, [&](int64_t i) {
    const int64_t label = i % spec.classes;
    const float turn = static_cast<float>(label) / static_cast<float>(spec.classes);
    return on_circle(turn, 1.0f, draw(spec, i), label);
  });
}

Dataset make_spirals(const DataSpec& spec) {
  return make_plane_set(spec, spec.classes, [&](int64_t i) {
    const int64_t label = i % spec.classes;
    const Draw d = draw(spec, i);
    const float arm = static_cast<float>(label) / static_cast<float>(spec.classes);
    return on_circle(arm + 1.5f * d.u, 0.1f + 0.9f * d.u, d, label);
  });
}

Dataset make_circles(const DataSpec& spec) {
  return make_plane_set(spec, 2, [&](int64_t i) {
    const Draw d = draw(spec, i);
    return on_circle(d.u, i % 2 == 0 ? 1.0f : 0.5f, d, i % 2);
  });
}

Dataset make_xor(const DataSpec& spec) {
  return make_plane_set(spec, 2, [&](int64_t i) {
    const Draw d = draw(spec, i);
    const float right = i & 2 ? 1.0f : -1.0f;
    const float up = (i & 1) ? -right : right;
    return PlanePoint{right * d.u + d.noise.first, up * d.v + d.noise.second, static_cast<int32_t>(i % 2)};
  });
}

}  // namespace ws::data
