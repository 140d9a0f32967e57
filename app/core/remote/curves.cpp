#include "app/core/remote/curves.h"

#include <algorithm>
#include <utility>

#include "app/core/remote/update_codec.h"
#include "profiling/base/byte_reader.h"

namespace ws::app {
namespace {

constexpr uint64_t kKept = 16u << 20;       // bytes; about three million steps
constexpr size_t kMostBefore = 1 << 14;     // more than the width of a screen

// Keeps the lowest and the highest loss of each group, in order.
void thin(std::vector<StepResult>& steps, size_t most) {
  if (steps.size() <= most || most < 4) return;
  const size_t group = (2 * steps.size() + most - 1) / (most - 2);
  size_t kept = 1;  // the first step shows how the network was initialised
  for (size_t at = 1; at + 1 < steps.size(); at += group) {
    const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = steps.begin() + static_cast<std::ptrdiff_t>(std::min(at + group, steps.size() - 1));
    const auto [low, high] = std::minmax_element(begin, end, [](const auto& a, const auto& b) { return a.loss < b.loss; });
    const StepResult first = *std::min(low, high), second = *std::max(low, high);
    steps[kept++] = first;
    if (low != high) steps[kept++] = second;
  }
  steps[kept++] = steps.back();
  steps.resize(kept);
}

void thin(std::vector<EpochResult>& epochs, size_t most) {
  if (epochs.size() <= most || most < 2) return;
  const size_t group = epochs.size() / (most - 1) + 1;
  size_t kept = 0;
  for (size_t at = 0; at + 1 < epochs.size(); at += group) epochs[kept++] = epochs[at];
  epochs[kept++] = epochs.back();
  epochs.resize(kept);
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

StepResult step_of(const prof::Metric& m) { return {m.step, static_cast<float>(m.loss), static_cast<float>(m.accuracy), m.wall_s}; }

EpochResult test_of(const prof::Evaluation& e) {
  return {.step = e.step, .wall_s = e.wall_s, .test = Evaluation{e.test_loss, e.test_accuracy, 0}};
}

void thin(Curves& curves, size_t most) {
  thin(curves.steps, most);
  thin(curves.epochs, most);
}

CurveJournal::CurveJournal(const JobFolder& job) : job_(job), pieces_(job.path(), kCurvePieces, kKept) {}

void CurveJournal::keep(Curves& to, const Curves& from) {
  append(to.steps, from.steps);
  append(to.epochs, from.epochs);
  if (to.steps.size() > 2 * kMostBefore || to.epochs.size() > 2 * kMostBefore) thin(to, kMostBefore);
}

void CurveJournal::add(Curves curves) {
  // Epochs without a test only show progress. Of those in one update, the last is enough.
  std::erase_if(curves.epochs, [&](const EpochResult& e) { return !e.test && &e != &curves.epochs.back(); });
  if (pieces_.add(UpdateWriter::curves(curves))) forget();
  keep(recent_, curves);
}

void CurveJournal::forget() {
  keep(before_, std::exchange(recent_, {}));
  if (pieces_.oldest() <= stands_for_) return;
  stands_for_ = pieces_.newest();
  ByteWriter to;
  to.value(stands_for_);
  to.raw(UpdateWriter::curves(before_));
  say_now(job_, kHistory, to.bytes());
}

std::pair<uint64_t, std::string> read_history(const std::string& bytes) {
  ByteReader from(bytes, "The history");
  const auto until = from.value<uint64_t>("an offset");
  return {until, std::string(from.raw(from.left(), "frames"))};
}

}  // namespace ws::app
