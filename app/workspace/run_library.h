// The runs that the window knows: those in the library's folder, those opened from elsewhere, and the live one.
#pragma once
#include <QElapsedTimer>
#include <QFileSystemWatcher>
#include <QHash>
#include <QObject>
#include <QSet>
#include <QTimer>
#include <deque>
#include <functional>
#include <vector>

#include "app/workspace/run.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

class RunLibrary : public QObject {
  Q_OBJECT
 public:
  explicit RunLibrary(const QString& folder, QObject* parent = nullptr);
  ~RunLibrary() override;
  static QString defaultFolder();  // $WARPSCOPE_RUNS, else the user's data folder

  const QString& folder() const { return folder_; }
  const std::vector<Run*>& runs() const { return runs_; }  // newest first
  std::vector<Run*> ticked() const;                        // in order of their letters
  Run* byPath(const QString& path) const;

  void refresh();                  // reads the folder again
  void adopt(Run* run);            // a live run
  Run* open(const QString& path);  // any run file; nullptr and failed() when it cannot be read
  void setTicked(Run* run, bool on);
  void tickOnly(const std::vector<Run*>& runs);
  bool loading() const { return !loading_.isEmpty(); }

  // Kept in the run's file at once, also while it is being written.
  bool rename(Run* run, const QString& title);
  bool setTags(Run* run, const QStringList& tags);
  bool setNote(Run* run, const QString& note);
  QStringList allTags() const;

  // Deleted files wait in a folder beside the others until the next day.
  bool remove(Run* run);
  bool canUndo() const { return !removed_.empty(); }
  QString lastRemoved() const { return removed_.empty() ? QString() : removed_.back().title; }
  Run* undoRemove();  // nullptr: it is gone for good

  // These work on another thread; what goes wrong comes as failed().
  // A run file or another tool's trace becomes a run of the library, which `done` gets.
  void import(const QString& path, const std::function<void(Run* run)>& done = {});
  // By the name's ending: .wsrun with the weights beside it, .json, .json.gz, .csv … What was there before is replaced
  // once the new file is whole.
  void exportRun(Run* run, const QString& path);  // then exported()
  // Writes a run that `make` gives into the folder, then opens and ticks it.
  void addMade(const QString& name, std::function<prof::RunData()> make);
  QString work() const;  // "Importing trace.json, 96.0 MiB… 4 s"; empty: nothing goes on
  void giveUpWork();     // only before the process ends: nothing half is left behind

 signals:
  void changed();
  void tickedChanged();
  void failed(const QString& sentence);
  void exported(const QString& path);
  void imported(ws::app::Run* run);
  void workChanged();

 private:
  struct Removed {
    QString title, file, was;
  };
  bool readFolder();
  bool readAgain(Run* run);
  void insert(Run* run);
  void loadDetails(Run* run);
  void tellTicked(const Run& run);
  void markBroken(const QString& path, const QString& why);
  bool write(Run* run, const std::function<void(const std::string& path)>& change);
  struct Work {
    QString what, target;
    QElapsedTimer since;
  };
  void later(const QString& what, const QString& target, std::function<void()> work,
             std::function<void(const QString& path)> done);
  void workEnded();
  QString freeName(const QString& folder, const QString& base) const;
  QString trash() const { return folder_ + "/.deleted"; }
  void emptyTrash();

  QString folder_;
  std::vector<Run*> runs_;
  std::vector<Removed> removed_;
  QSet<QString> broken_;
  QSet<Run*> loading_;
  QHash<QString, qint64> written_;  // when each file was last changed, as far as it was read
  QFileSystemWatcher watcher_;
  std::deque<Work> works_;
  QTimer settle_, elsewhere_, clock_;
};

}  // namespace ws::app
