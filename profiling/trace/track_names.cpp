#include "profiling/trace/track_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace ws::prof {

namespace {

constexpr const char* kPlaces[] = {"pageable",      "pinned",         "device",  "array", "managed",
                                   "device static", "managed static", "unknown", "host"};
constexpr const char* kWaits[] = {"wait", "host waits for an event", "stream waits for an event",
                                  "host waits for the stream", "host waits for the device"};
struct SharedMetric {
  std::string_view counter, metric;
};
constexpr SharedMetric kSharedMetrics[] = {{"SM active", "SMs Active [Throughput %]"},
                                           {"tensor pipe active", "Tensor Active [Throughput %]"},
                                           {"DRAM read", "DRAM Read Bandwidth [Throughput %]"},
                                           {"DRAM write", "DRAM Write Bandwidth [Throughput %]"}};
constexpr std::string_view kArrow = " → ", kChromeArrow = " -> ";

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

CopyEnds split(std::string_view text, std::string_view arrow) {
  const size_t at = text.find(arrow);
  if (at == std::string_view::npos) return {};
  return {place_of(text.substr(0, at)), place_of(text.substr(at + arrow.size()))};
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

constexpr std::pair<CounterKind, std::string_view> kLossUnits[] = {{CounterKind::Loss, "loss"},
                                                                   {CounterKind::TestLoss, "test loss"},
                                                                   {CounterKind::LossName, "name of the loss"},
                                                                   {CounterKind::TestLossName, "name of the test loss"}};

// Names of counters may have the rank or the allocator before them.
CounterKind kind_of_memory(std::string_view name) {
  const bool used = contains(name, "used"), reserved = contains(name, "reserved");
  if ((!used && !reserved) || contains(name, "device")) return CounterKind::Other;
  if (name.starts_with("pool ")) return reserved ? CounterKind::PoolReserved : CounterKind::PoolUsed;
  return reserved ? CounterKind::MemoryReserved : CounterKind::MemoryUsed;
}

}  // namespace

TrackKind kind_of_row(TrackKind broad, std::string_view name) {
  if (broad == TrackKind::Phases && name == kProgramSteps) return TrackKind::ProgramSteps;
  if (broad == TrackKind::Phases && name.ends_with(" ranges")) return TrackKind::Ranges;
  if (broad == TrackKind::Overhead && name == kUntracedTrack) return TrackKind::Untraced;
  if (broad != TrackKind::Other) return broad;
  if (name.starts_with(kSamplesOf)) return TrackKind::Samples;
  if (name.starts_with(kLoaderTrack)) return TrackKind::Loader;
  if (name.starts_with("collectives")) return TrackKind::Collectives;
  if (name == kNotRecorded) return TrackKind::NotRecorded;
  return name.ends_with("waits") ? TrackKind::StreamWaits : broad;
}

CounterKind kind_of_counter(std::string_view name, std::string_view unit) {
  for (const auto& [kind, its_unit] : kLossUnits)
    if (unit == its_unit) return kind;
  if (unit == "B") return kind_of_memory(name);
  return unit == "%" && (name == "DRAM read" || name == "DRAM write") ? CounterKind::Dram : CounterKind::Other;
}

std::string_view unit_of(CounterKind kind) {
  const auto at = std::ranges::find(kLossUnits, kind, &std::pair<CounterKind, std::string_view>::first);
  return at == std::end(kLossUnits) ? std::string_view() : at->second;
}

int64_t number_in(std::string_view text, int64_t otherwise) {
  const size_t begin = std::min(text.find_first_of("0123456789"), text.size());
  int64_t number = otherwise;
  std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return number;
}

std::string stream_name(int64_t stream) { return "stream " + std::to_string(stream); }
std::string waits_name(int64_t stream) { return stream < 0 ? "waits" : stream_name(stream) + " waits"; }

const char* wait_name(int64_t type) { return kWaits[type >= 0 && type < std::ssize(kWaits) ? type : 0]; }

int64_t gpu_number(std::string_view group) {
  const size_t gpu = group.rfind("GPU ");
  return number_in(gpu == group.npos ? group : group.substr(gpu), 0);
}

std::string gpu_name(int64_t device) { return "GPU " + std::to_string(device); }

std::string allocator_on(std::string_view allocator, int64_t device) {
  return std::string(allocator) + (device > 0 ? " " + gpu_name(device) : "");
}
int64_t allocator_gpu(std::string_view name) { return name.find(" GPU ") == name.npos ? 0 : gpu_number(name); }

CopyEnds copy_ends(std::string_view copy_kind) { return split(copy_kind, kArrow); }

std::string copy_kind_text(CopyEnds ends) {
  return std::string(place_name(ends.from)).append(kArrow).append(place_name(ends.to));
}

const char* place_name(MemoryPlace place) { return kPlaces[static_cast<size_t>(place)]; }
std::string place_title(MemoryPlace place) {
  std::string title = place_name(place);
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

MemoryPlace place_of(std::string_view word) {
  const auto at = std::ranges::find(kPlaces, lower(word));
  return at == std::end(kPlaces) ? MemoryPlace::Unknown : static_cast<MemoryPlace>(at - std::begin(kPlaces));
}

std::string chrome_copy_name(CopyEnds ends) {
  const char from = on_host(ends.from) ? 'H' : 'D', to = on_host(ends.to) ? 'H' : 'D';
  return std::string("Memcpy ") + from + "to" + to + " (" + place_title(ends.from) + std::string(kChromeArrow) +
         place_title(ends.to) + ")";
}

CopyEnds ends_of_chrome_copy(std::string_view name) {
  const size_t open = name.find('('), close = name.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return split(name.substr(open + 1, close - open - 1), kChromeArrow);
}

std::string counter_of_nsys_metric(std::string_view metric) {
  const auto at = std::ranges::find(kSharedMetrics, metric, &SharedMetric::metric);
  return at == std::end(kSharedMetrics) ? std::string() : std::string(at->counter);
}

// A call after which the host goes on at once, as cudaStreamWaitEvent or cudaEventQuery, is no wait.
CallClass class_of_call(std::string_view name) {
  if (contains(name, "Malloc") || contains(name, "MemAlloc") || contains(name, "HostAlloc"))
    return {SpanKind::Alloc, Meaning::Allocation};
  if (contains(name, "Free") && !contains(name, "FreeArray")) return {SpanKind::Free, Meaning::Allocation};
  if (contains(name, "Synchronize")) return {SpanKind::Sync, Meaning::Sync};
  if (contains(name, "GraphLaunch")) return {SpanKind::GraphLaunch, Meaning::Launch};
  if (contains(name, "Launch")) return {SpanKind::Api, Meaning::Launch};
  if (contains(name, "Memcpy") || contains(name, "Memset")) return {SpanKind::Api, Meaning::Copy};
  return {SpanKind::Api, Meaning::Other};
}

}  // namespace ws::prof
