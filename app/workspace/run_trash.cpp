#include "app/workspace/run_trash.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QUuid>

#include "profiling/base/failure.h"
#include "profiling/base/sqlite_log.h"

namespace ws::app {
namespace {

constexpr int kTrashDays = 1;

constexpr const char* kParts[] = {"", prof::kLogEndings[0], prof::kLogEndings[1], ".wsck"};

// Moves all files or none: the log may hold a part of the losses.
bool move_run(const QString& from, const QString& to) {
  std::vector<const char*> moved;
  for (const char* ending : kParts) {
    if (!QFile::exists(from + ending)) continue;
    if (QFile::rename(from + ending, to + ending)) {
      moved.push_back(ending);
      continue;
    }
    for (const char* back : moved) QFile::rename(to + back, from + back);
    return false;
  }
  return !moved.empty();
}

}  // namespace

RunTrash::RunTrash(const QString& library_folder) : folder_(library_folder + "/.deleted") { deleteOld(); }

bool RunTrash::take(const QString& path, const QString& title, RunId run) {
  QDir().mkpath(folder_);
  const QString id = QUuid::createUuid().toString(QUuid::WithoutBraces).left(8);
  const QString file = folder_ + "/" + id + "-" + QFileInfo(path).fileName();
  if (!move_run(path, file)) return false;
  removed_.push_back({title, file, path, run});
  return true;
}

QString RunTrash::putBack(const std::function<QString(const QString& base)>& free_path) {
  const Removed last = removed_.back();
  removed_.pop_back();
  const QString path = QFileInfo::exists(last.was) ? free_path(QFileInfo(last.was).completeBaseName()) : last.was;
  if (!move_run(last.file, path))
    throw Failure(QObject::tr("“%1” cannot be brought back: %2 cannot be moved.").arg(last.title, last.file).toStdString());
  return path;
}

void RunTrash::deleteOld() const {
  for (const QFileInfo& file : QDir(folder_).entryInfoList(QDir::Files))
    if (file.metadataChangeTime().daysTo(QDateTime::currentDateTime()) > kTrashDays)
      QFile::remove(file.absoluteFilePath());
}

}  // namespace ws::app
