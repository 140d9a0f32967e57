// The numbers of an experiment, arranged for tables and pictures. No widgets.
#pragma once
#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

#include "app/core/experiments/experiment.h"

namespace ws::app {

enum class Outcome { StepTime, Throughput, FirstLoss, FinalLoss, Accuracy, DriverCalls, Peak };
struct OutcomeInfo {
  Outcome outcome;
  QString name, unit;
  int decimals;
};
std::vector<OutcomeInfo> outcomes();
const OutcomeInfo& info(Outcome outcome);
QString outcome_text(Outcome outcome, double value);
Outcome outcome_of(const std::string& look_at);  // the main measure of an experiment

struct Measured {
  double median = 0, least = 0, most = 0;
  int runs = 0;
};
// nullopt if no run of the trial succeeded
std::optional<Measured> measured(const TrialResult& trial, Outcome outcome);
QString skipped_text(const std::vector<Trial>& trials, bool cuda);  // "3 of 10 settings need a GPU"; empty if there are none
QString state_of(const TrialResult& trial);  // "skipped: …", "failed: …", "not yet"; empty if there are numbers

// Trials as a grid: the longest axis across, combinations of the other axes down. A ladder
// or a single axis is one group.
struct OutcomeGrid {
  QString axis, group_axis;  // their names
  QStringList items, groups;
  std::vector<int> trial;       // groups × items; -1 if there is none
  std::vector<double> numbers;  // leading numbers of the items; empty if one has none
  int at(int group, int item) const { return trial[static_cast<size_t>(group * items.size() + item)]; }
};
OutcomeGrid grid_of(const ExperimentResult& result);
int trainings(const ExperimentSpec& spec, const std::vector<Trial>& trials);  // number of trainings needed here

}  // namespace ws::app
