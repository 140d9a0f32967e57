// What a launch takes, by what it finds: a busy stream, an idle one, memory that was freed right before it, or another call of the
// allocator or a wait right before it. A change of the steps may change what a launch finds.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "profiling/causes/replay.h"

namespace ws::prof {

enum class LaunchFinds : uint8_t { BusyStream, IdleStream, FreedMemory, Allocation, Wait };
constexpr size_t kLaunchFinds = 5;

// Learned from the trace itself: the same kernel, launched at places of a step that find one and at places that find the other.
// Different kernels cannot be compared: their launches take different times anyway. Where every launch follows another call, what
// launches in a row save is taken from other recordings.
class LaunchTimes {
 public:
  explicit LaunchTimes(const CauseGraph& graph);

  // Replays a changed timing until each launch takes what launches take that find what it finds then.
  void settle(Timing& timing, std::vector<TimeNs>& times) const;

  struct Unknown {
    int64_t ns = 0;       // by how much launches may be longer or shorter, as the trace does not show it
    size_t launches = 0;
  };
  Unknown unknown(const Timing& settled, const std::vector<TimeNs>& times) const;

 private:
  struct Launch {
    uint32_t call, kernel, before;  // nodes; before: the node of the stream before the kernel, or the kernel
    LaunchFinds finds;              // as measured
  };
  LaunchFinds finds(const Launch& launch, const Timing& timing, const std::vector<TimeNs>& times) const;
  static bool follows_other_call(LaunchFinds finds) { return finds >= LaunchFinds::FreedMemory; }
  int64_t usual_ns(const Launch& launch, LaunchFinds finds) const;
  int64_t longer_ns(const Launch& launch, LaunchFinds finds) const;
  void learn();

  const CauseGraph& graph_;
  std::vector<Launch> launches_;
  std::vector<uint32_t> call_before_;  // by node of the host; itself at the begin of a row
  std::array<std::optional<int64_t>, kLaunchFinds> longer_{0};  // than into a busy stream; empty: not enough of both kinds
  bool none_differ_ = false;           // whatever they find, they take the same
  int64_t idle_spread_ = 0;            // how far a launch may be from others, where the one into an idle stream is not known
};

}  // namespace ws::prof
