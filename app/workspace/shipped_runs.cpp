#include "app/workspace/shipped_runs.h"

#include <QDir>
#include <QFileInfo>

#include "app/workspace/run.h"
#include "profiling/base/paths.h"

namespace ws::app {
namespace {

QDir folder() { return QDir(QString::fromStdString((resources_folder() / "recorded").string())); }

}  // namespace

QStringList shipped_runs() {
  QStringList paths;
  for (const QFileInfo& file : folder().entryInfoList({"*.wsrun"}, QDir::Files, QDir::Name))
    paths << file.absoluteFilePath();
  return paths;
}

QString shipped_run(const QString& name) {
  const QFileInfo file(folder().filePath(name + ".wsrun"));
  return file.exists() ? file.absoluteFilePath() : QString();
}

bool is_shipped(const QString& path) {
  return QFileInfo(path).absoluteDir().canonicalPath() == folder().canonicalPath() && folder().exists();
}

QString origin_text(const Run& run) {
  return run.shipped ? QObject::tr("recorded on an %1").arg(run.device) : QString();
}

}  // namespace ws::app
