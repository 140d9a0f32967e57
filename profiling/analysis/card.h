// The GPU of a run, as far as it is known from its name and from what its machine reported.
#pragma once
#include <optional>
#include <string>

#include "profiling/analysis/occupancy.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

struct Card {
  std::string name;
  int major = 0, minor = 0;              // compute capability; 0: not known
  int multiprocessors = 0;               // 0: not known
  std::optional<DeviceLimits> limits{};  // nullopt if unknown: a guess would be shown as a fact
};
Card card_of(const RunSummary& run);
// Writes what an importer knows in the format of RunSummary::machine. Empty if nothing is known.
std::string machine_text(const Card& card);

// How well a kernel fills the card: its blocks and warps per multiprocessor, and the occupancy of its blocks spread
// evenly.
struct CardFill {
  double blocks_per_sm = 0, warps_per_sm = 0;
  std::optional<double> occupancy;  // 0 to 1
};
std::optional<CardFill> fill_of(const Detail& kernel, const Card& card);

}  // namespace ws::prof
