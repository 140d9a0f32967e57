// The names that tracks have in a trace, as the numbers that other tools want, and back.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "profiling/trace/trace.h"

namespace ws::prof {

int64_t number_in(std::string_view text, int64_t otherwise);  // the first one: of "stream 7 copies", "GPU 0"
std::string stream_name(int64_t stream);
// The row of what waits for a stream, or for none in particular (-1), and what such a wait is called. The types are
// those of CUPTI and Nsight Systems: 1 event, 2 stream waits for event, 3 stream, 4 device.
std::string waits_name(int64_t stream);
const char* wait_name(int64_t type);
int64_t wait_type(std::string_view name);
std::string gpu_name(int64_t device);

// Whose a row of the host is: "thread 4322 calls", "CUDA API, python3 4322". Number 0: of no thread in particular.
struct RowThread {
  std::string name;
  int64_t number = 0;
};
RowThread thread_of_row(std::string_view row);
inline constexpr int64_t kThreads = 1 << 22;  // the system numbers no more

// "pageable → device" and the like, in the words of each tool. The first eight have the numbers of Nsight Systems;
// Host: pageable or pinned, which some traces do not tell.
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
const char* place_name(MemoryPlace place);    // "pageable"
std::string place_title(MemoryPlace place);   // "Pageable"
MemoryPlace place_of(std::string_view word);  // in any case
std::string chrome_copy_name(CopyEnds ends);  // "Memcpy HtoD (Pageable -> Device)"
CopyEnds ends_of_chrome_copy(std::string_view name);
inline bool on_host(MemoryPlace place) {
  return place == MemoryPlace::Pageable || place == MemoryPlace::Pinned || place == MemoryPlace::Host;
}

// Hardware counters by their names in Nsight Systems; empty: it has none such, or we have not.
std::string nsys_metric_name(std::string_view counter);  // "SMs Active [Throughput %]" of "SM active"
std::string counter_of_nsys_metric(std::string_view metric);

// By the name of the call: allocation, waiting, launching, or another one.
struct CallClass {
  SpanKind kind;
  Meaning meaning;
};
CallClass class_of_call(std::string_view name);

}  // namespace ws::prof
