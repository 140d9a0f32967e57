// The result of an experiment as text: a table to read, CSV, and a summary in sentences.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "app/core/experiments/experiment.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

std::string cell(double value, int decimals) { return std::isnan(value) ? "-" : fixed(value, decimals); }

struct Measure {
  double TrialResult::*value;
  const char *name, *unit;
  double factor;
  int decimals;
  bool low_is_good;
};

Measure measure_of(const std::string& look_at) {
  if (look_at == "samples_per_s") return {&TrialResult::samples_per_s, "", " samples/s", 1, 0, false};
  if (look_at == "first_loss") return {&TrialResult::first_loss, "a first loss of ", "", 1, 3, true};
  if (look_at == "test_accuracy") return {&TrialResult::test_accuracy, "", " % test accuracy", 100, 2, false};
  return {&TrialResult::us_per_step, "", " µs per step", 1, 1, true};
}

std::vector<const TrialResult*> trained(const ExperimentResult& result, const Measure& measure) {
  std::vector<const TrialResult*> all;
  for (const TrialResult& t : result.trials)
    if (!t.runs.empty() && std::isfinite(t.*measure.value) && (t.*measure.value != 0 || !measure.low_is_good))
      all.push_back(&t);
  return all;
}

// The widest spread of the repeats, as a share of the median.
double widest_spread(const std::vector<const TrialResult*>& all) {
  double widest = 0;
  for (const TrialResult* t : all)
    if (t->runs.size() > 1 && t->us_per_step > 0) widest = std::max(widest, (t->high - t->low) / t->us_per_step);
  return widest;
}

// How far the best and the worst trial are apart. Times whose repeats overlap are within noise.
std::string factor_text(const Measure& measure, const TrialResult& best, const TrialResult& worst) {
  const double ratio =
      measure.low_is_good ? worst.*measure.value / (best.*measure.value) : best.*measure.value / (worst.*measure.value);
  if (!std::isfinite(ratio)) return "";
  const std::string factor = ": a factor of " + cell(ratio, ratio < 10 ? 2 : 1);
  const bool time = measure.value == &TrialResult::us_per_step || measure.value == &TrialResult::samples_per_s;
  if (!time) return factor;
  if (best.runs.size() < 2 || worst.runs.size() < 2) return factor + " (no interval: one run each)";
  // The slowest repeat of the best one beside the fastest repeat of the worst one.
  return ratio <= best.high / best.us_per_step * worst.us_per_step / worst.low ? ": within noise" : factor;
}

}  // namespace

std::string measured_text(const ExperimentResult& result) {
  const Measure measure = measure_of(result.spec.look_at);
  std::vector<const TrialResult*> all = trained(result, measure);
  if (all.size() < 2) return "";
  std::ranges::stable_sort(all, [&](const TrialResult* a, const TrialResult* b) {
    return measure.low_is_good ? a->*measure.value < b->*measure.value : a->*measure.value > b->*measure.value;
  });
  const TrialResult &best = *all.front(), &worst = *all.back();
  const auto figure = [&](const TrialResult& t) {
    return measure.name + cell(t.*measure.value * measure.factor, measure.decimals) + measure.unit;
  };
  std::string text = result.device + ": “" + best.trial.label + "” has " + figure(best) + ", “" + worst.trial.label +
                     "” " + figure(worst);
  if (result.spec.look_at != "test_accuracy") text += factor_text(measure, best, worst);
  text += ".";
  if (const double spread = widest_spread(all); spread > 0)
    text += " The repeats of a combination lie at most " + cell(100 * spread, 1) + " % apart.";
  if (!result.complete) text += " The experiment is not complete yet.";
  return text;
}

std::string experiment_table(const ExperimentResult& result) {
  size_t width = 11;
  for (const TrialResult& t : result.trials) width = std::max(width, t.trial.label.size());
  std::string text = formatted("{:<{}}  ", "combination", width);
  for (const char* head : {"µs/step", "spread", "gain", "first loss", "accuracy", "alloc. calls", "peak memory"})
    text += formatted("{:>12}  ", head);
  text += "\n";
  double first = 0;
  for (const TrialResult& t : result.trials) {
    text += formatted("{:<{}}  ", t.trial.label, width);
    if (!t.trial.skipped.empty() && t.runs.empty()) {
      text += "skipped: " + t.trial.skipped + "\n";
      continue;
    }
    if (t.runs.empty()) {
      text += "not trained yet\n";
      continue;
    }
    if (first == 0) first = t.us_per_step;
    for (const std::string& value :
         {cell(t.us_per_step, 1), t.runs.size() > 1 ? cell(t.low, 1) + "–" + cell(t.high, 1) : "-",
          t.us_per_step > 0 ? cell(first / t.us_per_step, 2) + "×" : "-", cell(t.first_loss, 3),
          cell(100 * t.test_accuracy, 2), cell(t.allocator_calls_per_step, 1),
          t.peak_bytes > 0 ? bytes_text(static_cast<double>(t.peak_bytes)) : "-"})
      text += formatted("{:>12}  ", value);
    text += "\n";
  }
  return text;
}

std::string experiment_csv(const ExperimentResult& result) {
  std::ostringstream out;
  out << "trial,label,repeats,us_per_step,us_low,us_high,samples_per_s,first_loss,final_loss,test_accuracy,allocator_"
         "calls_per_step,peak_bytes,skipped\n";
  for (const TrialResult& t : result.trials) {
    out << t.trial.index << "," << csv_cell(t.trial.label) << ',' << t.runs.size() << ',';
    if (t.runs.empty())
      out << ",,,,,,,,,";
    else
      out << t.us_per_step << ',' << t.low << ',' << t.high << ',' << t.samples_per_s << ',' << t.first_loss << ','
          << t.final_loss << ',' << t.test_accuracy << ',' << t.allocator_calls_per_step << ',' << t.peak_bytes << ',';
    out << csv_cell(t.trial.skipped) << '\n';
  }
  return out.str();
}

}  // namespace ws::app
