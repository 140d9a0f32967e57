#include "profiling/analysis/step_pattern.h"
#include "profiling/base/statistics.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace ws::prof {

namespace {

constexpr size_t kWindow = 50'000;  // number of kernels searched for the period
constexpr size_t kAnchors = 16;     // number of names tried
constexpr size_t kCandidates = 48;  // distances tried per name: an anchor may occur several times per step
constexpr size_t kMostOfStep = 3;   // multiple of the usual number of kernels
// share of a step that must match: an occasional logging kernel does not break a pattern
constexpr double kSame = 0.95;
constexpr double kWhole = 0.8;   // minimum share of all kernels in the loop
constexpr double kMostly = 0.5;  // minimum share of the window that repeats: evaluations may interrupt it

double matching(std::span<const uint32_t> names, size_t period) {
  size_t same = 0;
  for (size_t i = 0; i + period < names.size(); ++i) same += names[i] == names[i + period];
  return static_cast<double>(same) / static_cast<double>(names.size() - period);
}

using Positions = std::vector<size_t>;

// Positions of the rarest names that occur at least three times: most likely they occur once per step.
std::vector<Positions> anchors(std::span<const uint32_t> names) {
  std::unordered_map<uint32_t, Positions> by_name;
  for (size_t i = 0; i < names.size(); ++i) by_name[names[i]].push_back(i);
  std::vector<Positions> found;
  for (auto& [name, positions] : by_name) {
    if (positions.size() >= 3) found.push_back(std::move(positions));
  }
  std::ranges::sort(found, [](const Positions& a, const Positions& b) {
    return a.size() != b.size() ? a.size() < b.size() : a[0] < b[0];
  });
  if (found.size() > kAnchors) found.resize(kAnchors);
  return found;
}

std::set<size_t> candidates(std::span<const uint32_t> names) {
  std::set<size_t> periods;
  for (const Positions& at : anchors(names)) {
    const size_t middle = at.size() / 2;
    for (size_t j = middle + 1; j < std::min(at.size(), middle + 1 + kCandidates); ++j) {
      if (const size_t period = at[j] - at[middle]; 2 * period <= names.size()) periods.insert(period);
    }
  }
  return periods;
}

// Returns the offset in the period where a step begins, starting at `first`: after the gap with the longest median over
// many periods.
size_t find_phase(std::span<const SeenKernel> kernels, size_t first, size_t period, size_t offsets) {
  const size_t periods = std::min<size_t>((kernels.size() - first) / period, 50);
  size_t best = 0;
  TimeNs longest = -1;
  for (size_t offset = 0; offset < offsets; ++offset) {
    std::vector<TimeNs> gaps;
    for (size_t p = 0; p < periods; ++p) {
      const size_t i = first + p * period + offset;
      if (i > 0) gaps.push_back(kernels[i].start - kernels[i - 1].end);
    }
    if (gaps.empty()) continue;
    if (const TimeNs gap = middle_value(gaps); gap > longest) longest = gap, best = offset;
  }
  return first + best;
}

// True if the kernels begin like the usual step.
bool repeats(std::span<const SeenKernel> kernels, std::span<const SeenKernel> usual) {
  if (kernels[0].name != usual[0].name) return false;
  size_t same = 0;
  for (size_t i = 0; i < usual.size(); ++i) same += kernels[i].name == usual[i].name;
  return static_cast<double>(same) >= kSame * static_cast<double>(usual.size());
}

// Returns the longest stretch that repeats without a mismatch.
std::pair<size_t, size_t> longest_repetition(std::span<const SeenKernel> kernels, size_t period) {
  std::pair<size_t, size_t> best{0, 0};
  size_t begin = 0;
  for (size_t i = 0; i + period < kernels.size(); ++i) {
    if (kernels[i].name != kernels[i + period].name) {
      begin = i + 1;
    } else if (i + 1 + period - begin > best.second - best.first) {
      best = {begin, i + 1 + period};
    }
  }
  return best;
}

// Returns the first place, from the middle on, where two consecutive periods match.
size_t first_repetition(std::span<const SeenKernel> kernels, size_t period) {
  for (size_t i = kernels.size() / 2; i + 3 * period <= kernels.size(); ++i) {
    if (repeats(kernels.subspan(i + period), kernels.subspan(i, period))) return i;
  }
  return kernels.size() / 2;
}

// A loop that only repeats begins and ends with a step, so whole steps fit into it. Otherwise only the gaps decide.
size_t find_pattern(std::span<const SeenKernel> kernels, size_t period) {
  const auto [begin, end] = longest_repetition(kernels, period);
  if (static_cast<double>(end - begin) < kWhole * static_cast<double>(kernels.size()))
    return find_phase(kernels, first_repetition(kernels, period), period, period);
  return find_phase(kernels, begin, period, (end - begin) % period + 1);
}

struct Range {
  size_t begin, end;
};

// Adds steps that contain every kernel of the usual step, in order, with others between them: the first step, which
// prepares the optimizer, or one that prints. Searches from the end of the range.
void add_irregular(std::vector<Range>& found, std::span<const SeenKernel> kernels, Range range,
                   std::span<const SeenKernel> usual) {
  std::vector<Range> backwards;
  size_t end = range.end, left = usual.size();
  for (size_t i = range.end; i > range.begin; --i) {
    if (kernels[i - 1].name != usual[left - 1].name) continue;
    if (left == usual.size()) end = i;
    if (--left > 0) continue;
    if (end - (i - 1) <= kMostOfStep * usual.size()) backwards.push_back({i - 1, end});
    left = usual.size();
  }
  found.insert(found.end(), backwards.rbegin(), backwards.rend());
}

// A step lasts until the next one begins, or until its last kernel ends if it is the last.
std::vector<FoundStep> timed(const std::vector<Range>& ranges, std::span<const SeenKernel> kernels) {
  std::vector<FoundStep> steps;
  for (const Range& range : ranges) {
    const bool last = range.end == kernels.size();
    steps.push_back({kernels[range.begin].start, last ? kernels[range.end - 1].end : kernels[range.end].start});
  }
  return steps;
}

size_t period_of(std::span<const uint32_t> names) {
  size_t best = 0;
  double share = kMostly;
  // Ascending order: a multiple must be clearly better than its divisor.
  for (size_t period : candidates(names)) {
    const double now = matching(names, period);
    if (now > share * (best ? 1.02 : 1)) best = period, share = now;
  }
  return best;
}

}  // namespace

size_t find_period(std::span<const uint32_t> names) {
  // Tries the second half first, because the beginning is more likely preparation. A short trace may need all of it.
  const size_t half = period_of(names.subspan(names.size() / 2, std::min(names.size() - names.size() / 2, kWindow)));
  return half != 0 ? half : period_of(names.first(std::min(names.size(), kWindow)));
}

namespace {

// Returns a typical step; empty if there is none.
std::span<const SeenKernel> usual_step(std::span<const SeenKernel> kernels) {
  std::vector<uint32_t> names;
  for (const SeenKernel& kernel : kernels) names.push_back(kernel.name);
  const size_t period = find_period(names);
  if (period == 0 || kernels.size() < 3 * period) return {};
  const size_t pattern = find_pattern(kernels, period);
  return pattern + period <= kernels.size() ? kernels.subspan(pattern, period) : std::span<const SeenKernel>();
}

std::vector<FoundStep> steps_like(std::span<const SeenKernel> usual, std::span<const SeenKernel> kernels) {
  std::vector<Range> found;
  size_t done = 0;  // everything before this is finished
  for (size_t i = 0; i + usual.size() <= kernels.size();) {
    if (!repeats(kernels.subspan(i), usual)) {
      ++i;
      continue;
    }
    add_irregular(found, kernels, {done, i}, usual);
    found.push_back({i, i + usual.size()});
    done = i += usual.size();
  }
  add_irregular(found, kernels, {done, kernels.size()}, usual);
  return timed(found, kernels);
}

// Splits the kernels into stretches recorded without a break.
std::vector<std::span<const SeenKernel>> stretches(std::span<const SeenKernel> kernels,
                                                   std::span<const FoundStep> untraced) {
  std::vector<std::span<const SeenKernel>> found;
  size_t begin = 0, rest = 0;
  for (size_t i = 1; i < kernels.size(); ++i) {
    while (rest < untraced.size() && untraced[rest].end <= kernels[i - 1].start) ++rest;
    if (rest == untraced.size() || untraced[rest].start >= kernels[i].start) continue;
    found.push_back(kernels.subspan(begin, i - begin));
    begin = i;
  }
  found.push_back(kernels.subspan(begin));
  return found;
}

}  // namespace

std::vector<FoundStep> find_last_steps(std::span<const SeenKernel> kernels, std::span<const FoundStep> untraced,
                                       std::vector<SeenKernel>& usual) {
  std::vector<FoundStep> steps;
  if (kernels.empty()) return steps;
  const auto parts = stretches(kernels, untraced);
  const auto look = [&] {
    for (const auto& part : parts) {
      const auto more = steps_like(usual, part);
      steps.insert(steps.end(), more.begin(), more.end());
    }
  };
  if (!usual.empty()) look();
  if (!steps.empty()) return steps;
  // Searches the usual step in one stretch only: equally long windows would also repeat and give a false period.
  const auto step = usual_step(*std::ranges::max_element(parts, {}, &std::span<const SeenKernel>::size));
  if (step.empty()) return steps;  // keeps the old usual step, which may return
  usual.assign(step.begin(), step.end());
  look();
  return steps;
}

std::vector<FoundStep> find_steps(std::span<const SeenKernel> kernels, std::span<const FoundStep> untraced) {
  std::vector<SeenKernel> usual;
  return find_last_steps(kernels, untraced, usual);
}

// A step is certain once several more have followed: by then, late kernels have been sorted in.
StepsSoFar find_steps_so_far(std::span<const SeenKernel> kernels, std::span<const FoundStep> untraced,
                             std::vector<SeenKernel>& usual) {
  constexpr size_t kFew = 16;
  if (kernels.size() < kFew) return {};
  StepsSoFar found{find_last_steps(kernels, untraced, usual), kernels.size() / 2};
  if (found.steps.empty()) return found;
  const TimeNs certain = kernels[kernels.size() - kernels.size() / 8].start;
  const auto after = std::ranges::lower_bound(found.steps, certain, {}, &FoundStep::start);
  if (after == found.steps.begin()) return {{}, 0};  // a single step is as long as everything kept
  const FoundStep first_left = *std::prev(after);
  found.steps.erase(std::prev(after), found.steps.end());
  const auto left = std::ranges::lower_bound(kernels, first_left.start, {}, &SeenKernel::start);
  found.used = static_cast<size_t>(left - kernels.begin());
  return found;
}

namespace {

// The kernels of each step, if all have the same and nothing was launched after the last one.
std::vector<FoundStep> same_steps(size_t count, std::span<const SeenKernel> kernels, size_t period) {
  const size_t each = kernels.size() / (count * period) * period;
  if (each == 0) return {};
  const auto launched = kernels.last(count * each);
  std::vector<FoundStep> steps;
  for (size_t i = 0; i < count; ++i) {
    const auto step = launched.subspan(i * each, each);
    if (!std::ranges::equal(step, launched.first(each), {}, &SeenKernel::name, &SeenKernel::name)) return {};
    steps.push_back({step.front().start, step.back().end});
  }
  return steps;
}

// The same where some steps differ, as the first one and those that print, or where evaluations lie between them. A step
// begins with the kernels with which the first one begins.
std::vector<FoundStep> similar_steps(size_t count, std::span<const SeenKernel> kernels, size_t period) {
  if (kernels.size() < 3 * period) return {};
  const auto place = kernels.subspan(first_repetition(kernels, period), period);
  size_t best = 0, longest = 0;
  for (size_t from = 0; from < period; ++from) {
    size_t same = 0;
    while (same < period && kernels[same].name == place[(from + same) % period].name) ++same;
    if (same > longest) longest = same, best = from;
  }
  if (longest == 0) return {};
  std::vector<SeenKernel> usual(place.begin(), place.end());
  std::ranges::rotate(usual, usual.begin() + static_cast<std::ptrdiff_t>(best));
  const std::vector<FoundStep> found = steps_like(usual, kernels);
  const size_t each = found.size() / count;  // a step may repeat something itself
  if (each == 0 || found.size() % count != 0) return {};
  std::vector<FoundStep> steps;
  for (size_t i = 0; i < count; ++i) steps.push_back({found[i * each].start, found[i * each + each - 1].end});
  return steps;
}

// True if the GPU began most steps after the host had marked their end.
bool are_behind(std::span<const FoundStep> steps, std::span<const FoundStep> ranges) {
  size_t behind = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].start < ranges[i].start) return false;
    behind += steps[i].start > ranges[i].end;
  }
  return 2 * behind > ranges.size();
}

}  // namespace

std::vector<FoundStep> steps_on_gpu(std::span<const FoundStep> ranges, std::span<const SeenKernel> kernels) {
  if (ranges.empty()) return {};
  const auto first = std::ranges::lower_bound(kernels, ranges.front().start, {}, &SeenKernel::start);
  kernels = kernels.subspan(static_cast<size_t>(first - kernels.begin()));
  std::vector<uint32_t> names;
  for (const SeenKernel& kernel : kernels) names.push_back(kernel.name);
  const size_t period = find_period(names);
  if (period == 0) return {};
  std::vector<FoundStep> steps = same_steps(ranges.size(), kernels, period);
  if (steps.empty()) steps = similar_steps(ranges.size(), kernels, period);
  return are_behind(steps, ranges) ? steps : std::vector<FoundStep>();
}

std::vector<FoundStep> steps_of_ranges(std::vector<FoundStep> ranges) {
  std::ranges::stable_sort(ranges, [](const FoundStep& a, const FoundStep& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<FoundStep> steps;
  for (const FoundStep& range : ranges)
    if (steps.empty() || range.start >= steps.back().end) steps.push_back(range);
  return steps.size() >= 2 ? steps : std::vector<FoundStep>();
}

bool names_a_step(std::string_view range) {
  std::string lower(range);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view head(lower);
  const size_t digits = head.find_first_of("0123456789");
  if (digits != std::string_view::npos) head = head.substr(0, digits);
  if (digits == std::string_view::npos && head.ends_with(".step")) return false;  // an optimizer's: "SGD.step"
  while (!head.empty() && !std::isalpha(static_cast<unsigned char>(head.back()))) head.remove_suffix(1);
  return head.ends_with("step") || head.ends_with("iter") || head.ends_with("iteration");
}

}  // namespace ws::prof
