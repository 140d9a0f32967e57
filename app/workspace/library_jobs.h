// Imports files into the library and exports them. Large files take long, so it works on another thread, one file
// after the other, and text() says what is running.
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

  // Imports a run file or another tool's trace into the library. `done` gets the run.
  void import(const QString& path, const std::function<void(Run* run)>& done = {});
  // Imports the files as one run, if each is of another rank of one program. Otherwise returns false.
  bool importRanks(const QStringList& paths, const std::function<void(Run* run)>& done = {});
  // The file name extension chooses the format: .wsrun with the weights beside it, .json, .json.gz, .csv … An old
  // file is replaced only when the new one is complete.
  void exportRun(const Run& run, const QString& path);
  // Writes the run that `make` returns into the folder, then opens and ticks it.
  void addMade(const QString& name, std::function<prof::RunData()> make);

  bool busy() const { return !waiting_.empty(); }
  QString text() const;  // "Importing trace.json, 96.0 MiB… 4 s"; empty if nothing is running
  void abandon();        // only before the process ends: leaves no half-written file

 signals:
  void failed(const QString& sentence);
  void exported(const QString& path);
  void imported(ws::app::Run* run);
  void changed();

 private:
  std::function<void(const QString& path)> openThen(const std::function<void(Run* run)>& done);
  struct Waiting {
    QString what, target;
    QElapsedTimer since;
  };
  void later(const QString& what, const QString& target, std::function<void()> work,
             std::function<void(const QString& path)> done);
  void firstEnded();

  RunLibrary& library_;
  std::deque<Waiting> waiting_;  // the first one is running
  QTimer clock_;
  Job job_;
};

}  // namespace ws::app
