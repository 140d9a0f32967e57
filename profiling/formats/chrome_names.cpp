#include "profiling/formats/chrome_names.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "profiling/trace/span_walk.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/base/safe_text.h"
#include "profiling/trace/kernel_names.h"

namespace ws::prof {

namespace {

// In the order of SpanKind and of the broad kinds of tracks.
constexpr const char* kKindWords[] = {"kernel", "copy", "memset",   "call",         "allocation",
                                      "free",   "wait", "launch",   "graph launch", "phase",
                                      "step",   "op",   "overhead", "inner",        "other"};
constexpr const char* kRowWords[] = {"steps", "phases", "stream",   "copies", "graph launches",
                                     "calls", "thread", "overhead", "inner",  "other"};
static_assert(std::size(kKindWords) == static_cast<size_t>(SpanKind::Other) + 1);
static_assert(std::size(kRowWords) == static_cast<size_t>(TrackKind::Other) + 1);

template <class Value, size_t n>
std::optional<Value> value_of(const char* const (&words)[n], std::string_view word) {
  const auto at = std::find(words, words + n, word);
  return at == words + n ? std::nullopt : std::optional(static_cast<Value>(at - words));
}

}  // namespace

const char* chrome_category(const Track& track, const Span& span, const std::string& name) {
  switch (span.span_kind()) {
    case SpanKind::Kernel:
      return "kernel";
    case SpanKind::Copy:
      return "gpu_memcpy";
    case SpanKind::Memset:
      return "gpu_memset";
    case SpanKind::Sync:
      if (is_stream_wait(track, span)) return "cuda_sync";
      [[fallthrough]];
    case SpanKind::Api:
    case SpanKind::Alloc:
    case SpanKind::Free:
    case SpanKind::GraphLaunch:
      return name.starts_with("cu") && !name.starts_with("cuda") ? "cuda_driver" : "cuda_runtime";
    case SpanKind::Phase:
    case SpanKind::Step:
      return on_gpu(track) ? "gpu_user_annotation" : "user_annotation";
    case SpanKind::Overhead:
      return "overhead";
    case SpanKind::GraphRun:
    case SpanKind::Inner:
      return "gpu_user_annotation";
    case SpanKind::Op:
    case SpanKind::Other:
      return on_gpu(track) ? "gpu_user_annotation" : "cpu_op";
  }
  return "Trace";
}

std::string_view category_of_today(std::string_view category, std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kBefore[] = {
      {"Kernel", "kernel"}, {"Memcpy", "gpu_memcpy"}, {"Memset", "gpu_memset"}, {"Runtime", "cuda_runtime"}, {"Operator", "cpu_op"}};
  if (category == "Operator" && name.starts_with("ProfilerStep#")) return "user_annotation";
  for (const auto& [before, today] : kBefore)
    if (category == before) return today;
  return category;
}

// "CopyHostToDevice" of ROCm, "MemcpyH2D" of XLA; empty for another name.
std::string copy_kind_of_device_work(std::string_view name) {
  constexpr auto kHost = MemoryPlace::Host, kDevice = MemoryPlace::Device;
  constexpr std::pair<std::string_view, CopyEnds> kCopies[] = {
      {"CopyHostToDevice", {kHost, kDevice}}, {"CopyDeviceToHost", {kDevice, kHost}}, {"CopyDeviceToDevice", {kDevice, kDevice}},
      {"MemcpyH2D", {kHost, kDevice}},        {"MemcpyD2H", {kDevice, kHost}},        {"MemcpyD2D", {kDevice, kDevice}}};
  for (const auto& [begin, ends] : kCopies)
    if (name.starts_with(begin)) return copy_kind_text(ends);
  return "";
}

CallClass class_of_device_work(const std::string& name) {
  constexpr std::string_view kFills[] = {"Memset", "FillBuffer"}, kMarkers[] = {"Marker", "Barrier"};
  const auto begins = [&name](std::string_view word) { return name.starts_with(word); };
  if (begins("Memcpy") || !copy_kind_of_device_work(name).empty()) return {SpanKind::Copy, Meaning::Copy};
  if (std::ranges::any_of(kFills, begins)) return {SpanKind::Memset, Meaning::Copy};
  if (std::ranges::find(kMarkers, name) != std::end(kMarkers)) return {SpanKind::Sync, Meaning::Sync};
  return {SpanKind::Kernel, meaning_of_kernel(name)};
}

std::string_view device_of_category(std::string_view category) {
  return category == "mtia_ccp_events" ? "MTIA" : "";
}

std::optional<NamedDevice> device_of_process(std::string_view name) {
  constexpr std::string_view kBegin = "/device:";
  if (!name.starts_with(kBegin)) return {};
  const std::string_view rest = name.substr(kBegin.size()), kind = rest.substr(0, rest.find(':'));
  constexpr size_t kLongest = 16;
  if (kind.empty() || kind.size() > kLongest || kind == "CPU") return {};
  return NamedDevice{printable(kind), number_in(rest.substr(kind.size()), 0)};
}

CallClass class_of_chrome(std::string_view category, const std::string& name) {
  if (category == "kernel" || !device_of_category(category).empty()) return class_of_device_work(name);
  if (category == "gpu_memcpy") return {SpanKind::Copy, Meaning::Copy};
  if (category == "gpu_memset") return {SpanKind::Memset, Meaning::Copy};
  if (category.ends_with("_runtime") || category == "cuda_driver") return class_of_call(name);
  if (category == "user_annotation" && name.starts_with("ProfilerStep#")) return {SpanKind::Step, Meaning::Other};
  if (category == "user_annotation") return {SpanKind::Phase, meaning_of_range(name)};
  if (category == "gpu_user_annotation") return {SpanKind::Phase, Meaning::Other};
  if (category == "overhead") return {SpanKind::Overhead, Meaning::Other};
  if (category == "cuda_sync") return {SpanKind::Sync, Meaning::Sync};
  if (category == "cpu_op") return {SpanKind::Op, Meaning::Other};
  return {SpanKind::Other, Meaning::Other};
}

const char* kind_word(SpanKind kind) { return kKindWords[static_cast<size_t>(kind)]; }
std::optional<SpanKind> kind_of_word(std::string_view word) { return value_of<SpanKind>(kKindWords, word); }
const char* row_word(TrackKind kind) { return kRowWords[static_cast<size_t>(broad_kind(kind))]; }
std::optional<TrackKind> row_of_word(std::string_view word) { return value_of<TrackKind>(kRowWords, word); }

std::optional<Meaning> meaning_of_word(std::string_view word) {
  for (size_t m = 0; m < kMeanings; ++m)
    if (word == meaning_name(static_cast<Meaning>(m))) return static_cast<Meaning>(m);
  if (word == "allocation") return Meaning::Allocation;  // its name before version 6 of run files
  return std::nullopt;
}

std::string chrome_memset_name(std::string_view place) {
  const MemoryPlace known = place_of(place);
  return "Memset (" + place_title(known == MemoryPlace::Unknown ? MemoryPlace::Device : known) + ")";
}

std::string place_of_chrome_memset(std::string_view name) {
  const size_t open = name.find('('), close = name.rfind(')');
  if (open == name.npos || close == name.npos || close < open) return place_name(MemoryPlace::Device);
  return place_name(place_of(name.substr(open + 1, close - open - 1)));
}

}  // namespace ws::prof
