// Replaces Setup while a recorded program is shown: the command, the environment, the
// recording level, and Record again.
#pragma once
#include <QPointer>
#include <QStringList>
#include <QWidget>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/widgets/segmented_row.h"
#include "app/workspace/run.h"
#include "profiling/recording/record_environment.h"
#include "profiling/trace/run_data.h"

class QGridLayout;
class QLabel;

namespace ws::app {

// The recorded command as stored in a run file.
struct RecordedCommand {
  QStringList words;
  prof::RecordOptions options;
  std::map<std::string, std::string> environment;  // "PyTorch" → "2.11"
};
// Off to lines, with what each records.
std::vector<SegmentedRow::Value> python_level_values();
// The step time of a recording of the same program at one level.
struct LevelCost {
  QString level;
  double step_us;
};
// "modules 12.1 ms · ops 13.5 ms (+12 %)": levels in order, compared with the first; empty if none was measured.
QString level_costs_text(const std::vector<LevelCost>& costs);
// nullopt for a run of our own, or a trace without its command.
std::optional<RecordedCommand> recorded_command(const prof::RunSummary& summary);

class ProgramPanel : public QWidget {
  Q_OBJECT
 public:
  explicit ProgramPanel(QWidget* parent = nullptr);
  // `costs`: the step times of recordings of this program at each level.
  void showProgram(const RecordedCommand& recorded, const std::vector<LevelCost>& costs);
  void watch(const Run* run);  // says how to log a loss while this run has none; nullptr: no run
  void recordAgain();

 signals:
  void recordWanted(const QStringList& command, const ws::prof::RecordOptions& options);

 private:
  void showEnvironment();
  void showLossHint();

  RecordedCommand recorded_;
  QPointer<const Run> run_;
  QLabel *command_, *costs_, *loss_hint_;
  QGridLayout* environment_;
  SegmentedRow* level_;
};

}  // namespace ws::app
