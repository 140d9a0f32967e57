#include "app/workspace/run_library.h"

#include <QDir>
#include <QFileInfo>
#include <QPointer>
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "app/workspace/run_loader.h"
#include "profiling/base/failure.h"
#include "profiling/base/ownership.h"
#include "profiling/base/paths.h"
#include "profiling/base/stop_when.h"

namespace ws::app {
namespace {

constexpr int kFirstWaitMs = 1000, kLongestWaitMs = 60'000;  // before a file is tried again

QString unreadable(const QString& path, const QString& why) {
  const QString name = QFileInfo(path).fileName();
  return why.contains(name) ? why : QObject::tr("%1 cannot be read: %2").arg(name, why);
}

bool is_of_the_system(const std::exception& problem) {
  return dynamic_cast<const Unavailable*>(&problem) || dynamic_cast<const std::system_error*>(&problem);
}

QString as_sentence(const QString& text) { return text.endsWith('.') ? text : text + '.'; }

}  // namespace

RunLibrary::RunLibrary(const QString& folder, QObject* parent)
    : QObject(parent), folder_(QDir(folder).absolutePath()), trash_(folder_), aside_(folder_) {
  QDir().mkpath(folder_);
  selection_.changed = [this] { showSelected(); };
  settle_.setSingleShot(true);
  settle_.setInterval(500);  // wait until a file is no longer being written
  connect(&watcher_, &QFileSystemWatcher::directoryChanged, &settle_, qOverload<>(&QTimer::start));
  connect(&settle_, &QTimer::timeout, this, &RunLibrary::refresh);
  watcher_.addPath(folder_);
  elsewhere_.setInterval(2000);  // for runs that another program trains: read their files again
  connect(&elsewhere_, &QTimer::timeout, this, &RunLibrary::refresh);
}

QString RunLibrary::defaultFolder() { return QString::fromStdString(runs_folder().string()); }

std::vector<Run*> RunLibrary::ticked() const {
  std::vector<Run*> found;
  for (const RunId handle : selection_.baselineFirst())
    if (Run* run = byHandle(handle)) found.push_back(run);
  return found;
}

Run* RunLibrary::byHandle(RunId handle) const {
  const auto at = std::ranges::find(runs_, handle, &Run::handle);
  return at == runs_.end() ? nullptr : *at;
}

RunId RunLibrary::newest() const { return runs_.empty() ? RunId::None : runs_.front()->handle; }

Run* RunLibrary::byPath(const QString& path) const {
  const QString absolute = QFileInfo(path).absoluteFilePath();
  for (Run* run : runs_)
    if (QFileInfo(run->path).absoluteFilePath() == absolute) return run;
  return nullptr;
}

void RunLibrary::insert(Run* run) {
  const auto at =
      std::find_if(runs_.begin(), runs_.end(), [run](const Run* other) { return other->created < run->created; });
  runs_.insert(at, run);
  const auto had = run->path.isEmpty() ? letters_.end() : letters_.find(QFileInfo(run->path).absoluteFilePath());
  if (had != letters_.end()) run->letter = had->second, letters_.erase(had);
  freeLetterOfAnother(*run);
}

// A copy of a run file comes with the letter of the original.
void RunLibrary::freeLetterOfAnother(Run& run) const {
  const auto same = [&](const Run* other) { return other != &run && other->letter == run.letter; };
  if (run.slot < 0 && std::ranges::any_of(runs_, same)) run.letter = -1;
}

void RunLibrary::refresh() {
  if (!QDir(folder_).exists()) {
    emit failed(tr("The folder of runs %1 is gone. The next run makes it again.").arg(folder_));
    return;
  }
  if (!watcher_.directories().contains(folder_)) watcher_.addPath(folder_);
  bool different = readFolder();
  // A recording may have no file yet, and runs trained in this window stay in memory.
  const auto gone = [](const Run* run) {
    return run->origin != RunOrigin::Live && !run->live() && !run->path.isEmpty() && !QFileInfo::exists(run->path);
  };
  std::vector<Run*> without_file;
  std::ranges::copy_if(runs_, std::back_inserter(without_file), gone);
  for (Run* run : without_file) forget(run);
  different |= !without_file.empty();
  const bool others = std::any_of(runs_.begin(), runs_.end(), [](const Run* run) { return run->elsewhere; });
  others ? elsewhere_.start() : elsewhere_.stop();
  if (different) emit changed(), emit tickedChanged();
}

// Reads new files, and files that another window renamed, tagged or finished. Returns true if something changed.
bool RunLibrary::readFolder() {
  bool different = false;
  QHash<QString, Run*> known;
  for (Run* run : runs_) known.insert(QFileInfo(run->path).absoluteFilePath(), run);
  for (const QFileInfo& file : QDir(folder_).entryInfoList({"*.wsrun"}, QDir::Files)) {
    const QString path = file.absoluteFilePath();
    const qint64 time = file.lastModified().toMSecsSinceEpoch();
    if (Run* run = known.value(path)) {
      const bool news = run->elsewhere || written_.value(path, time) != time;
      written_.insert(path, time);
      if (news && run->origin != RunOrigin::Live) different = readAgain(run) || different;
      continue;
    }
    if (aside_.holds(file)) {
      if (!reported_.contains(path)) putAside(file, tr("it could not be read before"));
      continue;
    }
    if (const auto later = later_.constFind(path); later != later_.cend() && !later->next.hasExpired()) continue;
    auto* run = new Run(this);
    try {
      readNew(*run, path);
    } catch (const std::exception& problem) {
      delete run;
      is_of_the_system(problem) ? leaveOut(file, problem) : putAside(file, QString::fromUtf8(problem.what()));
      continue;
    }
    written_.insert(path, time);
    insert(run);
    different = true;
  }
  return different;
}

// A disk or a limit of the system may fail once: the second failure is the file's. What crashes the program is read
// once.
void RunLibrary::readNew(Run& run, const QString& path) {
  const QString absolute = QFileInfo(path).absoluteFilePath();
  const AsideFiles::Reading reading(aside_, absolute);
  try {
    read_summary(run, path);
  } catch (const std::exception&) {
    read_summary(run, path);
  }
  reported_.remove(absolute);
  later_.remove(absolute);
}

bool RunLibrary::readAgain(Run* run) {
  const bool was_elsewhere = run->elsewhere, was_loaded = run->loaded;
  try {
    // A file that another program writes is read every two seconds: a mark would change the folder each time.
    std::optional<AsideFiles::Reading> reading;
    if (!was_elsewhere) reading.emplace(aside_, run->path);
    read_summary(*run, run->path);
  } catch (const std::exception& problem) {
    emit failed(unreadable(run->path, QString::fromUtf8(problem.what())));
    return false;
  }
  freeLetterOfAnother(*run);
  run->loaded = was_loaded && !was_elsewhere;  // it continued: the data read before is old
  if (run->slot >= 0) loadDetails(run);
  run->announce();
  return true;
}

// Reports ticked runs again: the page in front was shown before the run had its trace.
void RunLibrary::reportTicked(const Run& run) {
  if (run.slot >= 0) emit tickedChanged();
}

void RunLibrary::putAside(const QFileInfo& file, const QString& why) {
  reported_.insert(file.absoluteFilePath());
  aside_.put(file);
  emit failed(
      tr("%1 It is put aside; open it to try again.").arg(as_sentence(unreadable(file.absoluteFilePath(), why))));
}

// Tries again, ever more seldom. (The mark of a reader changes the folder, which alone would read it all the time.)
void RunLibrary::leaveOut(const QFileInfo& file, const std::exception& problem) {
  const QString path = file.absoluteFilePath();
  Later& later = later_[path];
  later.wait_ms = std::clamp(2 * later.wait_ms, kFirstWaitMs, kLongestWaitMs);
  later.next.setRemainingTime(later.wait_ms);
  QTimer::singleShot(later.wait_ms + 50, this, &RunLibrary::refresh);
  if (reported_.contains(path)) return;
  reported_.insert(path);
  emit failed(
      tr("%1 Warpsight tries again by itself.").arg(as_sentence(unreadable(path, QString::fromUtf8(problem.what())))));
}

void RunLibrary::adopt(Run* run) {
  if (!run->parent()) run->setParent(this);
  insert(run);
  connect(run, &Run::changed, this, [this, run, made = run->changes.size()]() mutable {
    if (std::exchange(made, run->changes.size()) == made) return;
    emit changed();
    if (run->slot >= 0) emit tickedChanged();  // its choices and its title are others now
  });
  connect(run, &Run::ended, this, [this, run] {
    written_.remove(QFileInfo(run->path).absoluteFilePath());
    keepLetter(*run);
    keepTitle(*run);
    emit changed();
  });
  emit changed();
}

Run* RunLibrary::open(const QString& path) {
  if (Run* known = byPath(path)) return known;
  auto* run = new Run(this);
  try {
    readNew(*run, path);
  } catch (const std::exception& problem) {
    delete run;
    emit failed(unreadable(path, QString::fromUtf8(problem.what())));
    return nullptr;
  }
  aside_.take(QFileInfo(path));
  insert(run);
  emit changed();
  return run;
}

void RunLibrary::setTicked(Run* run, bool on) {
  if (!on) return selection_.drop(run->handle);
  if (!selection_.add(run->handle)) emit failed(tr("Untick a run first: eight runs are the most."));
}

void RunLibrary::tickOnly(const std::vector<Run*>& runs) {
  std::vector<RunId> handles;
  for (const Run* run : runs) handles.push_back(run->handle);
  selection_.open(Selection::baseline_first(std::move(handles)));
}

void RunLibrary::showSelected() {
  for (Run* run : runs_)
    if (!selection_.has(run->handle)) run->slot = -1;
  for (Run* run : ticked()) {
    if (run->slot < 0) giveLetter(run);
    run->slot = run->letter;
    loadDetails(run);
  }
  emit changed();
  emit tickedChanged();
}

Run* RunLibrary::replace(Run* live, const QString& path) {
  live->path.clear();  // the file is kept when the live run is removed
  Run* file = open(path);
  if (file) {
    if (file->letter < 0) file->letter = std::exchange(live->letter, -1), keepLetter(*file);
    live->slot = -1;
    selection_.replaced(live->handle, file->handle);
  }
  remove(live);
  return file;
}

// Chooses the first letter that no other run has, in a colour that no ticked run has, if there is one. A run keeps its
// letter and its colour unless another ticked run has that letter.
void RunLibrary::giveLetter(Run* run) {
  if (run->letter >= 0 && std::ranges::find(runs_, run->letter, &Run::slot) == runs_.end()) return;
  constexpr int kColours = 8;
  std::set<int> owned;
  for (const auto& [path, letter] : letters_) owned.insert(letter);
  std::array<int, kColours> ticked{};
  for (const Run* other : runs_) {
    if (other != run) owned.insert(other->letter);
    if (other != run && other->slot >= 0) ++ticked[static_cast<size_t>(other->slot % kColours)];
  }
  const auto of_colour = [&](int letter) { return ticked[static_cast<size_t>(letter % kColours)]; };
  int best = -1;
  const int last = static_cast<int>(owned.size()) + kColours;  // a free letter in each colour is not always among them
  for (int letter = 0; letter <= last; ++letter)
    if (!owned.contains(letter) && (best < 0 || of_colour(letter) < of_colour(best))) best = letter;
  run->letter = best;
  if (!run->live()) keepLetter(*run);
}

// Stores the title with the changes made during the run.
void RunLibrary::keepTitle(const Run& run) {
  if (run.changes.empty() || run.named || !QFileInfo::exists(run.path)) return;
  try {
    prof::rename_run(run.path.toStdString(), run.title.toStdString());
  } catch (const std::exception&) {
  }
}

// Stores the letter. To look at a file from elsewhere does not change it: such a run, and one in a read-only folder, has its
// letter only while the window is open.
void RunLibrary::keepLetter(const Run& run) {
  if (run.letter < 0 || run.shipped || !QFileInfo::exists(run.path) || QFileInfo(run.path).absolutePath() != folder_) return;
  try {
    prof::keep_with_run(run.path.toStdString(), "letter", std::to_string(run.letter));
    written_.insert(QFileInfo(run.path).absoluteFilePath(), QFileInfo(run.path).lastModified().toMSecsSinceEpoch());
  } catch (const std::exception&) {
  }
}

// A large file takes long, so it is read on another thread and handed over as a whole.
void RunLibrary::loadDetails(Run* run) {
  if (run->loaded || loading_.contains(run)) return;
  const auto details = std::make_shared<std::unique_ptr<RunDetails>>();
  std::unique_ptr<Job>& job = loading_[run] = std::make_unique<Job>();
  const auto work = [details, path = run->path,
                     reading = std::make_shared<AsideFiles::Reading>(aside_, QFileInfo(run->path).absoluteFilePath())](
                        const Job::Side& side) mutable {
    const StopWhen closed(*side.cancelled());
    *details = read_details(path);
    reading.reset();
  };
  job->start(work, [this, details, run, guard = QPointer<Run>(run)](const QString& problem) {
    loading_[run].release()->deleteLater();  // this job is the caller
    loading_.erase(run);
    if (!guard) return;
    if (*details) {
      const std::vector<std::string> damage = (*details)->reader->problems();
      give_details(*guard, std::move(**details)), reportTicked(*guard);
      if (!damage.empty())
        emit failed(tr("Not all of %1 can be read: %2. The Log lists what is missing.")
                        .arg(QFileInfo(guard->path).fileName(), QString::fromStdString(damage.front())));
    } else {
      emit failed(problem);
    }
  });
}

bool RunLibrary::write(Run* run, const std::function<void(const std::string& path)>& change) {
  if (run->shipped) {
    emit failed(tr("%1 is shipped with Warpsight and cannot be changed. Save a copy first (File › Save a copy).")
                    .arg(run->title));
    return false;
  }
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
  run->title = wanted, run->named = true;
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
  const QString owner = QString::fromStdString(owner_of(run->path.toStdString()));
  if (run->live() || !owner.isEmpty()) {
    emit failed(run->live() ? tr("Stop the training of %1 first (Run › Stop).").arg(run->title)
                            : tr("Process %2 still writes %1. Stop that process first.").arg(run->title, owner));
    return false;
  }
  if (!run->shipped && QFileInfo::exists(run->path) && !trash_.take(run->path, run->title, run->handle)) {
    emit failed(tr("%1 cannot be deleted: its folder is not writable.").arg(QFileInfo(run->path).fileName()));
    return false;
  }
  forget(run);
  emit changed();
  return true;
}

void RunLibrary::forget(Run* run) {
  std::erase(runs_, run);
  if (run->letter >= 0) letters_[run->path.isEmpty() ? QString::number(static_cast<qulonglong>(run->handle)) : QFileInfo(run->path).absoluteFilePath()] = run->letter;
  run->slot = -1;
  selection_.removed(run->handle, newest());
  run->deleteLater();
}

Run* RunLibrary::undoRemove() {
  if (trash_.empty()) return nullptr;
  try {
    const RunId removed = trash_.lastRun();
    const QString path = trash_.putBack([this](const QString& base) { return freePath(base); });
    Run* run = open(path);
    if (run) selection_.restored(removed, run->handle);
    return run;
  } catch (const Failure& problem) {
    emit failed(QString::fromUtf8(problem.what()));
    emit changed();
    return nullptr;
  }
}

QString RunLibrary::freePath(const QString& base) const {
  const auto taken = [this](const QString& path) { return QFileInfo::exists(path) || reserved_.contains(path); };
  QString path = QDir(folder_).filePath(base + ".wsrun");
  for (int i = 2; taken(path); ++i) path = QDir(folder_).filePath(QString("%1-%2.wsrun").arg(base).arg(i));
  return path;
}

}  // namespace ws::app
