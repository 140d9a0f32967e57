#include "profiling/analysis/time_names.h"

#include <iterator>

namespace ws::prof {
namespace {

// Things that stand in the split and on the critical path.
constexpr const char *kAllocatorCalls = "allocator calls", *kWaitsForData = "waits for data", *kWaitsForRank = "waits for a rank", *kWaitsInside = "waits for other multiprocessors";

constexpr const char* kMeaningNames[] = {"matrix product", "pointwise", "loss", "optimizer", "copies", kAllocatorCalls, "sync", "launch gaps", "idle", "other kernels", "communication", "reduction"};
static_assert(std::size(kMeaningNames) == kMeanings);

// By PartKind. OfMeaning has the name of its meaning.
constexpr const char* kPartNames[] = {"", "forward (CPU)", "backward (CPU)", "optimizer (CPU)", kWaitsForData, "other CPU work", "not recorded", kWaitsForRank, kWaitsInside};
static_assert(std::size(kPartNames) == static_cast<size_t>(PartKind::InnerWait) + 1);

// By PathCause. Work has the name of its meaning.
constexpr const char* kPathCauseNames[] = {"",
                                           "launch calls",
                                           "copy calls",
                                           "sync calls",
                                           kAllocatorCalls,
                                           "other calls",
                                           kWaitsForData,
                                           "host outside CUDA",
                                           "gaps between kernels",
                                           "launch delay",
                                           "return from sync",
                                           "waits for another stream",
                                           "full launch queue",
                                           kWaitsForRank,
                                           kWaitsInside};
static_assert(std::size(kPathCauseNames) == kPathCauses);

}  // namespace

const char* meaning_name(Meaning meaning) { return kMeaningNames[static_cast<size_t>(meaning)]; }

const char* part_name(const PartId& part) { return part.kind == PartKind::OfMeaning ? meaning_name(part.meaning) : kPartNames[static_cast<size_t>(part.kind)]; }

const char* path_cause_name(const PathCauseId& cause) { return cause.cause == PathCause::Work ? meaning_name(cause.meaning) : kPathCauseNames[static_cast<size_t>(cause.cause)]; }

}  // namespace ws::prof
