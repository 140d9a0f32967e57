#include "app/workspace/aside_files.h"

#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QTextStream>

#include "profiling/base/process.h"

namespace ws::app {
namespace {

constexpr const char* kList = "/.aside";
constexpr const char* kMark = ".reading-";

QString state_of(const QFileInfo& file) {
  return QString("%1 %2").arg(file.size()).arg(file.lastModified().toMSecsSinceEpoch());
}

}  // namespace

AsideFiles::AsideFiles(const QString& folder) : folder_(folder) {
  QFile list(folder_ + kList);
  if (list.open(QIODevice::ReadOnly | QIODevice::Text)) {
    QTextStream in(&list);
    for (QString line; in.readLineInto(&line);)
      if (const qsizetype tab = line.indexOf('\t'); tab > 0) files_.insert(line.mid(tab + 1), line.left(tab));
  }
  takeMarks();
}

void AsideFiles::takeMarks() {
  for (const QFileInfo& mark : QDir(folder_).entryInfoList({QString(kMark) + "*"}, QDir::Files | QDir::Hidden)) {
    QFile file(mark.filePath());
    const std::string reader = file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
    if (is_alive(reader)) continue;
    if (!reader.empty()) put(QFileInfo(folder_ + "/" + mark.fileName().mid(QString(kMark).size())));
    QFile::remove(mark.filePath());
  }
}

bool AsideFiles::holds(const QFileInfo& file) const {
  const auto known = files_.find(file.fileName());
  return known != files_.end() && *known == state_of(file);
}

void AsideFiles::put(const QFileInfo& file) {
  if (!file.exists()) return;
  files_.insert(file.fileName(), state_of(file));
  save();
}

void AsideFiles::take(const QFileInfo& file) {
  if (file.absolutePath() == folder_ && files_.remove(file.fileName())) save();
}

void AsideFiles::save() const {
  QFile list(folder_ + kList);
  if (!list.open(QIODevice::WriteOnly | QIODevice::Text)) return;
  QTextStream out(&list);
  for (auto file = files_.begin(); file != files_.end(); ++file)
    if (QFileInfo::exists(folder_ + "/" + file.key())) out << *file << '\t' << file.key() << '\n';
}

AsideFiles::Reading::Reading(const AsideFiles& files, const QString& path) {
  const QFileInfo file(path);
  if (file.absolutePath() != files.folder_) return;
  mark_ = files.folder_ + "/" + kMark + file.fileName();
  QFile mark(mark_);
  if (mark.open(QIODevice::WriteOnly)) mark.write(QByteArray::fromStdString(process_mark()));
}

// An empty mark says nothing. One that could not be removed would put a good file aside.
AsideFiles::Reading::~Reading() {
  if (!mark_.isEmpty() && !QFile::remove(mark_)) QFile::resize(mark_, 0);
}

}  // namespace ws::app
