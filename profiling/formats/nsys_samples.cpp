#include "profiling/formats/nsys_samples.h"

#include <algorithm>
#include <memory>

#include "profiling/formats/nsys_rows.h"
#include "profiling/trace/code_places.h"

namespace ws::prof {

namespace {

constexpr int64_t kUsualPeriod = 1'000'000;  // Nsight Systems takes 1,000 samples per second unless an option changes it

// The stack of each event. A text that is no stack has one frame without a file.
std::unordered_map<int64_t, NameId> read_stacks(Database& db, TraceBuilder& builder,
                                                const std::function<const std::string&(int64_t)>& string) {
  std::unordered_map<int64_t, NameId> names;
  CodeStack stack;
  int64_t event = 0;
  const auto keep = [&] {
    if (stack.frames.empty()) return;
    builder.take_memory(64);
    const CodeFrame& only = stack.frames.front();
    if (stack.frames.size() == 1 && only.path.empty()) {
      names.try_emplace(event, builder.name(only.function));
    } else {
      std::ranges::reverse(stack.frames);
      stack.own = stack.frames.size();
      names.try_emplace(event, builder.name(std::make_shared<const CodeStack>(std::move(stack))));
    }
    stack = {};
  };
  NsysRows rows(db, kSampleFrames, {"id", "module", "line", "symbol"}, " ORDER BY id, stackDepth");
  while (rows.next()) {
    if (rows.integer(0) != event) keep();
    event = rows.integer(0);
    if (stack.frames.size() < kMostStackFrames)
      stack.frames.push_back({string(rows.integer(1)), as_int(rows.integer(2)), string(rows.integer(3))});
  }
  keep();
  return names;
}

void set_ends(std::vector<NsysSample>& samples, const std::vector<size_t>& moments) {
  const auto gap = [&](size_t i) -> int64_t {
    if (i + 1 == samples.size() || samples[i + 1].thread != samples[i].thread) return 0;
    int64_t time = 0;
    return __builtin_sub_overflow(samples[i + 1].start, samples[i].start, &time) ? 0 : time;
  };
  std::vector<int64_t> gaps;
  for (const size_t i : moments)
    if (gap(i) > 0) gaps.push_back(gap(i));
  int64_t period = kUsualPeriod;
  if (!gaps.empty()) {
    const auto middle = gaps.begin() + std::ssize(gaps) / 2;
    std::ranges::nth_element(gaps, middle);
    period = *middle;
  }
  for (const size_t i : moments) {
    const int64_t length = gap(i) > 0 ? std::min(gap(i), period) : period;
    if (__builtin_add_overflow(samples[i].start, length, &samples[i].end)) samples[i].end = samples[i].start;
  }
}

}  // namespace

std::vector<NsysSample> read_samples(Database& db, TraceBuilder& builder,
                                     const std::function<const std::string&(int64_t)>& string) {
  const auto names = read_stacks(db, builder, string);
  std::vector<NsysSample> samples;
  std::vector<size_t> moments;  // samples without an end
  NsysRows rows(db, kSampleEvents, {"start", "end", "globalTid", "id"}, " ORDER BY globalTid, start");
  while (rows.next()) {
    const auto name = names.find(rows.integer(3));
    if (name == names.end()) continue;  // a thread was scheduled: no sample
    builder.take_memory(2 * (sizeof(NsysSample) + sizeof(size_t)));
    if (rows.null(1)) moments.push_back(samples.size());
    samples.push_back({rows.integer(0), rows.integer(1), rows.integer(2), name->second});
  }
  set_ends(samples, moments);
  return samples;
}

}  // namespace ws::prof
