#include "profiling/base/bus_rate.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

namespace ws {
namespace {

bool smaller(const BusRate& a, const BusRate& b) { return std::tie(a.ranks, a.bytes) < std::tie(b.ranks, b.bytes); }

double member(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number() ? at->get<double>() : 0;
}

}  // namespace

double bus_rate(std::span<const BusRate> measured, int ranks, double bytes) {
  const BusRate *below = nullptr, *above = nullptr;
  for (const BusRate& rate : measured) {
    if (rate.ranks != ranks) continue;
    if (rate.bytes <= bytes && (!below || rate.bytes > below->bytes)) below = &rate;
    if (rate.bytes >= bytes && (!above || rate.bytes < above->bytes)) above = &rate;
  }
  if (!below) return 0;
  if (!above || above->bytes <= below->bytes) return below->gb_s;
  const double share = std::log(bytes / below->bytes) / std::log(above->bytes / below->bytes);
  return below->gb_s * std::pow(above->gb_s / below->gb_s, share);
}

nlohmann::json to_json(std::span<const BusRate> measured) {
  nlohmann::json list = nlohmann::json::array();
  for (const BusRate& rate : measured)
    list.push_back({{"ranks", rate.ranks}, {"bytes", rate.bytes}, {"gb_s", rate.gb_s}});
  return list;
}

std::vector<BusRate> bus_rates_from_json(const nlohmann::json& list) {
  constexpr double kMostRanks = 1e6;
  constexpr size_t kMost = 4096;  // a measurement has some ten sizes; each question looks at all rates
  std::vector<BusRate> measured;
  if (!list.is_array()) return measured;
  for (const nlohmann::json& object : list) {
    if (measured.size() == kMost) break;
    if (!object.is_object()) continue;
    const double ranks = member(object, "ranks");
    const BusRate rate{ranks >= 2 && ranks <= kMostRanks ? static_cast<int>(ranks) : 0, member(object, "bytes"),
                       member(object, "gb_s")};
    if (rate.ranks > 0 && rate.bytes > 0 && rate.gb_s > 0) measured.push_back(rate);
  }
  std::ranges::sort(measured, smaller);
  return measured;
}

}  // namespace ws
