#include "profiling/analysis/why_left_out.h"

#include <algorithm>
#include <vector>

#include "profiling/base/text.h"

namespace ws::prof {
namespace {

// The steps of a run that its tables do not count.
struct LeftOut {
  int64_t all, first, last, in_longer, others;
};
LeftOut left_out_of(const StepSample& sample) {
  const int64_t all = sample.marked - sample.parts.steps, first = std::min(sample.warm_up, all);
  const int64_t last = std::min(sample.last, all - first), in_longer = std::min(sample.longer_launch_steps, all - first - last);
  return {all, first, last, in_longer, all - first - last - in_longer};
}

}  // namespace

std::string left_out_steps(const StepSample& sample) {
  const auto [all, first, last, in_longer, others] = left_out_of(sample);
  std::vector<std::string> parts;
  const auto named = [](const char* what, int64_t count) { return what + (count == 1 ? std::string() : " " + count_text(static_cast<double>(count))); };
  if (first > 0) parts.push_back(named("the first", first));
  if (last > 0) parts.push_back(named("the last", last));
  if (in_longer > 0) parts.push_back(count_text(static_cast<double>(in_longer)) + " in longer launches");
  if (others > 0) parts.push_back(count_text(static_cast<double>(others)) + (others == 1 ? " other" : " others"));
  return all <= 0 ? "" : "; " + joined_names(parts) + (all == 1 ? " is left out" : " are left out");
}

std::string why_left_out(const StepSample& sample) {
  const auto [all, first, last, in_longer, others] = left_out_of(sample);
  std::vector<std::string> parts;
  const auto named = [](const char* place, int64_t count) { return place + (count == 1 ? " step" : " " + count_text(static_cast<double>(count)) + " steps"); };
  if (first > 0) parts.push_back(named("the first", first) + " (warm-up)");
  if (last > 0) parts.push_back(named("the last", last) + " (no next step marks the end)");
  if (in_longer > 0) parts.push_back(count_text(static_cast<double>(in_longer)) + " in longer launches (no time stamps inside)");
  if (others > 0) parts.push_back(count_text(static_cast<double>(others)) + (others == 1 ? " other" : " others") + " (pauses, tests, parts without a trace)");
  return all <= 0 ? "" : "Left out: " + joined_names(parts) + ".";
}

}  // namespace ws::prof
