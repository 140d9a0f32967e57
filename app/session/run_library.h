// The runs that the window knows: those in the library's folder, those opened from elsewhere, and the live one.
#pragma once
#include <QFileSystemWatcher>
#include <QObject>
#include <QSet>
#include <QTimer>
#include <vector>

#include "app/session/run.h"

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
  bool removeFile(Run* run);  // deletes the run and its file
  bool loading() const { return !loading_.isEmpty(); }

 signals:
  void changed();
  void tickedChanged();
  void failed(const QString& sentence);

 private:
  void insert(Run* run);
  void loadDetails(Run* run);
  void markBroken(const QString& path, const QString& why);

  QString folder_;
  std::vector<Run*> runs_;
  QSet<QString> broken_;
  QSet<Run*> loading_;
  QFileSystemWatcher watcher_;
  QTimer settle_;
};

}  // namespace ws::app
