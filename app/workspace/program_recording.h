// Records any CUDA program and shows it while it runs: its batches go into a Run, its file into the library at the end.
#pragma once
#include <QObject>
#include <QPointer>
#include <QStringList>
#include <QTimer>
#include <memory>

#include "app/workspace/run.h"
#include "profiling/recording/record_program.h"

namespace ws::app {

class ProgramRecording : public QObject {
  Q_OBJECT
 public:
  explicit ProgramRecording(const QString& folder, QObject* parent = nullptr);
  ~ProgramRecording() override;  // a program that still runs is interrupted and waited for

  // The run to watch, or nullptr: failed() said why.
  Run* start(const QStringList& command, const prof::RecordOptions& options = {});
  bool busy() const { return program_ != nullptr; }
  const prof::RecordOptions& options() const { return options_; }  // of the newest one
  void stop();                                                     // interrupts the program, as Ctrl+C would

 signals:
  // The program has ended. `run`: null when the window forgot it meanwhile. `path`: its run file, in the library's
  // folder; empty when nothing was recorded.
  void ended(ws::app::Run* run, const QString& path);
  void failed(const QString& sentence);

 private:
  void poll();
  void drain();
  QString keep();  // moves the files of all processes into the library; that of the first

  QString folder_;
  prof::RecordOptions options_;
  std::unique_ptr<prof::RecordedProgram> program_;
  QPointer<Run> run_;
  QTimer timer_;
};

}  // namespace ws::app
