// Files that come into the library and go out of it. Big ones take a while: all of it happens on another thread, one
// file after the other, and text() says what is going on.
#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <deque>
#include <functional>

#include "app/workspace/job.h"
#include "app/workspace/run_library.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// Patterns of the files that can be imported, for file dialogs: "*.wsrun *.json …".
QString readable_files();

class LibraryJobs : public QObject {
  Q_OBJECT
 public:
  explicit LibraryJobs(RunLibrary& library, QObject* parent = nullptr);

  // A run file or another tool's trace becomes a run of the library, which `done` gets.
  void import(const QString& path, const std::function<void(Run* run)>& done = {});
  // By the name's ending: .wsrun with the weights beside it, .json, .json.gz, .csv … What was there before is replaced
  // once the new file is whole.
  void exportRun(const Run& run, const QString& path);
  // Writes a run that `make` gives into the folder, then opens and ticks it.
  void addMade(const QString& name, std::function<prof::RunData()> make);

  bool busy() const { return !waiting_.empty(); }
  QString text() const;  // "Importing trace.json, 96.0 MiB… 4 s"; empty: nothing goes on
  void abandon();        // only before the process ends: no half-written file stays behind

 signals:
  void failed(const QString& sentence);
  void exported(const QString& path);
  void imported(ws::app::Run* run);
  void changed();

 private:
  struct Waiting {
    QString what, target;
    QElapsedTimer since;
  };
  void later(const QString& what, const QString& target, std::function<void()> work,
             std::function<void(const QString& path)> done);
  void firstEnded();

  RunLibrary& library_;
  std::deque<Waiting> waiting_;  // the first one is at work
  QTimer clock_;
  Job job_;
};

}  // namespace ws::app
