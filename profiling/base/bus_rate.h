// The peak of a machine's links: how fast its GPUs average when nothing else runs, measured by message size.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

namespace ws {

struct BusRate {
  int ranks = 0;
  double bytes = 0;  // of the message
  double gb_s = 0;   // bus bandwidth
};

// Bytes on the busiest link for each byte of an all-reduce: how NCCL's tests compute bus bandwidth.
constexpr double all_reduce_bus_factor(double ranks) { return 2 * (ranks - 1) / ranks; }

// Between measured sizes the rate lies on a line through the two nearest, on log axes. 0: not measured for so many ranks,
// or only for larger messages.
double bus_rate(std::span<const BusRate> measured, int ranks, double bytes);

nlohmann::json to_json(std::span<const BusRate> measured);
std::vector<BusRate> bus_rates_from_json(const nlohmann::json& list);  // in the order of ranks and bytes; leaves out what is no rate

}  // namespace ws
