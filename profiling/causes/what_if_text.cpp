// Text and JSON of predictions and critical paths.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "profiling/analysis/kernel_table.h"
#include "profiling/base/table.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"
#include "profiling/causes/what_if.h"

namespace ws::prof {
namespace {

constexpr size_t kShownRows = 14, kNameLetters = 60;
constexpr const char* kOfRank = "Own time is of a step of the rank that has most of it.\n";

std::string of_steps(const StepRange& which, bool whole_trace) {
  return whole_trace ? "the whole trace, as no steps were found" : "the mean of " + which_steps(which);
}

std::string path_text(const std::string& title, const std::vector<PathShare>& path) {
  std::string text = "\n          µs       %  " + title + "\n";
  double total = 0;
  for (const PathShare& share : path) total += share.path_us;
  for (const PathShare& share : path) text += formatted("{:>12.3f} {:>7.2f}  {}\n", share.path_us, total > 0 ? 100 * share.path_us / total : 0, share.name);
  return text;
}

std::string rows_text(const std::string& title, const std::vector<HelpRow>& rows, size_t more) {
  if (rows.empty()) return {};
  std::string text = "\n" + title + "\nsaved per step µs  kind    what\n";
  for (const HelpRow& row : std::span(rows.data(), std::min(kShownRows, rows.size())))
    text += formatted("{:>17.2f}  {:<7} {}{}\n", row.gain_us, group_kind_name(row.kind), shortened(row.name, kNameLetters), of_rank(row.rank));
  const size_t left = more + rows.size() - std::min(kShownRows, rows.size());
  if (left > 0) text += formatted("{} more, with less time on the critical path or less saved.\n", left);
  return text + kNotTheSplit + "\n";
}

std::string edits_text(const WhatIf& result) {
  double one_by_one = 0;
  std::string text = "\n     mean µs    alone µs  edit\n";
  for (const EditPart& part : result.edits) {
    one_by_one += part.alone_us;
    text += formatted("{:>12} {:>11}  {}\n", signed_fixed(-part.mean_us, 2), signed_fixed(-part.alone_us, 2), part.text);
  }
  text += formatted("{:>12} {:>11}  together, and the sum one by one\n", signed_fixed(-result.saves_us.value, 2), signed_fixed(-one_by_one, 2));
  return text;
}

std::string doubts_text(double unexplained_us, const std::string& where, const std::vector<std::string>& warnings) {
  std::string text;
  if (unexplained_us > 0) text += formatted("\nFor {:.2f} µs of a step, the records do not show what the GPU waits for, longest before {}. A prediction keeps this time.\n", unexplained_us, where);
  for (const std::string& warning : warnings) text += "\n" + warning + "\n";
  return text;
}

nlohmann::ordered_json json_of(const Interval& us) { return {{"us", us.value}, {"half_width", us.half_width}}; }

nlohmann::ordered_json json_of(const std::vector<PathShare>& path) {
  auto list = nlohmann::ordered_json::array();
  for (const PathShare& share : path) list.push_back({{"cause", share.name}, {"us", share.path_us}});
  return list;
}

nlohmann::ordered_json json_of(const std::vector<HelpRow>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const HelpRow& row : rows) {
    list.push_back({{"kind", group_kind_name(row.kind)}, {"name", row.name}, {"now_us", row.now_us}, {"path_us", row.path_us}, {"one_us_less_saves", row.slope()}, {"saved_if_free_us", row.gain_us}});
    if (row.rank >= 0) list.back()["rank"] = row.rank;
  }
  return list;
}

std::string dumped(const nlohmann::ordered_json& json) { return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace

std::string of_rank(int rank) { return rank < 0 ? std::string() : ", rank " + std::to_string(rank); }

std::string interval_text(const Interval& us) { return interval_text(us, us.value); }

std::string interval_text(const Interval& us, double step_us) {
  const bool ms = StepUnit(step_us).ms;
  const double unit = ms ? 1e3 : 1;
  const int decimals = ms || step_us < 10 ? 2 : 1;
  return fixed(us.value / unit, decimals) + (us.half_width > 0 ? " ± " + fixed(us.half_width / unit, decimals) : "") + (ms ? " ms" : " µs");
}

std::string change_text(double less_us, double step_us, bool at_most) {
  const double us = std::abs(less_us);
  const std::string share = step_us > us ? " (" + percent(us / step_us, us < 0.01 * step_us ? 1 : 0) + ")" : "";
  return std::string("a step would take ") + (at_most ? "up to " : "") + interval_text({us}, std::max(step_us, us)) + (less_us < 0 ? " more" : " less") + share;
}

namespace {

// True if all digits of the saving that a page shows are zero.
bool changes_nothing(const WhatIf& result) {
  const double step = result.measured_us.value;
  return interval_text({std::abs(result.saves_us.value)}, step) == interval_text({0}, step);
}

}  // namespace

std::string saving_text(const WhatIf& result) {
  const double step = result.measured_us.value;
  const Interval& saves = result.saves_us;
  if (result.edits.empty()) return "A step takes " + interval_text({step}) + ".";
  if (changes_nothing(result)) return "A step would take as long.";
  const bool at_most = saves.value > 0 && saves.value < saves.half_width;  // the interval holds zero
  return with_capital(change_text(at_most ? saves.value + saves.half_width : saves.value, step, at_most)) + ".";
}

std::string step_text(const WhatIf& result) {
  const double step = result.measured_us.value, saves = result.saves_us.value;
  const std::string now = interval_text(result.measured_us);
  if (result.edits.empty()) return "A step takes " + now + ".";
  if (changes_nothing(result)) return "A step would take as long: " + now + ".";
  const std::string change = interval_text({std::abs(saves), result.saves_us.half_width}, step) + (saves < 0 ? " more" : " less");
  return "A step would take " + change + " (" + percent(std::abs(saves) / step, std::abs(saves) < 0.01 * step ? 1 : 0) + "): " + interval_text({result.predicted_us.value}, step) + " instead of " + now + ".";
}

std::string to_text(const WhatIf& result, const std::string& advice) {
  std::string text = step_text(result) + "\nThe median step. The replay is of " + of_steps(result.which, result.whole_trace) + formatted(", {:.2f} % off.\n", 100 * result.replay_error);
  if (!result.edits.empty()) text += edits_text(result);
  text += advice;
  text += path_text("of the critical path of a measured step, through all ranks: the work and waits that decide how long it takes", result.path);
  if (!result.edits.empty()) text += path_text("of the critical path of a predicted step", result.path_after);
  text += rows_text(std::string(kIfFree) + ", now:", result.rows, result.more_rows);
  if (!result.edits.empty()) text += rows_text(std::string(kIfFree) + ", after the edits:", result.rows_after, result.more_rows_after);
  if (const std::string left = hand_over_text(result); !left.empty()) text += left + "\n";
  return text + doubts_text(result.unexplained_us, result.least_explained, result.warnings);
}

std::string to_json(const WhatIf& result) {
  nlohmann::ordered_json json{{"version", kJsonVersion}, {"measured", json_of(result.measured_us)}, {"predicted", json_of(result.predicted_us)}, {"steps", result.steps}, {"replay_error", result.replay_error}};
  json["edits"] = nlohmann::ordered_json::array();
  for (const EditPart& part : result.edits) json["edits"].push_back({{"edit", part.text}, {"saves_alone_us", part.alone_us}, {"saves_mean_us", part.mean_us}});
  json["path"] = json_of(result.path), json["path_after"] = json_of(result.path_after);
  json["helps"] = json_of(result.rows), json["helps_more"] = result.more_rows;
  json["helps_after"] = json_of(result.rows_after), json["helps_after_more"] = result.more_rows_after;
  json["unexplained_us"] = result.unexplained_us, json["warnings"] = result.warnings;
  return dumped(json);
}

std::string to_text(const CriticalReport& report) {
  std::string text = "step time    " + interval_text(report.step_us) + "; the critical path is " + of_steps(report.which, report.whole_trace) + "\n";
  constexpr const char* kHeads[] = {"op", "line", "module", "cause"};
  const CriticalReport::Row* before = nullptr;
  size_t shown = 0;
  for (const auto& row : report.rows) {
    if (!before || before->kind != row.kind) {
      text += formatted("\n on the path µs   of a step %  own time µs    slack µs  {}\n", kHeads[static_cast<size_t>(row.kind)]);
      shown = 0;
    }
    before = &row;
    if (++shown > 2 * kShownRows) continue;
    text += formatted("{:>15.3f} {:>15.2f} {:>12.3f} {:>11}  {}\n", row.path_us, report.step_us.value > 0 ? 100 * row.path_us / report.step_us.value : 0, row.now_us, fixed(row.slack_us, 2), shortened(row.name, kNameLetters) + of_rank(row.rank));
  }
  if (before && before->rank >= 0) text += std::string("\n") + kOfRank;
  return text + doubts_text(report.unexplained_us, report.least_explained, report.warnings);
}

std::string to_json(const CriticalReport& report) {
  nlohmann::ordered_json json{{"version", kJsonVersion}, {"step", json_of(report.step_us)}, {"steps", report.steps}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const auto& row : report.rows) {
    json["rows"].push_back({{"kind", group_kind_name(row.kind)}, {"name", row.name}, {"now_us", row.now_us}, {"path_us", row.path_us}, {"slack_us", std::isnan(row.slack_us) ? nlohmann::ordered_json() : nlohmann::ordered_json(row.slack_us)}});
    if (row.rank >= 0) json["rows"].back()["rank"] = row.rank;
  }
  json["unexplained_us"] = report.unexplained_us, json["warnings"] = report.warnings;
  return dumped(json);
}

}  // namespace ws::prof
