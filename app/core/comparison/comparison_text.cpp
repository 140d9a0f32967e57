#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/waterfall.h"

namespace ws::prof {

namespace {

template <class... Values>
std::string line(const char* format, Values... values) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return std::string(buffer) + "\n";
}

double us_of_ps(int64_t ps) { return static_cast<double>(ps) * 1e-6; }

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

constexpr size_t kMostOps = 12;  // of which each has a line of its own; JSON has them all

std::string causes_text(const Waterfall& w) {
  std::string text = "\nTime per step (µs)\n" + line("  %-18s %12s %12s %12s", "cause", "A", "B", "B - A");
  for (const Cause& cause : w.causes) {
    text += line("  %-18s %12.3f %12.3f %+12.3f", meaning_name(cause.meaning), us_of_ps(cause.a_ps),
                 us_of_ps(cause.b_ps), us_of_ps(cause.delta_ps()));
  }
  text += line("  %-18s %12.3f %12.3f %+12.3f", "sum = wall time", us_of_ps(w.a_ps), us_of_ps(w.b_ps),
               us_of_ps(w.b_ps - w.a_ps));
  return text;
}

// Names of kernels are long: they stand last.
std::string ops_text(const Waterfall& w) {
  std::string text = "\nThe same, kernels by op (µs); while two run, the time is the first one's\n" +
                     line("  %12s %12s %12s  %s", "A", "B", "B - A", "cause");
  for (const Cause& cause : w.causes) {
    text += line("  %12.3f %12.3f %+12.3f  %s", us_of_ps(cause.a_ps), us_of_ps(cause.b_ps), us_of_ps(cause.delta_ps()),
                 shortened(cause_name(cause)).c_str());
  }
  return text + line("  %12.3f %12.3f %+12.3f  %s", us_of_ps(w.a_ps), us_of_ps(w.b_ps), us_of_ps(w.b_ps - w.a_ps),
                     "sum = wall time");
}

nlohmann::json cause_json(const Cause& cause) {
  return {{"name", cause_name(cause)},
          {"a_us", us_of_ps(cause.a_ps)},
          {"b_us", us_of_ps(cause.b_ps)},
          {"delta_us", us_of_ps(cause.delta_ps())}};
}

std::string kernels_text(const std::vector<KernelDelta>& kernels) {
  std::string text = "\nKernels per step, or the ops of a CPU\n" +
                     line("  %8s %8s %12s %12s %12s  %s", "calls A", "calls B", "A µs", "B µs", "B - A µs", "name");
  for (const KernelDelta& k : kernels) {
    text += line("  %8.2f %8.2f %11.3f %11.3f %+11.3f  %s", k.a_count, k.b_count, k.a_us, k.b_us, k.delta_us(),
                 shortened(k.name).c_str());
  }
  return text;
}

// Both values and what is between them with the same digits, five of the larger one.
int decimals_of(const MetricDelta& m) {
  const double most = std::max({std::abs(m.a.value), std::abs(m.b.value), std::abs(m.delta)});
  if (!std::isfinite(most) || most == 0 || m.unit == "B") return 0;
  return std::clamp(4 - static_cast<int>(std::floor(std::log10(most))), 0, 9);
}

std::string metric_text(const MetricDelta& m) {
  const int decimals = decimals_of(m);
  const std::string name = m.unit.empty() ? m.name : m.name + " (" + m.unit + ")";
  const int width = 30 + static_cast<int>(std::ranges::count_if(name, [](char c) { return (c & 0xc0) == 0x80; }));
  const double share = m.a.value != 0 ? 100 * m.delta / std::abs(m.a.value) : 0;
  std::string text = line("  %-*s %13.*f %13.*f %+13.*f %10.2g", width, name.c_str(), decimals, m.a.value, decimals,
                          m.b.value, decimals, m.delta, m.noise);
  text.pop_back();
  if (!m.beyond_noise) return text + "  within noise\n";
  return text + (std::isfinite(share) && share != 0 ? line("  %+.1f %%", share) : "\n");
}

std::string metrics_text(const std::vector<MetricDelta>& metrics) {
  std::string text = "\nMeasured values; the 95 % interval of B - A is that much either way\n" +
                     line("  %-30s %13s %13s %13s %11s", "", "A", "B", "B - A", "±");
  for (const MetricDelta& m : metrics) text += metric_text(m);
  return text;
}

}  // namespace

std::string to_text(const Comparison& c) {
  std::string text = "A: " + c.a_name + "\nB: " + c.b_name + "\n";
  for (const Comparison::Choice& choice : c.choices)
    text += "Choice: " + choice.name + " " + choice.a + " -> " + choice.b + "\n";
  for (const std::string& warning : c.warnings) text += "Note: " + warning + "\n";
  if (c.split) text += causes_text(c.steps) + ops_text(folded(c.by_op, kMostOps));
  text += metrics_text(c.metrics);
  if (c.split) text += kernels_text(c.kernels);
  return text;
}

std::string to_json(const Comparison& c) {
  nlohmann::json json{{"a", c.a_name},
                      {"b", c.b_name},
                      {"warnings", c.warnings},
                      {"choices", nlohmann::json::array()},
                      {"causes", nlohmann::json::array()},
                      {"causes_by_op", nlohmann::json::array()},
                      {"metrics", nlohmann::json::array()},
                      {"kernels", nlohmann::json::array()}};
  for (const Comparison::Choice& choice : c.choices)
    json["choices"].push_back({{"name", choice.name}, {"a", choice.a}, {"b", choice.b}});
  json["step"] = nullptr;
  if (c.split)
    json["step"] = {{"a_us", us_of_ps(c.steps.a_ps)},
                    {"b_us", us_of_ps(c.steps.b_ps)},
                    {"delta_us", us_of_ps(c.steps.b_ps - c.steps.a_ps)}};
  for (const Cause& cause : c.steps.causes) json["causes"].push_back(cause_json(cause));
  for (const Cause& cause : c.by_op.causes) {
    json["causes_by_op"].push_back(cause_json(cause));
    json["causes_by_op"].back()["op"] = !cause.op.empty();
  }
  for (const MetricDelta& m : c.metrics) {
    json["metrics"].push_back({{"name", m.name},
                               {"unit", m.unit},
                               {"a", number(m.a.value)},
                               {"b", number(m.b.value)},
                               {"delta", number(m.delta)},
                               {"noise", number(m.noise)},
                               {"beyond_noise", m.beyond_noise}});
  }
  for (const KernelDelta& k : c.kernels) {
    json["kernels"].push_back({{"name", k.name},
                               {"a_count", k.a_count},
                               {"b_count", k.b_count},
                               {"a_us", k.a_us},
                               {"b_us", k.b_us},
                               {"delta_us", k.delta_us()}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::prof
