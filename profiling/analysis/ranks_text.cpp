#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <ranges>

#include "profiling/analysis/ranks.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"

namespace ws::prof {

namespace {

// "3.0 ms", "0.30 ms", "27.1 µs": two digits from 0.1 ms on.
std::string ms_text(double us) {
  if (us < 100 || us >= 1e6) return time_text(us);
  const int decimals = us >= 1e4 ? 0 : us >= 995 ? 1 : 2;
  return fixed(us * 1e-3, decimals) + " ms";
}

std::string ordinal(int n) {
  const int tens = n / 10 % 10, ones = n % 10;
  const char* ending = tens == 1 ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th";
  return std::to_string(n) + ending;
}

size_t host_count(const RankReport& report) {
  std::vector<std::string> hosts;
  for (const RankRow& row : report.ranks)
    if (std::ranges::find(hosts, row.host) == hosts.end()) hosts.push_back(row.host);
  return hosts.size();
}

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kSurelyOneClock = 0.05;  // µs

std::string heading(const RankReport& report) {
  std::string text = std::to_string(report.ranks.size()) + " ranks";
  if (const size_t hosts = host_count(report); hosts > 1) text += " on " + std::to_string(hosts) + " hosts";
  text += " · " + std::to_string(report.steps.size()) + " steps";
  text += " · " + step_shown_text(report);
  text += " · longest wait " + time_text(report.longest_wait_us);
  if (report.computation) text += " · longest exposed transfer " + time_text(report.longest_exposed_us);
  if (const std::string clocks = clocks_text(report); !clocks.empty()) text += " · " + clocks;
  return text + "\n";
}

nlohmann::json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json lateness_json(const RankReport& report, size_t rank) {
  nlohmann::json row = nlohmann::json::array();
  for (size_t s = 0; s < report.steps.size(); ++s)
    row.push_back(number_or_null(static_cast<double>(report.late(rank, s))));
  return row;
}

// "rank 0", or "another rank" if there are several.
std::string waiting_name(const RankReport& report, int late) {
  if (report.ranks.size() != 2) return "another rank";
  return "rank " + std::to_string(report.ranks[report.ranks[0].rank == late ? 1 : 0].rank);
}

double lateness_us(const RankReport& report, int rank) {
  const auto row = std::ranges::find(report.ranks, rank, &RankRow::rank);
  return row == report.ranks.end() ? kUnknown : row->late;
}

std::string longer_text(const Straggler& s) { return "computes " + fixed(s.computes, 1) + "× as long"; }

// "rank 0 waits 3.56 ms for rank 1, which computes 2.1× as long". `how_long`: "" or " 3.56 ms"
std::string waiting_text(const RankReport& report, const Straggler& s, const std::string& how_long) {
  return waiting_name(report, s.rank) + " waits" + how_long + " for rank " + std::to_string(s.rank) + ", which " +
         (s.computes > 0 ? longer_text(s) : "comes " + time_text(lateness_us(report, s.rank)) + " late");
}

std::string text_of(const RankReport& report, const Straggler& s) {
  if (s.rank < 0) return "";
  const std::string rank = "rank " + std::to_string(s.rank), share = " (" + percent(s.share, s.share < 0.0995 ? 1 : 0) + ")";
  if (s.of_median) return waiting_text(report, s, " " + time_text(s.cost_us) + " of the median step" + share);
  std::string when = " in " + std::to_string(s.late_steps) + (s.late_steps == 1 ? " step" : " steps");
  if (s.every > 0) when = s.every == 1 ? " in every step" : " in every " + ordinal(s.every) + " step";
  return rank + " makes all ranks lose " + ms_text(s.cost_us) + " per step" + share + ": it comes about " + ms_text(s.late_us) + " late" + when +
         (s.computes > 0 ? " and " + longer_text(s) : "");
}

struct Cost {
  double us = 0;
  bool usual = false;  // the wait without a pattern
  std::string text;
};

// Parts of a step, the greatest first.
std::vector<Cost> costs_of(const RankReport& report) {
  std::vector<Cost> costs;
  if (report.straggler.rank >= 0) costs.push_back({report.straggler.cost_us, false, text_of(report, report.straggler)});
  for (const Straggler& one : report.more_late) costs.push_back({one.cost_us, false, text_of(report, one)});
  if (const auto wait = usual_wait(report)) costs.push_back({wait->us, true, usual_wait_text(*wait, report.steps.size())});
  sort_rows(costs, [](const Cost& a, const Cost& b) { return a.us > b.us; });
  return costs;
}

nlohmann::json json_of(const RankReport& report, const Straggler& s) {
  return {{"rank", s.rank},       {"late_us", s.late_us}, {"late_steps", s.late_steps}, {"every", s.every},
          {"cost_us", s.cost_us}, {"share", s.share},     {"computes_times", s.computes}, {"text", text_of(report, s)}};
}

}  // namespace

Table rank_table(const RankReport& report) {
  using Kind = Table::Kind;
  const bool of_median = report.median_step_us > 0;
  Table table{{{"rank", "rank", "", Kind::Count, 0, 6, ""},
               {"step_us", "step", "µs", Kind::Number, 1, 12, of_median ? "The median step of the run." : "Mean from the last collective of a step to that of the next."},
               {"computes_us", "computes", "µs", Kind::Number, 1, of_median ? 12u : 0u, "The GPU runs kernels without communication."},
               {"wait_us", "waits", "µs", Kind::Number, 1, 10,
                of_median ? "The GPU only waits for the last rank." : "What this rank waits for the last one."},
               {"exposed_us", "exposed", "µs", Kind::Number, 1, report.computation ? 11u : 0u, "Part of the transfer that no computation hides."},
               {"late_us", "latest arrival", "µs", Kind::Number, 1, 18, "How long after the first rank it arrives, at the collective where it is latest."},
               {"transfer_us", "transfer", "µs", Kind::Number, 1, 12, "Time from the last arrival to the end."},
               {"caused_us", "others wait", "µs", Kind::Number, 1, 13, "What another rank waits for this one, while this one is the last."},
               {"collectives", "collectives", "", Kind::Count, 0, 12, ""},
               {"host", "host", "", Kind::Text, 0, 1, ""}}, {}};
  for (const RankRow& row : report.ranks) {
    if (row.recorded)
      table.rows.push_back({{row.rank, row.step > 0 ? row.step : kUnknown, row.computes, row.wait, row.exposed, row.late, row.transfer, row.caused,
                             row.collectives, row.host.empty() ? Table::Cell() : Table::Cell(row.host)}});
    else
      table.rows.push_back({{row.rank, {}, {}, {}, {}, {}, {}, {}, {}, "not recorded"}});
  }
  return table;
}

Table collective_table(const RankReport& report) {
  using Kind = Table::Kind;
  const bool of_median = report.median_step_us > 0;
  Table table{{{"bytes", "bytes", "", Kind::Bytes, 0, 12, "Size of one call."},
               {"count", "count", "", Kind::Significant, 0, 10, "Calls of a step."},
               {"wait_us", "waits", "µs", Kind::Number, 1, 10, of_median ? "A rank only waits until the last one arrives: mean of the ranks that wait." : "Time until the last rank arrives: mean of the ranks that wait."},
               {"transfer_us", "transfer", "µs", Kind::Number, 1, 12, "Time from the last arrival to the end."},
               {"exposed_us", "exposed", "µs", Kind::Number, 1, report.computation ? 11u : 0u, "Part of the transfer that no computation hides."},
               {"cost_us", "µs per step", "", Kind::Number, 1, 0, "Waiting and exposed transfer: what collectives add to a step."},
               {"bus_gb_s", "bus GB/s", "", Kind::Significant, 0, 9, "Bus bandwidth of a call with the mean transfer."},
               {"peak_gb_s", "peak GB/s", "", Kind::Significant, 0, 10, "What these GPUs reach with such messages when nothing else runs."},
               {"peak_percent", "% of peak", "", Kind::Number, 0, 0,
                "Bus bandwidth, of what these GPUs reach with such messages when nothing else runs."},
               {"name", "collective", "", Kind::Text, 0, 1, "Calls with the same name and size."}}, {}};
  const auto known = [](double value) { return value > 0 ? value : kUnknown; };
  for (const CollectiveRow& row : report.collectives)
    table.rows.push_back({{known(static_cast<double>(row.bytes)), row.count, row.wait, row.transfer, row.exposed, row.wait + row.exposed,
                           known(row.bus_gb_s), known(row.peak_gb_s), known(row.peak_gb_s > 0 ? 100 * row.bus_gb_s / row.peak_gb_s : 0), row.name}});
  return table;
}

std::string clocks_text(const RankReport& report) {
  if (report.clock_error_us <= 0) return "";
  return report.clock_error_us < kSurelyOneClock ? "all on one clock" : "clocks ± " + time_text(report.clock_error_us);
}

std::string step_shown_text(const RankReport& report) {
  const bool of_median = report.median_step_us > 0;
  const std::string step = of_median ? "times of the median step, " + time_text(report.median_step_us) : "times of a mean step, " + time_text(report.step_us);
  return step + left_out_text(report.pauses);
}

std::string straggler_text(const RankReport& report) { return text_of(report, report.straggler); }

std::string straggler_reason(const RankReport& report) {
  const Straggler& s = report.straggler;
  if (s.rank < 0) return "";
  return s.of_median ? waiting_text(report, s, "") : "rank " + std::to_string(s.rank) + " makes all ranks lose " + ms_text(s.cost_us) + " per step";
}

std::string costliest_text(const RankReport& report) {
  const std::vector<Cost> costs = costs_of(report);
  return costs.empty() ? "" : costs[0].text;
}

std::vector<std::string> more_cost_texts(const RankReport& report) {
  std::vector<std::string> texts;
  for (const Cost& cost : costs_of(report) | std::views::drop(1)) {
    const char* const begin = texts.empty() ? "Also, " : "And ";
    texts.push_back((cost.usual ? "Without a pattern, " : begin) + cost.text + ".");
  }
  return texts;
}

std::string usual_wait_text(const UsualWait& wait, size_t steps) {
  return "a rank waits " + ms_text(wait.us) + " of a " + (wait.of_median ? "median" : "mean") + " step (" + percent(wait.share, 0) + ") for the last one, most often for rank " +
         std::to_string(wait.rank) + " (in " + std::to_string(wait.last_steps) + " of " + std::to_string(steps) + " steps)";
}

std::string to_text(const RankReport& report) {
  if (!report.any()) return "The run has fewer than two ranks: there is nothing to compare.\n";
  if (report.steps.empty()) {
    std::string text = std::to_string(report.ranks.size()) + " ranks: there is nothing to compare.\n";
    for (const std::string& note : report.notes) text += note + "\n";
    return text;
  }
  const std::string costliest = costliest_text(report);
  std::string text = (costliest.empty() ? "no rank is late by more than the usual spread" : costliest) + "\n";
  for (const std::string& also : more_cost_texts(report)) text += also + "\n";
  text += "\n";
  text += heading(report) + "\n" +
          (report.computation ? "Exposed transfer is not hidden by computation.\n"
                              : "Only collectives were recorded, so what hides a transfer is not known.\n") +
          to_text(rank_table(report));
  if (!report.collectives.empty()) text += "\nThe same step by collective; waits: mean of the ranks that wait.\n" + to_text(collective_table(report));
  if (!report.peak.empty()) text += "peak: all-reduces of this size on the same GPUs when nothing else runs\n";
  for (const std::string& note : report.notes) text += "\n" + note;
  return report.notes.empty() ? text : text + "\n";
}

std::string to_json(const RankReport& report) {
  nlohmann::json ranks = nlohmann::json::array(), collectives = ranks;
  for (size_t r = 0; r < report.ranks.size(); ++r) {
    const RankRow& row = report.ranks[r];
    ranks.push_back({{"rank", row.rank},
                     {"host", row.host},
                     {"recorded", row.recorded},
                     {"step_us", row.step},
                     {"computes_us", number_or_null(row.computes)},
                     {"late_us", row.late},
                     {"wait_us", row.wait},
                     {"transfer_us", row.transfer},
                     {"exposed_us", number_or_null(row.exposed)},
                     {"caused_us", row.caused},
                     {"collectives", row.collectives},
                     {"late_us_by_step", lateness_json(report, r)}});
  }
  for (const CollectiveRow& row : report.collectives)
    collectives.push_back({{"name", row.name},
                           {"ranks", row.ranks > 0 ? row.ranks : static_cast<int>(report.ranks.size())},
                           {"bytes", row.bytes},
                           {"count", row.count},
                           {"wait_us", row.wait},
                           {"transfer_us", row.transfer},
                           {"exposed_us", number_or_null(row.exposed)},
                           {"bus_gb_s", row.bus_gb_s},
                           {"peak_gb_s", row.peak_gb_s}});
  nlohmann::json json{{"version", kJsonVersion},
                      {"ranks", ranks},
                      {"steps", report.steps},
                      {"collectives", collectives},
                      {"step_us", report.step_us},
                      {"median_step_us", report.median_step_us},
                      {"wait_us", report.wait_us},
                      {"longest_wait_us", report.longest_wait_us},
                      {"exposed_us", number_or_null(report.exposed_us)},
                      {"clock_error_us", report.clock_error_us},
                      {"bus_peak", ws::to_json(report.peak)},
                      {"notes", report.notes}};
  json["finding"] = costliest_text(report);
  if (report.straggler.rank >= 0) json["straggler"] = json_of(report, report.straggler);
  json["more_late"] = nlohmann::json::array();
  for (const Straggler& one : report.more_late) json["more_late"].push_back(json_of(report, one));
  if (const auto wait = usual_wait(report))
    json["usual_wait"] = {{"us", wait->us}, {"share", wait->share}, {"rank", wait->rank}, {"last_steps", wait->last_steps},
                          {"text", usual_wait_text(*wait, report.steps.size())}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::prof
