#include "app/pages/experiments/experiments_model.h"

#include <QObject>
#include <algorithm>
#include <cmath>

#include "app/text/units.h"
#include "profiling/base/statistics.h"

namespace ws::app {
namespace {

double value_of(const TrialRun& run, Outcome outcome) {
  switch (outcome) {
    case Outcome::StepTime:
      return run.us_per_step;
    case Outcome::Throughput:
      return run.samples_per_s;
    case Outcome::FirstLoss:
      return run.first_loss;
    case Outcome::FinalLoss:
      return run.final_loss;
    case Outcome::Accuracy:
      return 100 * run.test_accuracy;
    case Outcome::DriverCalls:
      return run.allocator_calls_per_step;
    case Outcome::Peak:
      return static_cast<double>(run.peak_bytes) / (1 << 20);
  }
  return 0;
}

// Returns the last one if several are equally long, so that the order in the file decides which axis goes across.
size_t longest_axis(const ExperimentSpec& spec) {
  size_t longest = 0;
  for (size_t i = 1; i < spec.axes.size(); ++i)
    if (spec.axes[i].values.size() >= spec.axes[longest].values.size()) longest = i;
  return longest;
}

QString label_of(const std::string& key) {
  const auto label = field(key).label;
  return QString::fromUtf8(label.data(), static_cast<qsizetype>(label.size()));
}

std::vector<double> numbers_of(const QStringList& items) {
  std::vector<double> numbers;
  for (const QString& item : items) {
    bool ok = false;
    const double value = item.section(',', 0, 0).toDouble(&ok);  // "64,64,64" is a width of 64
    if (!ok || value <= 0) return {};
    numbers.push_back(value);
  }
  return numbers;
}

OutcomeGrid ladder_grid(const ExperimentResult& result) {
  OutcomeGrid grid;
  grid.groups << QString();
  for (const TrialResult& t : result.trials) {
    grid.items << QString::fromStdString(t.trial.label);
    grid.trial.push_back(t.trial.index);
  }
  return grid;
}

}  // namespace

std::vector<OutcomeInfo> outcomes() {
  static const std::vector<OutcomeInfo> all{
      {Outcome::StepTime, QObject::tr("Step time"), "µs", 1},
      {Outcome::Throughput, QObject::tr("Throughput"), QObject::tr("samples/s"), 0},
      {Outcome::FirstLoss, QObject::tr("First loss"), "", 3},
      {Outcome::FinalLoss, QObject::tr("Batch loss"), "", 4},
      {Outcome::Accuracy, QObject::tr("Test accuracy"), "%", 2},
      {Outcome::DriverCalls, QObject::tr("Allocator calls per step"), "", 1},
      {Outcome::Peak, QObject::tr("Peak memory"), "MiB", 2}};
  return all;
}

const OutcomeInfo& info(Outcome outcome) {
  static const auto all = outcomes();
  return all[static_cast<size_t>(outcome)];
}

QString outcome_text(Outcome outcome, double value) {
  const bool small = outcome == Outcome::Peak && std::abs(value) < 0.1;  // for a small network
  return small ? significant_text(value) : fixed_text(value, info(outcome).decimals);
}

Outcome outcome_of(const std::string& look_at) {
  if (look_at == "samples_per_s") return Outcome::Throughput;
  if (look_at == "first_loss") return Outcome::FirstLoss;
  return look_at == "test_accuracy" ? Outcome::Accuracy : Outcome::StepTime;
}

std::optional<Measured> measured(const TrialResult& trial, Outcome outcome) {
  std::vector<double> values;
  for (const TrialRun& run : trial.runs)
    if (const double v = value_of(run, outcome); run.status != "failed" && std::isfinite(v)) values.push_back(v);
  if (values.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(values);
  return Measured{median(values), least, most, static_cast<int>(values.size())};
}

QString skipped_text(const std::vector<Trial>& trials, bool cuda) {
  const auto skipped = std::ranges::count_if(trials, [](const Trial& trial) { return !trial.skipped.empty(); });
  if (skipped == 0) return {};
  const QString text = cuda ? QObject::tr("%1 of %2 combinations cannot run on this machine") : QObject::tr("%1 of %2 combinations need a GPU");
  return text.arg(skipped).arg(trials.size());
}

QString state_of(const TrialResult& trial) {
  if (!trial.trial.skipped.empty() && trial.runs.empty())
    return QObject::tr("skipped · %1").arg(QString::fromStdString(trial.trial.skipped));
  if (trial.runs.empty()) return {};
  const auto well = std::ranges::find_if(trial.runs, [](const TrialRun& r) { return r.status != "failed"; });
  return well == trial.runs.end() ? QObject::tr("failed · %1").arg(QString::fromStdString(trial.runs.front().message))
                                  : QString();
}

OutcomeGrid grid_of(const ExperimentResult& result) {
  const ExperimentSpec& spec = result.spec;
  if (!spec.ladder.empty() || spec.axes.empty()) return ladder_grid(result);
  OutcomeGrid grid;
  const size_t across = longest_axis(spec);
  grid.axis = label_of(spec.axes[across].key);
  QStringList others;
  for (size_t i = 0; i < spec.axes.size(); ++i)
    if (i != across) others << label_of(spec.axes[i].key);
  grid.group_axis = others.join(" · ");
  for (const std::string& value : spec.axes[across].values) grid.items << QString::fromStdString(value);
  grid.numbers = numbers_of(grid.items);
  for (const TrialResult& t : result.trials) {
    QStringList rest;
    for (size_t i = 0; i < t.trial.set.size(); ++i)
      if (i != across) rest << QString::fromStdString(t.trial.set[i].second);
    const QString group = rest.join(" · ");
    if (!grid.groups.contains(group)) {
      grid.groups << group;
      grid.trial.resize(static_cast<size_t>(grid.groups.size() * grid.items.size()), -1);
    }
    const auto item = grid.items.indexOf(QString::fromStdString(t.trial.set[across].second));
    grid.trial[static_cast<size_t>(grid.groups.indexOf(group) * grid.items.size() + item)] = t.trial.index;
  }
  return grid;
}

int trainings(const ExperimentSpec& spec, const std::vector<Trial>& trials) {
  const auto here = std::ranges::count_if(trials, [](const Trial& t) { return t.skipped.empty(); });
  return static_cast<int>(here) * spec.repeats;
}

}  // namespace ws::app
