// What is known of the card that a run ran on, from its name and from what its machine said.
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
  std::optional<DeviceLimits> limits{};  // nothing: a guess would be told as a fact
};
Card card_of(const RunSummary& run);
// What an importer knows, as a run's summary holds it; empty when that is nothing.
std::string machine_text(const Card& card);

// How far a kernel fills the card: its blocks and warps for each multiprocessor, and of the warps that one can hold the
// share that its blocks would take, spread evenly.
struct CardFill {
  double blocks_per_sm = 0, warps_per_sm = 0;
  std::optional<double> occupancy;  // 0 to 1
};
std::optional<CardFill> fill_of(const Detail& kernel, const Card& card);

}  // namespace ws::prof
