// What all pages share: the runs, the training, the time cursor, the selection, the choices, and
// signals from pages to the window.
#pragma once
#include <QObject>

#include "app/workspace/choices.h"
#include "app/workspace/device_probe.h"
#include "app/workspace/library_jobs.h"
#include "app/workspace/program_recording.h"
#include "app/workspace/focus.h"
#include "app/workspace/time_cursor.h"
#include "app/workspace/training_session.h"

namespace ws::app {

class Workspace : public QObject {
  Q_OBJECT
 public:
  explicit Workspace(const QString& runs_folder, QObject* parent = nullptr);

  TimeCursor* cursor() { return &cursor_; }
  Focus* focus() { return &focus_; }
  RunLibrary* library() { return &library_; }
  LibraryJobs* jobs() { return &jobs_; }
  TrainingSession* session() { return &session_; }
  ProgramRecording* recording() { return &recording_; }
  Choices* choices() { return &choices_; }
  DeviceProbe* device() { return &device_; }

  // Returns the new run with the trace level of the top bar, or nullptr: the session said why.
  Run* train(const RunSpec& spec, const QString& title = {});
  void trainAnew();       // ends the current training and starts one with the current choices
  void stop();            // the training or the recording
  Run* shownRun() const { return library_.current(); }  // nullptr: no run is shown
  const Run* shownProgram() const;  // the shown run if it is a recorded program and nothing trains
  void pick(Run* run) { library_.selection().select(run->handle); }  // makes it current

  // Requests of a page to the window.
  void say(const QString& sentence, bool problem) { emit said(sentence, problem); }
  void wrote(const QString& path);  // a file that the user asked for: the window offers to open it
  void open(const QString& path) { emit openWanted(path); }  // a run, or any file that a page can read
  void chooseFile() { emit fileWanted(); }                   // asks for a file to open
  void follow(const RemoteJobInfo& job) { emit followWanted(job); }  // an experiment, a sweep or PyTorch on another machine
  void bringToFront(const QObject* page) { emit frontWanted(page); }  // by its widget
  void showLive() { emit liveWanted(); }
  void openRun(Run* run) {  // makes it current, on the page Overview
    pick(run);
    emit runOpened(run);
  }
  void compareRuns(Run* baseline, Run* current);  // exactly these two, on the page Compare
  // Judges every new run, also after a restart. nullptr: no run, or its file is gone.
  Run* pinnedBaseline();
  void pinBaseline(const Run* run);  // nullptr: unpins
  void recordAgain() { emit recordAgainWanted(); }  // the shown program, with the options of its panel
  void ask(Run* run, const QString& edit) { emit editWanted(run, edit); }  // what a step would take, on the page What if
  void findInTimeline() { emit findWanted(); }
  void noteOnTab(const QObject* page, const QString& note) { emit tabNoted(page, note); }  // "3" beside its name

 signals:
  void said(const QString& sentence, bool problem);
  void written(const QString& path);
  void openWanted(const QString& path);
  void recordWanted(const QStringList& command, const ws::prof::RecordOptions& options);
  void recordAgainWanted();
  void fileWanted();
  void followWanted(const ws::app::RemoteJobInfo& job);
  void frontWanted(const QObject* page);
  void liveWanted();
  void runOpened(ws::app::Run* run);
  void compareWanted();  // the page Compare
  void pinnedChanged();
  // A training has ended: its result, and the baseline that it was compared with (nullptr if there is none).
  void concluded(const QString& line, ws::app::Run* run, ws::app::Run* baseline);
  void editWanted(ws::app::Run* run, const QString& edit);
  void findWanted();
  void tabNoted(const QObject* page, const QString& note);

 private:
  TimeCursor cursor_;
  Focus focus_;
  RunLibrary library_;
  LibraryJobs jobs_;
  TrainingSession session_;
  ProgramRecording recording_;
  Choices choices_;
  DeviceProbe device_;
  void runStarted(Run* run);
  void forgetFocus();
  void runEnded(Run* run);

  RunId shown_ = RunId::None;  // the run that was current when the selection changed last
};

}  // namespace ws::app
