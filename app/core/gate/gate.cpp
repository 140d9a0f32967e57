#include "app/core/gate/gate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "app/core/comparison/comparison_text.h"
#include "profiling/base/statistics.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"

namespace ws::app {
namespace {

constexpr size_t kAlwaysBusy = 20;  // so many pairs, all left out: the machine will not get quiet

const char* verdict_name(GateVerdict verdict) {
  constexpr const char* kNames[] = {"cannot tell", "no difference", "slower", "faster"};
  return kNames[static_cast<size_t>(verdict)];
}

double median_of(const GateResult& result, double MeasuredPair::*side) {
  std::vector<double> values;
  for (const MeasuredPair& pair : result.pairs)
    if (!pair.busy) values.push_back(pair.*side);
  return median(values);
}

void finish(GateResult& result, double limit) {
  result.state = judge(result.pairs, limit);
  result.limit = limit;
  result.median_a = median_of(result, &MeasuredPair::a), result.median_b = median_of(result, &MeasuredPair::b);
}

std::string change_text(double change) { return signed_fixed(100 * change, 2) + " %"; }

std::string headline(const GateResult& result) { return headline_of(result.state.verdict, result.state.change, result.limit); }

std::string interval_text(const GateState& state) {
  if (state.used == 0 && state.busy > 0) return "no interval: other programs used the processors or the GPU in all pairs";
  if (!state.looked) return "no interval: fewer than 9 pairs were left";
  return change_text(state.low) + " to " + change_text(state.high) + ", 99 % sure over all looks";
}

std::string left_out_text(const GateResult& result) {
  const GateState& state = result.state;
  std::string text;
  const auto add = [&](size_t count, const std::string& what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(state.busy, "with a busy machine" + (result.shared_gpu > 0 ? formatted(" ({} beside another process on the GPU)", result.shared_gpu) : ""));
  add(state.mixed, "in different modes");
  add(state.outliers, "far from all others");
  add(result.unused_a, "of A, as B has fewer"), add(result.unused_b, "of B, as A has fewer");
  return text.empty() ? text : "left out: " + text;
}

std::string names_text(const std::vector<std::string>& names, const char* between = ", ") {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

// "carried by  module fc1        12.0 → 24.0 µs per step"
std::string reasons_text(const GateReasons& reasons) {
  std::string text;
  const auto line = [&](const std::string& head, const std::string& words) { text += formatted("{:<10} {}\n", head, words); };
  for (const GateReason& row : reasons.rows)
    line(&row == &reasons.rows[0] ? "carried by" : "", row.kind + " " + row.name + "   " + significant(row.a_us) + " → " + significant(row.b_us) + " µs per step");
  if (!reasons.only_a.empty()) line("only in A", names_text(reasons.only_a));
  if (!reasons.only_b.empty()) line("only in B", names_text(reasons.only_b));
  if (!reasons.missing.empty()) line("carried by", reasons.missing);
  return text;
}

std::string modes_text(const GateState& state) {
  if (!state.two_modes) return {};
  return "two modes " + percent(state.mode_ratio - 1) + " apart: A was " + std::to_string(state.slow_a) + " times in the slow one, B " + std::to_string(state.slow_b) + " times";
}

}  // namespace

GateResult run_gate(const GateOptions& options, const Measure& measure, const Seconds& clock, const Watch& watch) {
  GateResult result;
  std::mt19937 lot(options.seed);
  const double begin = clock();
  const auto taken = [&](bool second) {
    const GateMeasurement one = measure(second);
    if (result.failure.empty() && !one.failure.empty()) result.failure = std::string(second ? "B" : "A") + ": " + one.failure;
    else if (result.failure.empty() && !(one.value > 0)) result.failure = std::string(second ? "B" : "A") + ": its figure is not above 0.";
    return one;
  };
  for (const bool second : {false, true})
    if (options.throwaway && result.failure.empty()) taken(second);
  const auto always_busy = [&] { return result.pairs.size() >= kAlwaysBusy && result.state.used == 0; };
  while (result.failure.empty() && !result.state.decided && result.pairs.size() < options.most_pairs && !always_busy()) {
    const bool a_first = lot() % 2 == 0;
    const GateMeasurement first = taken(!a_first), second = result.failure.empty() ? taken(a_first) : GateMeasurement{};
    if (!result.failure.empty()) break;
    result.a_first.push_back(a_first);
    const bool shared_gpu = first.shared_gpu || second.shared_gpu;
    result.shared_gpu += shared_gpu;
    result.pairs.push_back({a_first ? first.value : second.value, a_first ? second.value : first.value, shared_gpu || std::max(first.others, second.others) > options.busy});
    result.state = judge(result.pairs, options.limit);
    if (watch) watch(result.state);
  }
  finish(result, options.limit);
  result.seconds = clock() - begin;
  return result;
}

GateResult judge_measured(const std::vector<double>& a, const std::vector<double>& b, double limit) {
  GateResult result;
  const size_t pairs = std::min(a.size(), b.size());
  for (size_t i = 0; i < pairs; ++i) result.pairs.push_back({a[i], b[i]});
  result.unused_a = a.size() - pairs, result.unused_b = b.size() - pairs;
  finish(result, limit);
  return result;
}

GateEnd end_of(const GateResult& result) {
  if (!result.failure.empty()) return GateEnd::Failed;
  if (result.state.verdict == GateVerdict::Slower) return GateEnd::Slower;
  if (result.state.verdict == GateVerdict::CannotTell && !(result.state.looked && result.state.high <= result.limit)) return GateEnd::CannotTell;
  return GateEnd::WithinLimit;
}

std::string to_text(const GateResult& result) {
  if (!result.failure.empty()) return result.failure + "\n";
  const GateState& state = result.state;
  std::string text = headline(result) + "\n";
  text += formatted("{:<10} {}\n", "change", change_text(state.change) + "   (" + interval_text(state) + ")");
  text += formatted("{:<10} {} {}   {}\n", "A", significant(result.median_a, 4), result.unit, result.name_a);
  text += formatted("{:<10} {} {}   {}\n", "B", significant(result.median_b, 4), result.unit, result.name_b);
  text += formatted("{:<10} {}, {} used, {}\n", "pairs", state.pairs, state.used, duration_text(result.seconds));
  if (const std::string left_out = left_out_text(result); !left_out.empty()) text += formatted("{:<10} {}\n", "", left_out);
  if (const std::string modes = modes_text(state); !modes.empty()) text += formatted("{:<10} {}\n", "", modes);
  if (!result.clocks.empty()) text += formatted("{:<10} {}\n", "clocks", result.clocks);
  text += reasons_text(result.reasons);
  text += formatted("{:<10} {} slower; false alarms in at most 1 % of gates\n", "limit", percent(result.limit, 1));
  return text;
}

std::string to_json(const GateResult& result) {
  const GateState& state = result.state;
  nlohmann::ordered_json json{{"version", kJsonVersion}, {"verdict", verdict_name(state.verdict)}, {"change", state.change}};
  if (state.looked) json["low"] = state.low, json["high"] = state.high;
  json["limit"] = result.limit, json["false_alarms"] = kFalseAlarms, json["unit"] = result.unit;
  json["a"] = {{"name", result.name_a}, {"median", result.median_a}}, json["b"] = {{"name", result.name_b}, {"median", result.median_b}};
  json["pairs"] = state.pairs, json["used"] = state.used, json["left_out"] = {{"busy", state.busy}, {"shared_gpu", result.shared_gpu}, {"mixed_modes", state.mixed}, {"outliers", state.outliers}, {"a", result.unused_a}, {"b", result.unused_b}};
  json["two_modes"] = state.two_modes, json["seconds"] = result.seconds;
  if (!result.clocks.empty()) json["clocks"] = result.clocks;
  if (!result.failure.empty()) json["failure"] = result.failure;
  json["carried_by"] = nlohmann::ordered_json::array();
  for (const GateReason& row : result.reasons.rows) json["carried_by"].push_back({{"kind", row.kind}, {"name", row.name}, {"a_us", row.a_us}, {"b_us", row.b_us}});
  json["only_in_a"] = result.reasons.only_a, json["only_in_b"] = result.reasons.only_b;
  json["measured"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < result.pairs.size(); ++i)
    json["measured"].push_back({{"a", result.pairs[i].a}, {"b", result.pairs[i].b}, {"busy", result.pairs[i].busy}, {"first", i < result.a_first.size() && !result.a_first[i] ? "b" : "a"}});
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_markdown(const GateResult& result) {
  if (!result.failure.empty()) return "**Performance gate: no verdict.** " + result.failure + "\n";
  const GateState& state = result.state;
  std::string text = "**Performance gate: " + headline(result) + "**\n\n| | median | |\n|---|---:|---|\n";
  const auto row = [&](const char* side, double value, const std::string& name) { text += std::string("| ") + side + " | " + significant(value, 4) + " " + result.unit + " | `" + name + "` |\n"; };
  row("A", result.median_a, result.name_a);
  row("B", result.median_b, result.name_b);
  text += "| change | " + change_text(state.change) + " | " + interval_text(state) + " |\n";
  for (const GateReason& one : result.reasons.rows) text += "| " + one.kind + " `" + one.name + "` | " + significant(one.a_us) + " → " + significant(one.b_us) + " µs | a step |\n";
  for (const auto& [side, names] : {std::pair{"A", &result.reasons.only_a}, {"B", &result.reasons.only_b}})
    if (!names->empty()) text += std::string("| only in ") + side + " | | `" + names_text(*names, "`, `") + "` |\n";
  text += "\n" + std::to_string(state.used) + " of " + std::to_string(state.pairs) + " pairs; limit " + percent(result.limit, 1) + "; false alarms in at most 1 % of gates.";
  for (const std::string& more : {left_out_text(result), modes_text(state), result.clocks.empty() ? "" : "clocks " + result.clocks})
    if (!more.empty()) text += " " + more + ".";
  return text + "\n";
}

}  // namespace ws::app
