// Records a CUDA or Python program, here or on another machine, and shows it while it runs. Its batches go into a Run, and
// its file goes into the library at the end.
#pragma once
#include <QObject>
#include <QPointer>
#include <QStringList>
#include <QTimer>
#include <fstream>
#include <memory>

#include "app/workspace/printed_lines.h"
#include "app/workspace/remote_recording.h"
#include "app/workspace/run.h"
#include "profiling/recording/record_program.h"

namespace ws::app {

class ProgramRecording : public QObject {
  Q_OBJECT
 public:
  explicit ProgramRecording(const QString& folder, QObject* parent = nullptr);
  ~ProgramRecording() override;  // interrupts a running program and waits for it

  // Returns the run to watch, or nullptr after failed().
  Run* start(const QStringList& command, const prof::RecordOptions& options = {});
  bool busy() const { return program_ || there_; }
  // New programs are recorded on that machine; null: here.
  void setMachine(std::shared_ptr<RemoteMachine> machine) { machine_ = std::move(machine); }
  QString machinePlace() const { return machine_ ? machine_->place() : QString(); }  // empty: they are recorded here
  bool remote() const { return there_ != nullptr; }  // True if the recorded program runs on another machine
  QString place() const { return there_ ? there_->machine()->place() : QString(); }
  Run* attach(const RemoteJobInfo& job);             // a program that is already being recorded there
  void detach();                                     // it continues there; its updates are no longer received
  const prof::RecordOptions& options() const { return options_; }  // options of the newest recording
  // "train.py ended with status 1: ValueError: …"; empty if the newest program ended well or was stopped here.
  const QString& failure() const { return failure_; }
  void stop();  // interrupts the program, as Ctrl+C would

 signals:
  void started(ws::app::Run* run);  // what the program prints comes into its log
  // The program has ended. `run`: null if the window deleted it meanwhile. `path`: its run file in the library's
  // folder; empty if nothing was recorded.
  void ended(ws::app::Run* run, const QString& path);
  void failed(const QString& sentence);

 private:
  void poll();
  void pollThere();
  void fetchNext();
  void finish(const QString& path, int status, const QString& problem, const QString& last_line);
  QString endText(int status, const QString& last_line) const;
  Run* begin(const QString& id, const QString& title, const QString& path);
  Run* began(Run* run, const QStringList& command, const QString& folder);
  void drain(bool over);
  std::string printed();  // since the last call
  QString keep();  // moves the files of all processes into the library; returns the first one's

  QString folder_;
  prof::RecordOptions options_;
  std::unique_ptr<prof::RecordedProgram> program_;
  std::shared_ptr<RemoteMachine> machine_;
  std::unique_ptr<RemoteRecording> there_;
  std::vector<std::string> unfetched_;  // remote files, the next one last
  QString first_, problem_, failure_;
  bool stopped_ = false;
  QString output_path_;  // where the program prints to
  std::ifstream printed_;
  ShownOutput output_;
  Job fetching_;
  QPointer<Run> run_;
  QTimer timer_;
};

}  // namespace ws::app
