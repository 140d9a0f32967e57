#include "app/core/comparison/comparison_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "profiling/analysis/kernel_table.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"

namespace ws::app {
namespace {

using prof::Cause, prof::KernelDelta, prof::Waterfall;

double us_of_ps(int64_t ps) { return static_cast<double>(ps) * 1e-6; }

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

constexpr size_t kMostOps = 12;  // ops with a line of their own; JSON has all

Table::Row cause_row(const std::string& name, const std::string& meaning, int64_t a_ps, int64_t b_ps) {
  Table::Cell shown(name);
  shown.text = prof::shortened(name);
  return {{shown, us_of_ps(a_ps), us_of_ps(b_ps), us_of_ps(b_ps - a_ps), meaning}};
}

Table cause_rows(const Waterfall& w) {
  using Kind = Table::Kind;
  Table table{{{"name", "cause", "", Kind::Text, 0, 22, ""},
               {"a_us", "A", "", Kind::Time, 3, 12, ""},
               {"b_us", "B", "", Kind::Time, 3, 12, ""},
               {"delta_us", "B - A", "", Kind::Time, 3, 12, "", true},
               {"meaning", "meaning", "", Kind::Text, 0, 12, ""}}, {}};
  for (const Cause& cause : w.causes)
    table.rows.push_back(cause_row(prof::cause_name(cause), prof::meaning_name(cause.meaning), cause.a_ps, cause.b_ps));
  return table;
}

// Causes that print as zero are left out.
Table with_sum(Waterfall w) {
  constexpr int64_t kPrintsAsZero = 500;  // ps
  std::erase_if(w.causes, [](const Cause& cause) { return std::max(cause.a_ps, cause.b_ps) < kPrintsAsZero; });
  Table table = cause_rows(w);
  table.rows.push_back(cause_row("sum = step time", "", w.a_ps, w.b_ps));
  return table;
}

std::string causes_text(const Waterfall& w, const std::string& steps) {
  return "\nStep time, median (µs). " + steps + "\n" + ws::to_text(with_columns(with_sum(w), {"name", "a_us", "b_us", "delta_us"}), 2);
}

// Kernel names are long, so they are the last column.
std::string ops_text(const Waterfall& w, bool gpu) {
  return std::string("\nThe same, ") + (gpu ? "kernels by op (µs); if two run at once, the first one gets the time\n" : "by op (µs)\n") +
         ws::to_text(with_columns(with_sum(w), {"a_us", "b_us", "delta_us", "name"}), 2);
}

std::string kernels_text(const std::vector<KernelDelta>& kernels, bool gpu) {
  return std::string(gpu ? "\nKernels per step, or the ops of a CPU" : "\nOps per step") + ", means of the same steps\n" + ws::to_text(delta_rows(kernels), 2);
}

std::string stalls_text(const prof::StallComparison& stalls) {
  if (!stalls.any()) return {};
  const auto rows = [](std::vector<prof::StallDelta> all, bool by_line) {
    if (all.size() > kMostOps) all.resize(kMostOps);
    return ws::to_text(prof::stall_delta_table(all, by_line), 2);
  };
  const std::string head = prof::headline(stalls);
  std::string text = "\nSamples of an X-ray by kernel, with the 95 % interval of B - A" + (head.empty() ? "" : ": " + head) + "\n" + rows(stalls.kernels, false);
  return stalls.lines.empty() ? text : text + "\nThe same by line\n" + rows(stalls.lines, true);
}

std::string measure_text(const ComparedMeasure& m) {
  const std::string name = m.a.unit.empty() ? m.a.name : m.a.name + " (" + m.a.unit + ")";
  const std::string text =
      formatted("  {:<34} {:>13} {:>13} {:>13} {:>10}", name, fixed(m.a.value.value, m.a.decimals),
                fixed(m.b.value.value, m.b.decimals), signed_fixed(m.delta.delta, m.a.decimals),
                std::isfinite(m.delta.noise) ? significant(m.delta.noise, 2) : "–");
  const double percent = m.delta.percent;
  if (is_quiet(m.delta.verdict) || !std::isfinite(percent) || percent == 0) return text + "  " + verdict_text(m.delta) + "\n";
  return text + formatted("  {:+.1f} %  {}\n", percent, verdict_text(m.delta));
}

std::string measures_text(const Comparison& c) {
  std::string text = "\nMeasured values, with the 95 % interval of B - A\n" +
                     formatted("  {:<34} {:>13} {:>13} {:>13} {:>10}\n", "", "A", "B", "B - A", "±");
  for (const ComparedMeasure& m : c.measures)
    if (m.delta.known()) text += measure_text(m);
  return text;
}

std::string noise_note(const MeasureDelta& d) {
  return d.verdict == Verdict::NoiseUnknown ? " (" + no_interval_text(d) + ")" : "";
}

constexpr double kRatioFrom = 2;

// How many times as long the slower of both takes.
double pace_change(const MeasureValue& a, const MeasureValue& b) {
  const double ratio = b.value.value / a.value.value;
  return std::max(ratio, 1 / ratio);
}

const ComparedMeasure& result_measure(const Comparison& c) {
  const ComparedMeasure& accuracy = c.of(MeasureKind::TestAccuracy);
  return accuracy.delta.known() ? accuracy : c.of(MeasureKind::TestLoss);
}

std::string samples_text(const ComparedMeasure& speed, const std::string& a, const std::string& b) {
  const MeasureDelta& d = speed.delta;
  if (!d.known()) return a + " and " + b + " take different batches";
  if (d.verdict == Verdict::WithinNoise) return b + " trains as many samples per second as " + a + ": within noise";
  const double ratio = speed.b.value.value / speed.a.value.value;
  if (ratio >= 2)
    return b + " trains " + ratio_text(ratio) + " as many samples per second as " + a + noise_note(d);
  return b + " trains " + fixed(std::abs(d.percent), 1) + " % " + (d.delta > 0 ? "more" : "fewer") +
         " samples per second than " + a + noise_note(d);
}

nlohmann::json measure_json(const ComparedMeasure& m) {
  return {{"name", m.a.name},
          {"group", m.a.group},
          {"unit", m.a.unit},
          {"decimals", m.a.decimals},
          {"a", number(m.a.value.value)},
          {"b", number(m.b.value.value)},
          {"delta", number(m.delta.delta)},
          {"noise", number(m.delta.noise)},
          {"beyond_noise", !is_quiet(m.delta.verdict) && m.delta.verdict != Verdict::NoiseUnknown},
          {"verdict", verdict_text(m.delta)}};
}

}  // namespace

Table delta_rows(const std::vector<KernelDelta>& kernels) {
  using Kind = Table::Kind;
  Table table{{{"a_count", "calls A", "", Kind::Number, 2, 8, ""},
               {"b_count", "calls B", "", Kind::Number, 2, 8, ""},
               {"a_us", "A", "µs", Kind::Time, 3, 11, ""},
               {"b_us", "B", "µs", Kind::Time, 3, 11, ""},
               {"delta_us", "B - A", "µs", Kind::Time, 3, 11, "", true},
               {"name", "name", "", Kind::Text, 0, 1, ""}}, {}};
  for (const KernelDelta& k : kernels) {
    Table::Cell name(k.name);
    name.text = prof::shortened(k.name);
    table.rows.push_back({{k.a_count, k.b_count, k.a_us, k.b_us, k.delta_us(), name}});
  }
  return table;
}

std::string ratio_text(double ratio) {
  const int decimals = ratio < 10 ? 2 : ratio < 100 ? 1 : 0;
  return fixed(ratio, decimals) + "×";
}

const char* verdict_text(const MeasureDelta& delta) {
  switch (delta.verdict) {
    case Verdict::Better:
      return "better";
    case Verdict::Worse:
      return "worse";
    case Verdict::WithinNoise:
      return kWithinNoise;
    case Verdict::Equal:
      return "equal";
    case Verdict::NoiseUnknown:
      return delta.no_noise;
    case Verdict::Neutral:
      break;
  }
  return "not judged";
}

std::string choice_text(const std::string& value) { return value.empty() ? "none" : value; }

std::string no_interval_text(const MeasureDelta& delta) { return std::string("no interval: ") + delta.no_noise; }

bool is_quiet(Verdict verdict) { return verdict == Verdict::WithinNoise || verdict == Verdict::Equal; }

bool noise_hides_all(const MeasureValue& a, const MeasureValue& b) {
  constexpr double kLarge = 0.2;
  return delta_of(a, b).noise > kLarge * std::min(a.value.value, b.value.value);
}

// From twice on, a ratio is given. Below, the time is given in percent, as in the table: "37 % faster" could be read as
// less time or as more steps.
std::string pace_text(const MeasureValue& a, const MeasureValue& b, const std::string& than) {
  const MeasureDelta d = delta_of(a, b);
  if (!d.known()) return {};
  if (d.verdict == Verdict::WithinNoise) return kWithinNoise;
  const double change = pace_change(a, b);
  const bool less = b.value.value < a.value.value;
  const int digits = d.noise > 0.01 * a.value.value ? 0 : 1;
  const std::string pace = change >= kRatioFrom ? ratio_text(change) + (less ? " faster" : " slower")
                                                : fixed(std::abs(d.percent), digits) + (less ? " % less time" : " % more time");
  return pace + than + noise_note(d);
}

std::string headline_of(GateVerdict verdict, double change, double limit) {
  const std::string size = fixed(100 * std::abs(change), 2) + " %";
  switch (verdict) {
    case GateVerdict::Slower:
      return "slower by " + size;
    case GateVerdict::Faster:
      return "faster by " + size;
    case GateVerdict::NoDifference:
      return "no difference beyond " + percent(limit);
    case GateVerdict::CannotTell:
      break;
  }
  return "cannot tell";
}

std::string judged_text(const StepVerdict& judged) {
  const std::string head = headline_of(judged.verdict, judged.change, judged.limit);
  if (std::isnan(judged.change)) return head + ": a step time is not known";
  if (std::isnan(judged.low)) return head + ": the noise is not known";
  return head + " (" + signed_fixed(100 * judged.low, 2) + " % to " + signed_fixed(100 * judged.high, 2) + " %)";
}

std::string percent_change_text(double percent) {
  const double ratio = 1 + percent / 100;
  if (percent >= 900) return fixed(ratio, ratio < 100 ? 1 : 0) + " times";
  return (percent > 0 ? "+" : percent < 0 ? "−" : "") + fixed(std::abs(percent), 1) + " %";
}

std::string speed_text(const Comparison& c, const std::string& a, const std::string& b) {
  switch (c.speed) {
    case Speed::OtherWork:
      return a + " and " + b + (c.programs.empty() ? " train different things" : " are different programs: " + c.programs);
    case Speed::OtherBatch:
      return samples_text(c.of(MeasureKind::Throughput), a, b);
    case Speed::WithinNoise:
      return noise_hides_all(c.of(MeasureKind::StepTime).a, c.of(MeasureKind::StepTime).b)
                 ? "Too much noise to compare " + a + " and " + b
                 : b + " is as fast as " + a + ": within noise";
    case Speed::Differs:
      return b + (pace_change(c.of(MeasureKind::StepTime).a, c.of(MeasureKind::StepTime).b) >= kRatioFrom ? " is " : " takes ") + pace_text(c.of(MeasureKind::StepTime).a, c.of(MeasureKind::StepTime).b, " per step");
    case Speed::Unknown:
      break;
  }
  return a + " and " + b + " side by side";
}

std::string result_text(const Comparison& c, const std::string& a, const std::string& b) {
  const bool classes = c.of(MeasureKind::TestAccuracy).delta.known();
  const ComparedMeasure& m = result_measure(c);
  if (!m.delta.known()) return {};
  if (is_quiet(m.delta.verdict))
    return b + (classes ? " is as accurate as " : " ends at the test loss of ") + a + ": within noise";
  const std::string unit = classes ? " %" : "", of_a = fixed(m.a.value.value, m.a.decimals) + unit,
                    of_b = fixed(m.b.value.value, m.b.decimals) + unit;
  return b + (classes ? " reaches " : " ends at ") + of_b + (classes ? " test accuracy, " : " test loss, ") + a + " " + of_a;
}

std::string answer_text(const Comparison& c, const std::string& a, const std::string& b) {
  const std::string result = c.asked.result ? result_text(c, a, b) : "";
  if (result.empty()) return speed_text(c, a, b);
  if (c.asked.time && c.speed == Speed::WithinNoise && is_quiet(result_measure(c).delta.verdict))
    return b + " and " + a + ": " + (c.of(MeasureKind::TestAccuracy).delta.known() ? "same accuracy" : "same test loss") +
           ", same speed, within noise";
  if (!c.asked.time || c.speed == Speed::Unknown) return result;
  std::string speed = speed_text(c, a, b);
  if (speed.starts_with("Too ")) speed[0] = 't';  // in the middle of a sentence
  return result + "; " + speed;
}

std::string group_word(const Comparison& c, prof::GroupBy by) {
  if (by == prof::GroupBy::Name) return "kernel";
  return by == prof::GroupBy::Layer && !c.choices_known ? "module" : to_string(by);
}

std::string to_text(const Comparison& c, prof::GroupBy by) {
  std::string text = "A: " + c.a_name + "\nB: " + c.b_name + "\n" + answer_text(c) + "\n";
  const auto rows = c.grouped.find(by);
  const std::string what = group_word(c, by);
  if (rows == c.grouped.end()) {
    if (by == prof::GroupBy::Block) return text + "\nNo kernels of blocks of layers were recorded in these runs.\n";
    if (what == "layer") return text + "\nNeither run names a layer: no kernels were recorded.\n";
    const std::string level = by == prof::GroupBy::Layer ? "modules" : by == prof::GroupBy::Op ? "ops" : "lines";
    return text + "\nNeither run names a " + what + ". Record the program again with --level " + level + ".\n";
  }
  return text + "\n" + (c.gpu ? "Kernels per step by " : "Ops per step by ") + what + ", means of the same steps\n" + ws::to_text(delta_rows(rows->second), 2);
}

std::string to_text(const Comparison& c) {
  std::string text = "A: " + c.a_name + "\nB: " + c.b_name + "\n" + answer_text(c) + "\n";
  for (const FieldChange& choice : c.choices)
    text += "Setting: " + std::string(field(choice.key).label) + " " + choice_text(choice.from) + " -> " + choice_text(choice.to) + "\n";
  for (const std::string& warning : c.warnings) text += "Note: " + warning + "\n";
  text += measures_text(c);
  const std::string waits = stalls_text(c.stalls);
  if (!c.split) return text + waits;
  text += causes_text(c.by_kind, c.steps_used);
  const bool ops = std::ranges::any_of(c.by_op.causes, [](const Cause& cause) { return !cause.op.empty(); });
  if (ops) text += ops_text(prof::folded(c.by_op, kMostOps), c.gpu);
  return text + (c.kernels.empty() ? "" : kernels_text(c.kernels, c.gpu)) + waits;
}

std::string to_json(const Comparison& c) {
  nlohmann::json json{{"version", kJsonVersion},
                      {"a", c.a_name},
                      {"b", c.b_name},
                      {"summary", answer_text(c)},
                      {"means", c.steps_used},
                      {"warnings", c.warnings},
                      {"choices", nlohmann::json::array()},
                      {"causes", nlohmann::json::array()},
                      {"causes_by_op", nlohmann::json::array()},
                      {"metrics", nlohmann::json::array()},
                      {"kernels", nlohmann::json::array()}};
  for (const FieldChange& choice : c.choices)
    json["choices"].push_back({{"name", field(choice.key).label}, {"a", choice.from}, {"b", choice.to}});
  json["step"] = nullptr;
  if (c.split)
    json["step"] = {{"a_us", us_of_ps(c.by_kind.a_ps)},
                    {"b_us", us_of_ps(c.by_kind.b_ps)},
                    {"delta_us", us_of_ps(c.by_kind.b_ps - c.by_kind.a_ps)}};
  json["causes"] = rows_json(cause_rows(c.by_kind));
  json["causes_by_op"] = rows_json(cause_rows(c.by_op));
  for (size_t i = 0; i < c.by_op.causes.size(); ++i) json["causes_by_op"][i]["op"] = !c.by_op.causes[i].op.empty();
  for (const ComparedMeasure& m : c.measures)
    if (m.delta.known()) json["metrics"].push_back(measure_json(m));
  json["kernels"] = rows_json(delta_rows(c.kernels));
  if (c.stalls.any()) {
    const auto rows = [](const std::vector<prof::StallDelta>& all, bool by_line) { return rows_json(prof::stall_delta_table(all, by_line)); };
    json["stalls"] = {{"kernels", rows(c.stalls.kernels, false)}, {"lines", rows(c.stalls.lines, true)}};
  }
  for (const auto& [by, rows] : c.grouped)
    json[by == prof::GroupBy::Layer ? "modules" : std::string(to_string(by)) + "s"] = rows_json(delta_rows(rows));
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::app
