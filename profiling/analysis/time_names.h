// The names of what a step takes its time for: parts of the split, and causes on the critical path. Each thing has one name in every
// view; the glossary explains it.
#pragma once
#include <compare>
#include <cstdint>

#include "profiling/trace/trace.h"

namespace ws::prof {

// A part of a step, as every view names it. What the host did is a part of its own: waiting for data always, the phases
// of a program only if no kernel ran. A collective waits for ranks until the last one arrives; then it communicates. InnerWait: inside a kernel
// whose parts are recorded, multiprocessors wait for each other.
enum class PartKind : uint8_t { OfMeaning, HostForward, HostBackward, HostOptimizer, HostData, HostOther, NotRecorded, RankWait, InnerWait };
struct PartId {
  Meaning meaning;  // gives the colour
  PartKind kind = PartKind::OfMeaning;
  bool operator==(const PartId&) const = default;
};

// What a stretch of the critical path is spent on. Kernels, copies and CPU ops are named by their Meaning.
enum class PathCause : uint8_t {
  Work,
  LaunchCalls,
  CopyCalls,
  SyncCalls,
  AllocatorCalls,
  OtherCalls,
  WaitsForData,
  HostBetweenCalls,
  GapsBetweenKernels,
  LaunchDelay,
  WakeUp,
  OtherStream,
  FullQueue,
  LateRank,
  InnerWaits,
};
constexpr size_t kPathCauses = static_cast<size_t>(PathCause::InnerWaits) + 1;
struct PathCauseId {
  PathCause cause = PathCause::Work;
  Meaning meaning = Meaning::Other;  // only of Work; otherwise the meaning that has the colour
  auto operator<=>(const PathCauseId&) const = default;
};

const char* meaning_name(Meaning meaning);                // name as a part of a step: "matrix product", "launch gaps"
const char* part_name(const PartId& part);                // the same, and "waits for data", "backward (CPU)"
const char* path_cause_name(const PathCauseId& cause);    // "matrix product", "launch calls"

}  // namespace ws::prof
