// Deleted run files. They stay in a folder beside the other runs until the next day.
#pragma once
#include <QString>
#include <functional>
#include <vector>

#include "app/workspace/selection.h"

namespace ws::app {

class RunTrash {
 public:
  explicit RunTrash(const QString& library_folder);  // deletes old files permanently
  bool empty() const { return removed_.empty(); }
  QString lastTitle() const { return empty() ? QString() : removed_.back().title; }
  RunId lastRun() const { return empty() ? RunId::None : removed_.back().run; }
  // Returns false if the file cannot be moved.
  bool take(const QString& path, const QString& title, RunId run);
  // Restores the newest file and returns its path. `free_path` gives another path if the old one is taken now. Throws
  // Failure if the file cannot be moved; the trash forgets it in any case.
  QString putBack(const std::function<QString(const QString& base)>& free_path);

 private:
  struct Removed {
    QString title, file, was;
    RunId run = RunId::None;
  };
  void deleteOld() const;

  QString folder_;
  std::vector<Removed> removed_;
};

}  // namespace ws::app
