#include "app/core/runs/change_marks.h"

#include <string_view>

namespace ws::app {
namespace {

constexpr std::string_view kIs = ": ", kBecomes = " → ";

}  // namespace

prof::ChangeMark mark_of(const Change& change, double wall_s) {
  return {change.step, wall_s, change.key + std::string(kIs) + change.from + std::string(kBecomes) + change.to};
}

std::optional<Change> change_of(const prof::ChangeMark& mark) {
  const size_t is = mark.text.find(kIs), becomes = mark.text.find(kBecomes);
  if (is == std::string::npos || becomes == std::string::npos || becomes < is) return std::nullopt;
  const size_t from = is + kIs.size();
  Change change{mark.step, mark.text.substr(0, is), mark.text.substr(from, becomes - from),
                mark.text.substr(becomes + kBecomes.size())};
  try {
    RunSpec spec;
    set_field(spec, change.key, change.to);
    return change;
  } catch (const Failure&) {  // from a newer version
    return std::nullopt;
  }
}

RunSpec with_changes(RunSpec spec, const std::vector<prof::ChangeMark>& marks) {
  for (const prof::ChangeMark& mark : marks)
    if (const auto change = change_of(mark)) set_field(spec, change->key, change->to);
  return spec;
}

}  // namespace ws::app
