#include <algorithm>
#include <cmath>
#include <map>

#include "engine/lab/lab.h"

namespace ws::lab {
namespace {

using Curve = std::map<int64_t, double>;  // size → seconds

std::map<Way, Curve> curves(const LabResult& result) {
  std::map<Way, Curve> all;
  for (const LabPoint& p : result.points)
    if (p.ok && !info(p.way).pitfall) all[p.way][p.size] = p.median_s;
  return all;
}

// Finds where the curves meet: between the last size at which `a` is faster and the sizes at which `b` stays faster.
std::optional<Crossover> meet(Way way_a, const Curve& a, Way way_b, const Curve& b) {
  std::vector<int64_t> sizes;
  for (const auto& [size, seconds] : a)
    if (b.contains(size)) sizes.push_back(size);
  for (size_t i = sizes.size(); i-- > 1;) {
    const double before = std::log(a.at(sizes[i - 1]) / b.at(sizes[i - 1])),
                 after = std::log(a.at(sizes[i]) / b.at(sizes[i]));
    if (after <= 0) return {};  // b is not ahead at the end
    if (before > 0) continue;
    const double share = before / (before - after);
    const double size = std::exp(
        std::lerp(std::log(static_cast<double>(sizes[i - 1])), std::log(static_cast<double>(sizes[i])), share));
    const double seconds = std::exp(std::lerp(std::log(a.at(sizes[i - 1])), std::log(a.at(sizes[i])), share));
    return Crossover{way_a, way_b, size, seconds};
  }
  return {};
}

}  // namespace

std::vector<Crossover> crossovers(const LabResult& result) {
  std::vector<Crossover> found;
  const auto all = curves(result);
  for (const auto& [way_a, a] : all)
    for (const auto& [way_b, b] : all)
      if (way_a != way_b)
        if (auto crossing = meet(way_a, a, way_b, b)) found.push_back(*crossing);
  std::ranges::sort(found, {}, &Crossover::size);
  return found;
}

}  // namespace ws::lab
