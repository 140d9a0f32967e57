// Files that come into the library and go out of it. Big ones take a while: all of it happens on another thread, one
// file after the other, and work() says what is going on.
#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QPointer>
#include <QThreadPool>
#include <filesystem>

#include "app/text/units.h"
#include "app/workspace/run_library.h"
#include "profiling/formats/convert.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

// One thread: the processor is the run's that trains.
QThreadPool& file_thread() {
  static QThreadPool pool;
  pool.setMaxThreadCount(1);
  return pool;
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

void read_in(const QString& from, const QString& to) {
  if (!from.endsWith(".wsrun")) {
    prof::convert(from.toStdString(), to.toStdString());
    return;
  }
  prof::read_run_summary(from.toStdString());  // refuses what is no run
  prof::write_whole_file(to.toStdString(), [&](const std::string& part) {
    if (!QFile::copy(from, QString::fromStdString(part)))
      throw Failure(part + ": cannot be written; is the disk full?");
  });
}

}  // namespace

// Of no file, and of none that is still to be written.
QString RunLibrary::freeName(const QString& folder, const QString& base) const {
  const auto taken = [this](const QString& path) {
    return QFileInfo::exists(path) ||
           std::any_of(works_.begin(), works_.end(), [&](const Work& work) { return work.target == path; });
  };
  QString path = QDir(folder).filePath(base + ".wsrun");
  for (int i = 2; taken(path); ++i) path = QDir(folder).filePath(QString("%1-%2.wsrun").arg(base).arg(i));
  return path;
}

// Runs `work` on another thread; that it has written `target`, or its problem in a sentence, comes back while the
// library is there.
void RunLibrary::later(const QString& what, const QString& target, std::function<void()> work,
                       std::function<void(const QString& path)> done) {
  works_.push_back({what, target, {}});
  works_.back().since.start();
  if (works_.size() == 1) clock_.start();
  emit workChanged();
  file_thread().start([guard = QPointer<RunLibrary>(this), target, work = std::move(work), done = std::move(done)] {
    QString problem;
    try {
      work();
    } catch (const std::exception& failure) {
      problem = QString::fromUtf8(failure.what());
    }
    QMetaObject::invokeMethod(qApp, [guard, done, target, problem] {
      if (!guard) return;
      guard->workEnded();
      problem.isEmpty() ? done(target) : emit guard->failed(problem);
    });
  });
}

void RunLibrary::giveUpWork() {
  for (const Work& work : works_) prof::remove_part_of(work.target.toStdString());
}

// They end in the order in which they came.
void RunLibrary::workEnded() {
  works_.pop_front();
  if (works_.empty())
    clock_.stop();
  else
    works_.front().since.restart();
  emit workChanged();
}

QString RunLibrary::work() const {
  if (works_.empty()) return {};
  QString said = works_.front().what + QString::fromUtf8("…");
  if (const qint64 seconds = works_.front().since.elapsed() / 1000; seconds > 0) said += tr(" %1 s").arg(seconds);
  if (works_.size() > 1) said += tr(" · %1 more to come").arg(works_.size() - 1);
  return said;
}

void RunLibrary::import(const QString& path, const std::function<void(Run* run)>& done) {
  const auto opened = [this, done](const QString& file) {
    Run* run = open(file);
    if (run && done) done(run);
    if (run) emit imported(run);
  };
  const QFileInfo from(path);
  if (path.endsWith(".wsrun") && from.absolutePath() == QFileInfo(folder_).absoluteFilePath()) return opened(path);
  const QString target = freeName(folder_, from.baseName());
  later(
      tr("Importing %1, %2").arg(from.fileName(), bytes_text(static_cast<double>(from.size()))), target,
      [path, target] { read_in(path, target); }, opened);
}

void RunLibrary::exportRun(Run* run, const QString& path) {
  later(
      tr("Writing %1").arg(QFileInfo(path).fileName()), path, [from = run->path, path] { write_copy(from, path); },
      [this](const QString& written) { emit exported(written); });
}

void RunLibrary::addMade(const QString& name, std::function<prof::RunData()> make) {
  const QString target = freeName(folder_, name);
  const auto work = [folder = folder_, target, make = std::move(make)] {
    QDir().mkpath(folder);
    prof::export_run(make(), target.toStdString());
  };
  later(tr("Writing %1").arg(name), target, work, [this](const QString& path) {
    if (Run* run = open(path)) setTicked(run, true), emit exported(path);
  });
}

}  // namespace ws::app
