#include "app/workspace/library_jobs.h"

#include <QDir>
#include <QFileInfo>
#include <filesystem>

#include "app/text/units.h"
#include "profiling/base/failure.h"
#include "profiling/base/ownership.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/base/whole_file.h"
#include "profiling/formats/convert.h"
#include "profiling/formats/join_ranks.h"

namespace ws::app {
namespace {

void write_copy(const QString& from, const QString& to) {
  std::error_code ignored;
  if (std::filesystem::equivalent(from.toStdString(), to.toStdString(), ignored))
    throw Failure(to.toStdString() + ": is the run itself.");
  prof::convert(from.toStdString(), to.toStdString());
  if (!to.endsWith(".wsrun")) return;
  const QString weights = weights_path(from), beside = weights_path(to);
  QFile::remove(beside);  // weights of the replaced file
  if (QFile::exists(weights) && !QFile::copy(weights, beside))
    throw Failure(beside.toStdString() + ": cannot be written; the copy has no weights.");
}

void read_in(const QString& from, const QString& to) {
  if (const std::string owner = owner_of(from.toStdString()); !owner.empty())
    throw Failure(from.toStdString() + " is being written by process " + owner + ". Stop it first.");
  // The log of a killed program holds rows that the file does not have yet.
  if (!from.endsWith(".wsrun") || prof::bytes_of_log(from.toStdString()) > 0) {
    prof::convert(from.toStdString(), to.toStdString());
    return;
  }
  prof::read_run_summary(from.toStdString());  // throws if it is no run
  prof::write_whole_file(to.toStdString(), [&](const std::string& part) {
    if (!QFile::copy(from, QString::fromStdString(part)))
      throw Failure(part + ": cannot be written; is the disk full?");
  });
}

}  // namespace

QString readable_files() {
  QStringList patterns;
  for (const std::string_view ending : prof::kReadEndings)
    patterns << "*" + QString::fromUtf8(ending.data(), static_cast<qsizetype>(ending.size()));
  return patterns.join(' ');
}

LibraryJobs::LibraryJobs(RunLibrary& library, QObject* parent) : QObject(parent), library_(library) {
  clock_.setInterval(1000);  // updates the elapsed time
  connect(&clock_, &QTimer::timeout, this, &LibraryJobs::changed);
}

// Runs `work` on another thread. While this object exists, it reports that `target` was
// written, or the problem in a sentence.
void LibraryJobs::later(const QString& what, const QString& target, std::function<void()> work,
                        std::function<void(const QString& path)> done) {
  waiting_.push_back({what, target, {}});
  waiting_.back().since.start();
  library_.reserve(target);
  if (waiting_.size() == 1) clock_.start();
  emit changed();
  job_.start([work = std::move(work)](const Job::Side&) { work(); },
             [this, target, done = std::move(done)](const QString& problem) {
               firstEnded();
               problem.isEmpty() ? done(target) : emit failed(problem);
             });
}

void LibraryJobs::abandon() {
  for (const Waiting& job : waiting_) prof::remove_part_of(job.target.toStdString());
}

// Jobs end in the order in which they started.
void LibraryJobs::firstEnded() {
  library_.release(waiting_.front().target);
  waiting_.pop_front();
  if (waiting_.empty())
    clock_.stop();
  else
    waiting_.front().since.restart();
  emit changed();
}

QString LibraryJobs::text() const {
  if (waiting_.empty()) return {};
  QString said = waiting_.front().what + QString::fromUtf8("…");
  if (const qint64 seconds = waiting_.front().since.elapsed() / 1000; seconds > 0) said += tr(" %1 s").arg(seconds);
  if (waiting_.size() > 1) said += tr(" · %1 more to come").arg(waiting_.size() - 1);
  return said;
}

std::function<void(const QString& path)> LibraryJobs::openThen(const std::function<void(Run* run)>& done) {
  return [this, done](const QString& file) {
    Run* run = library_.open(file);
    if (run && done) done(run);
    if (run) emit imported(run);
  };
}

bool LibraryJobs::importRanks(const QStringList& paths, const std::function<void(Run* run)>& done) {
  std::vector<std::string> files;
  for (const QString& path : paths) files.push_back(path.toStdString());
  try {
    files = prof::with_files_of_folders(files);
  } catch (const std::exception&) {  // a folder without traces, or one that cannot be read
    return false;
  }
  if (files.size() < 2 || !prof::ranks_of_one_program(files)) return false;
  const QString target = library_.freePath(QFileInfo(QDir::cleanPath(paths[0])).baseName());
  later(
      tr("Importing %1 ranks").arg(files.size()), target,
      [files, target] { prof::convert(files, target.toStdString()); }, openThen(done));
  return true;
}

void LibraryJobs::import(const QString& path, const std::function<void(Run* run)>& done) {
  const auto opened = openThen(done);
  const QFileInfo from(path);
  if (path.endsWith(".wsrun") && from.absolutePath() == QFileInfo(library_.folder()).absoluteFilePath())
    return opened(path);
  const QString target = library_.freePath(from.baseName());
  later(
      tr("Importing %1, %2").arg(from.fileName(), bytes_text(static_cast<double>(from.size()))), target,
      [path, target] { read_in(path, target); }, opened);
}

void LibraryJobs::exportRun(const Run& run, const QString& path) {
  later(
      tr("Writing %1").arg(QFileInfo(path).fileName()), path, [from = run.path, path] { write_copy(from, path); },
      [this](const QString& written) { emit exported(written); });
}

void LibraryJobs::addMade(const QString& name, std::function<prof::RunData()> make) {
  const QString target = library_.freePath(name);
  const auto work = [folder = library_.folder(), target, make = std::move(make)] {
    QDir().mkpath(folder);
    prof::export_run(make(), target.toStdString());
  };
  later(tr("Writing %1").arg(name), target, work, [this](const QString& path) {
    if (Run* run = library_.open(path)) library_.setTicked(run, true), emit exported(path);
  });
}

}  // namespace ws::app
