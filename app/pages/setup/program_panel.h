// Replaces Setup while a recorded program is shown: the command, the environment, the
// recording level, and Record again.
#pragma once
#include <QStringList>
#include <QWidget>
#include <map>
#include <optional>
#include <string>

#include "profiling/recording/record_program.h"
#include "profiling/trace/run_data.h"

class QLabel;

namespace ws::app {

class SegmentedRow;

// The recorded command as stored in a run file.
struct RecordedCommand {
  QStringList words;
  prof::RecordOptions options;
  std::map<std::string, std::string> environment;  // "PyTorch" → "2.11"
};
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
  void recordAgain();

 signals:
  void recordWanted(const QStringList& command, const ws::prof::RecordOptions& options);

 private:
  RecordedCommand recorded_;
  QLabel *command_, *environment_, *costs_;
  SegmentedRow* level_;
};

}  // namespace ws::app
