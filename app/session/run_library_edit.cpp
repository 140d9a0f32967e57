// What a person changes in the library: names, tags, notes, deleting and its undo, files in and out.
#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QPointer>
#include <QThreadPool>
#include <QUuid>
#include <filesystem>

#include "app/session/run_library.h"
#include "app/session/run_reader.h"
#include "profiling/formats/convert.h"
#include "profiling/whole_file.h"

namespace ws::app {
namespace {

constexpr int kTrashDays = 1;

// A name that is free in the folder.
QString free_name(const QString& folder, const QString& base) {
  QString path = QDir(folder).filePath(base + ".wsrun");
  for (int i = 2; QFileInfo::exists(path); ++i) path = QDir(folder).filePath(QString("%1-%2.wsrun").arg(base).arg(i));
  return path;
}

// SQLite keeps what was not folded into the file yet beside it.
constexpr const char* kBeside[] = {"-wal", "-shm", ".wsck"};

bool move_run(const QString& from, const QString& to) {
  if (!QFile::rename(from, to)) return false;
  for (const char* ending : kBeside)
    if (QFile::exists(from + ending)) QFile::rename(from + ending, to + ending);
  return true;
}

void write_copy(const QString& from, const QString& to) {
  std::error_code ignored;
  if (std::filesystem::equivalent(from.toStdString(), to.toStdString(), ignored))
    throw Failure(to.toStdString() + ": is the run itself.");
  prof::convert(from.toStdString(), to.toStdString());
  if (!to.endsWith(".wsrun")) return;
  const QString weights = weights_path(from), beside = weights_path(to);
  QFile::remove(beside);  // of what was replaced
  if (QFile::exists(weights) && !QFile::copy(weights, beside))
    throw Failure(beside.toStdString() + ": cannot be written; the copy has no weights.");
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
      was.exists() ? free_name(was.absolutePath(), was.completeBaseName()) : last.was;  // the name was taken since
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

Run* RunLibrary::import(const QString& path) {
  const QString target = free_name(folder_, QFileInfo(path).baseName());
  try {
    if (path.endsWith(".wsrun")) {
      if (QFileInfo(path).absolutePath() == QFileInfo(folder_).absoluteFilePath()) return open(path);
      prof::read_run_summary(path.toStdString());  // refuses what is no run
      prof::write_whole_file(target.toStdString(), [&](const std::string& part) {
        if (!QFile::copy(path, QString::fromStdString(part)))
          throw Failure(part + ": cannot be written; is the disk full?");
      });
    } else {
      prof::convert(path.toStdString(), target.toStdString());
    }
  } catch (const std::exception& problem) {
    emit failed(QString::fromUtf8(problem.what()));
    return nullptr;
  }
  return open(target);
}

bool RunLibrary::exportRun(Run* run, const QString& path) {
  try {
    write_copy(run->path, path);
  } catch (const std::exception& problem) {
    emit failed(QString::fromUtf8(problem.what()));
    return false;
  }
  return true;
}

// Runs `work` on another thread; what it gives, or its problem in a sentence, comes back while the library is there.
void RunLibrary::later(std::function<QString()> work, std::function<void(const QString& path)> done) {
  QThreadPool::globalInstance()->start(
      [guard = QPointer<RunLibrary>(this), work = std::move(work), done = std::move(done)] {
        QString path, problem;
        try {
          path = work();
        } catch (const std::exception& failure) {
          problem = QString::fromUtf8(failure.what());
        }
        QMetaObject::invokeMethod(qApp, [guard, done, path, problem] {
          if (!guard) return;
          problem.isEmpty() ? done(path) : emit guard->failed(problem);
        });
      });
}

void RunLibrary::exportLater(Run* run, const QString& path) {
  later([from = run->path, path] { return write_copy(from, path), path; },
        [this](const QString& written) { emit exported(written); });
}

void RunLibrary::addMade(const QString& name, std::function<prof::RunData()> make) {
  const auto work = [folder = folder_, name, make = std::move(make)] {
    const QString path = free_name(folder, name);
    QDir().mkpath(folder);
    prof::export_run(make(), path.toStdString());
    return path;
  };
  later(work, [this](const QString& path) {
    if (Run* run = open(path)) setTicked(run, true), emit exported(path);
  });
}

}  // namespace ws::app
