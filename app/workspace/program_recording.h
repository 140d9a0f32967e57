// Records any CUDA program, here or on another machine, and shows it while it runs: its batches go into a Run, its file into
// the library at the end.
#pragma once
#include <QObject>
#include <QPointer>
#include <QStringList>
#include <QTimer>
#include <memory>

#include "app/workspace/remote_recording.h"
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
  bool busy() const { return program_ || there_; }
  // From now on programs are recorded there; null: here.
  void setMachine(std::shared_ptr<RemoteMachine> machine) { machine_ = std::move(machine); }
  bool remote() const { return there_ != nullptr; }  // the one that is recorded runs on another machine
  QString place() const { return there_ ? there_->machine()->place() : QString(); }
  Run* attach(const RemoteJobInfo& job);             // one that is recorded there already
  void detach();                                     // it runs on there; nothing more is heard of it
  const prof::RecordOptions& options() const { return options_; }  // of the newest one
  void stop();                                                     // interrupts the program, as Ctrl+C would

 signals:
  // The program has ended. `run`: null when the window forgot it meanwhile. `path`: its run file, in the library's
  // folder; empty when nothing was recorded.
  void ended(ws::app::Run* run, const QString& path);
  void failed(const QString& sentence);

 private:
  void poll();
  void pollThere();
  void fetchNext();
  void finish(const QString& path, int status, const QString& problem);
  Run* begin(const QString& id, const QString& title, const QString& path);
  void drain();
  QString keep();  // moves the files of all processes into the library; that of the first

  QString folder_;
  prof::RecordOptions options_;
  std::unique_ptr<prof::RecordedProgram> program_;
  std::shared_ptr<RemoteMachine> machine_;
  std::unique_ptr<RemoteRecording> there_;
  std::vector<std::string> unfetched_;  // files there, the next one last
  QString first_, problem_;
  Job fetching_;
  QPointer<Run> run_;
  QTimer timer_;
};

}  // namespace ws::app
