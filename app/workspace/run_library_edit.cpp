// What a person changes in the library: names, tags, notes, deleting and its undo.
#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QUuid>

#include "app/workspace/run_library.h"

namespace ws::app {
namespace {

constexpr int kTrashDays = 1;

// SQLite keeps what was not folded into the file yet beside it.
constexpr const char* kBeside[] = {"-wal", "-shm", ".wsck"};

bool move_run(const QString& from, const QString& to) {
  if (!QFile::rename(from, to)) return false;
  for (const char* ending : kBeside)
    if (QFile::exists(from + ending)) QFile::rename(from + ending, to + ending);
  return true;
}

}  // namespace

bool RunLibrary::write(Run* run, const std::function<void(const std::string& path)>& change) {
  try {
    change(run->path.toStdString());
  } catch (const std::exception& problem) {
    emit failed(tr("%1 cannot be changed: %2").arg(QFileInfo(run->path).fileName(), QString::fromUtf8(problem.what())));
    return false;
  }
  written_.insert(QFileInfo(run->path).absoluteFilePath(), QFileInfo(run->path).lastModified().toMSecsSinceEpoch());
  return true;
}

bool RunLibrary::rename(Run* run, const QString& title) {
  const QString wanted = title.simplified();
  if (wanted.isEmpty() || wanted == run->title) return false;
  if (!write(run, [&](const std::string& path) { prof::rename_run(path, wanted.toStdString()); })) return false;
  run->title = wanted;
  run->announce();
  emit changed();
  emit tickedChanged();
  return true;
}

bool RunLibrary::setTags(Run* run, const QStringList& tags) {
  QStringList clean;
  for (const QString& tag : tags)
    if (!tag.simplified().isEmpty() && !clean.contains(tag.simplified())) clean << tag.simplified();
  std::vector<std::string> list;
  for (const QString& tag : clean) list.push_back(tag.toStdString());
  if (clean == run->tags || !write(run, [&](const std::string& path) { prof::tag_run(path, list); })) return false;
  run->tags = clean;
  emit changed();
  return true;
}

bool RunLibrary::setNote(Run* run, const QString& note) {
  if (note == run->note) return false;
  if (!write(run, [&](const std::string& path) { prof::annotate_run(path, note.toStdString()); })) return false;
  run->note = note;
  emit changed();
  return true;
}

QStringList RunLibrary::allTags() const {
  QStringList tags;
  for (const Run* run : runs_)
    for (const QString& tag : run->tags)
      if (!tags.contains(tag)) tags << tag;
  tags.sort(Qt::CaseInsensitive);
  return tags;
}

bool RunLibrary::remove(Run* run) {
  if (run->live() || run->elsewhere) {
    emit failed(tr("%1 is training: stop it first.").arg(run->title));
    return false;
  }
  const QString was = run->path;
  if (QFileInfo::exists(was)) {
    QDir().mkpath(trash());
    const QString file =
        trash() + "/" + QUuid::createUuid().toString(QUuid::WithoutBraces).left(8) + "-" + QFileInfo(was).fileName();
    if (!move_run(was, file)) {
      emit failed(tr("%1 could not be deleted: its folder cannot be written to.").arg(QFileInfo(was).fileName()));
      return false;
    }
    removed_.push_back({run->title, file, was});
  }
  std::erase(runs_, run);
  run->slot = -1;
  emit changed();
  emit tickedChanged();
  run->deleteLater();
  return true;
}

Run* RunLibrary::undoRemove() {
  if (removed_.empty()) return nullptr;
  const Removed last = removed_.back();
  removed_.pop_back();
  const QFileInfo was(last.was);
  const QString path =
      was.exists() ? freeName(was.absolutePath(), was.completeBaseName()) : last.was;  // the name was taken since
  if (!move_run(last.file, path)) {
    emit failed(tr("“%1” cannot be brought back: %2 cannot be moved.").arg(last.title, last.file));
    emit changed();
    return nullptr;
  }
  broken_.remove(path);
  return open(path);
}

void RunLibrary::emptyTrash() {
  for (const QFileInfo& file : QDir(trash()).entryInfoList(QDir::Files))
    if (file.metadataChangeTime().daysTo(QDateTime::currentDateTime()) > kTrashDays)
      QFile::remove(file.absoluteFilePath());
}

}  // namespace ws::app
