// Converts between the names of tracks in a trace and the numbers and words of other tools.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/trace.h"

namespace ws::prof {

int64_t number_in(std::string_view text, int64_t otherwise);  // the first number in "stream 7 copies" or "GPU 0"
std::string stream_name(int64_t stream);
inline constexpr std::string_view kProgramSteps = "steps of the program";  // a row
inline constexpr std::string_view kLoaderTrack = "loader worker ";         // the begin of a row's name
inline constexpr std::string_view kNotRecorded = "not recorded";           // a row
// The kind of a row or a counter whose source knows only its name: a run file of before version 5, another tool.
TrackKind kind_of_row(TrackKind broad, std::string_view name);
CounterKind kind_of_counter(std::string_view name, std::string_view unit);
// The unit that a curve of the loss chart has. Older versions know it by its unit.
std::string_view unit_of(CounterKind kind);
// Rows of sampled stacks: "samples of MainThread".
inline constexpr std::string_view kSamplesOf = "samples of ", kMainThread = "MainThread";
inline std::string sampled_thread(const Track& track) { return track.name.substr(kSamplesOf.size()); }
// Name of the row that holds waits for a stream, or for no particular stream (-1).
// wait_name(): name of a wait by its type in CUPTI and Nsight Systems: 1 event, 2 stream waits for event,
// 3 stream, 4 device.
std::string waits_name(int64_t stream);
const char* wait_name(int64_t type);
std::string gpu_name(int64_t device);
int64_t gpu_number(std::string_view group);  // of "GPU 1" or "rank 3 · GPU 1"; 0 without a number

// Name of an allocator that has a pool on each GPU: "PyTorch", "PyTorch GPU 1". allocator_gpu(): the GPU of such a name,
// 0 if it names none.
std::string allocator_on(std::string_view allocator, int64_t device);
int64_t allocator_gpu(std::string_view name);

inline constexpr int64_t kThreads = 1 << 22;  // Linux numbers its threads below this

// Converts "pageable → device" and the like into the words of each tool. The first eight values are the numbers of
// Nsight Systems. Host: pageable or pinned, because some traces do not say which.
enum class MemoryPlace : uint8_t {
  Pageable,
  Pinned,
  Device,
  Array,
  Managed,
  DeviceStatic,
  ManagedStatic,
  Unknown,
  Host
};
struct CopyEnds {
  MemoryPlace from = MemoryPlace::Unknown, to = MemoryPlace::Unknown;
};
CopyEnds copy_ends(std::string_view copy_kind);
std::string copy_kind_text(CopyEnds ends);
// Before the other rank of a message, at the end of the text of its communicator.
inline constexpr const char* kSentTo = " · to ";
inline constexpr const char* kReceivedFrom = " · from ";
inline constexpr const char* kToRank = " → ";
const char* place_name(MemoryPlace place);    // "pageable"
std::string place_title(MemoryPlace place);   // "Pageable"
MemoryPlace place_of(std::string_view word);  // ignores upper and lower case
std::string chrome_copy_name(CopyEnds ends);  // "Memcpy HtoD (Pageable -> Device)"
CopyEnds ends_of_chrome_copy(std::string_view name);
inline bool on_host(MemoryPlace place) {
  return place == MemoryPlace::Pageable || place == MemoryPlace::Pinned || place == MemoryPlace::Host;
}

// Name of the hardware counter that Nsight Systems calls "SMs Active [Throughput %]"; empty if we have no such counter.
std::string counter_of_nsys_metric(std::string_view metric);

// Classifies a call by its name: allocation, waiting, launching or other.
struct CallClass {
  SpanKind kind;
  Meaning meaning;
};
CallClass class_of_call(std::string_view name);

}  // namespace ws::prof
