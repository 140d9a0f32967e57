// In place of Setup while a recorded program is shown: what was run, where, how closely it was recorded, and Record again.
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

// What a run file says of the program that was recorded.
struct RecordedCommand {
  QStringList words;
  prof::RecordOptions options;
  std::map<std::string, std::string> environment;  // "PyTorch" → "2.11"
};
// nullopt: a run of our own, or a trace that does not say how it was made.
std::optional<RecordedCommand> recorded_command(const prof::RunSummary& summary);

class ProgramPanel : public QWidget {
  Q_OBJECT
 public:
  explicit ProgramPanel(QWidget* parent = nullptr);
  void showProgram(const RecordedCommand& recorded);

 signals:
  void recordWanted(const QStringList& command, const ws::prof::RecordOptions& options);

 private:
  RecordedCommand recorded_;
  QLabel *command_, *environment_;
  SegmentedRow* level_;
};

}  // namespace ws::app
