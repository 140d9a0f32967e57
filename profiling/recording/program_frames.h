// What a recorded program sends to the process that writes its run file, and what this process sends to a live view: a
// stream of frames. A frame is a head and its bytes.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/base/failure.h"
#include "profiling/base/launched_rank.h"
#include "profiling/collectors/collector.h"
#include "profiling/recording/host_notes.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

enum class FrameKind : uint32_t { Hello = 1, Batch, LeftOut, Ops, Curves, Begin, Notes, Status, Alive, End };

struct FrameHead {
  static constexpr uint32_t kMagic = 0x424c5357;  // "WSLB"
  static constexpr uint64_t kMost = uint64_t{1} << 30;
  uint32_t magic = kMagic;
  FrameKind kind{};
  uint64_t size = 0;
};

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void add_frame(std::string& to, FrameKind kind, std::string_view payload);

// Calls use(kind, payload) for each complete frame and removes it. Throws Failure if the bytes are no frames.
template <class Use>
void take_frames(std::string& bytes, const Use& use) {
  size_t at = 0;
  while (bytes.size() - at >= sizeof(FrameHead)) {
    FrameHead head;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    if (head.magic != FrameHead::kMagic || head.size > FrameHead::kMost)
      throw Failure("The recorded program sent damaged data.");
    if (bytes.size() - at - sizeof head < head.size) break;
    use(head.kind, std::string_view(bytes).substr(at + sizeof head, head.size));
    at += sizeof head + head.size;
  }
  bytes.erase(0, at);
}

// Ops that were registered since the last call. A batch refers only to ops that were sent before.
class NewOps {
 public:
  void add_frame_if_any(std::string& to);

 private:
  size_t sent_ = 1;  // the first is "no op"
};

// The first frame.
struct ProgramBegin {
  std::string path;      // the run file: an empty file that this process has made
  std::string name;      // of the run
  std::string follower;  // address of the live view; empty: none
  std::string process;   // "1234 python3"
  std::string mark;      // see process_mark()
  std::string traced;    // what is traced, in a sentence
  int64_t number = 0;    // of the process
  int64_t origin_ns = 0, began_ns = 0;  // steady clock
  uint64_t device = 0, file = 0;        // identity of the empty file
  LaunchedRank rank;
  bool captures = false;
};
std::string encode(const ProgramBegin& begin);
ProgramBegin decode_begin(std::string_view bytes);  // throws Failure

// What CollectorStatus says, as far as a run file needs it.
struct ProgramStatus {
  bool gpu = false;
  uint64_t captures = 0;
  int64_t clock_width_ns = 0;
  std::string device, driver, compute;
  std::map<std::string, std::string> kept;  // see keep_status()
};
ProgramStatus status_of(const CollectorStatus& status);
std::string encode(const ProgramStatus& status);
ProgramStatus decode_status(std::string_view bytes);

std::string encode(const HostNotes::Taken& notes);
HostNotes::Taken decode_notes(std::string_view bytes);

// Curves that a recorded program logs, for the charts.
struct LiveCurves {
  std::vector<Metric> metrics;
  std::vector<Evaluation> evaluations;
};
std::string encode(const LiveCurves& curves);
LiveCurves decode_curves(std::string_view bytes);

}  // namespace ws::prof
