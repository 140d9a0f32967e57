// Deleted run files: they wait in a folder beside the others until the next day.
#pragma once
#include <QString>
#include <functional>
#include <vector>

namespace ws::app {

class RunTrash {
 public:
  explicit RunTrash(const QString& library_folder);  // deletes for good what has waited long enough
  bool empty() const { return removed_.empty(); }
  QString lastTitle() const { return empty() ? QString() : removed_.back().title; }
  bool lastTicked() const { return !empty() && removed_.back().ticked; }
  // False: the file cannot be moved.
  bool take(const QString& path, const QString& title, bool ticked);
  // Puts the newest one back and returns its path. `free_path` gives another path when its own was taken since.
  // Throws Failure when the file cannot be moved; the trash forgets it in any case.
  QString putBack(const std::function<QString(const QString& base)>& free_path);

 private:
  struct Removed {
    QString title, file, was;
    bool ticked = false;
  };
  void deleteOld() const;

  QString folder_;
  std::vector<Removed> removed_;
};

}  // namespace ws::app
