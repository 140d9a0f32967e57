// The runs that the window knows: those in the library's folder, those opened from elsewhere, and the live one. Its
// selection says which of them are shown.
#pragma once
#include <QDeadlineTimer>
#include <QFileSystemWatcher>
#include <QHash>
#include <QObject>
#include <QSet>
#include <QTimer>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "app/workspace/aside_files.h"
#include "app/workspace/job.h"
#include "app/workspace/run.h"
#include "app/workspace/run_trash.h"
#include "app/workspace/selection.h"

namespace ws::app {

class RunLibrary : public QObject {
  Q_OBJECT
 public:
  explicit RunLibrary(const QString& folder, QObject* parent = nullptr);
  static QString defaultFolder();  // $WARPSIGHT_RUNS, otherwise the user's data folder

  const QString& folder() const { return folder_; }
  const std::vector<Run*>& runs() const { return runs_; }  // newest first
  Selection& selection() { return selection_; }
  std::vector<Run*> ticked() const;  // the shown runs: the baseline, the current run, the other compared runs
  Run* current() const { return byHandle(selection_.current()); }    // nullptr: no run is shown
  Run* baseline() const { return byHandle(selection_.baseline()); }  // nullptr: the current run stands alone
  Run* byPath(const QString& path) const;
  Run* byHandle(RunId handle) const;

  void refresh();                  // reads the folder again
  void adopt(Run* run);            // a live run
  Run* open(const QString& path);  // any run file; nullptr and failed() if it cannot be read
  void setTicked(Run* run, bool on);
  void tickOnly(const std::vector<Run*>& runs);  // in the order of ticked(): of several, the first is the baseline
  // Opens the file of a live run, which has its role and its letter from now on. nullptr if it cannot be read.
  Run* replace(Run* live, const QString& path);
  bool loading() const { return !loading_.empty(); }

  // Each change is written to the run's file at once, even while the file is being written.
  bool rename(Run* run, const QString& title);
  bool setTags(Run* run, const QStringList& tags);
  bool setNote(Run* run, const QString& note);
  QStringList allTags() const;

  bool remove(Run* run);  // moves it to the trash
  const RunTrash& trash() const { return trash_; }
  Run* undoRemove();  // nullptr if it cannot be restored

  // Returns a free path in the folder: no file exists there, and none is about to be written.
  QString freePath(const QString& base) const;
  void reserve(const QString& path) { reserved_.insert(path); }
  void release(const QString& path) { reserved_.remove(path); }

 signals:
  void changed();
  void tickedChanged();  // a run has another role, or the data of a shown run was read
  void failed(const QString& sentence);

 private:
  bool readFolder();
  void readNew(Run& run, const QString& path);
  bool readAgain(Run* run);
  void insert(Run* run);
  void freeLetterOfAnother(Run& run) const;
  void loadDetails(Run* run);
  void reportTicked(const Run& run);
  void showSelected();
  void forget(Run* run);
  RunId newest() const;
  void giveLetter(Run* run);
  void keepLetter(const Run& run);
  void keepTitle(const Run& run);
  void putAside(const QFileInfo& file, const QString& why);
  void leaveOut(const QFileInfo& file, const std::exception& problem);
  bool write(Run* run, const std::function<void(const std::string& path)>& change);

  QString folder_;
  std::vector<Run*> runs_;
  Selection selection_;
  RunTrash trash_;
  std::map<QString, int> letters_;  // of this session, by path: a run that was removed and comes back has its letter again
  QSet<QString> reserved_;
  AsideFiles aside_;
  QSet<QString> reported_;  // files put aside or left out that were reported
  struct Later {
    int wait_ms = 0;
    QDeadlineTimer next;
  };
  QHash<QString, Later> later_;                   // files that the system refused to give
  std::map<Run*, std::unique_ptr<Job>> loading_;  // one thread per run
  QHash<QString, qint64> written_;                // time of each file's last change when it was read
  QFileSystemWatcher watcher_;
  QTimer settle_, elsewhere_;
};

}  // namespace ws::app
