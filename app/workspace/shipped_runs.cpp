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
  for (const char* name : {"mnist-direct", "mnist-arena", "mnist-graph", "mnist-persistent"})
    if (const QString path = shipped_run(name); !path.isEmpty()) paths << path;
  return paths;
}

std::vector<RecordedProgram> recorded_programs() {
  const std::pair<const char*, std::pair<QString, QString>> all[] = {
      {"pytorch-cnn",
       {QObject::tr("A small CNN in PyTorch"),
        QObject::tr("One line makes 14 syncs per step. Find it: Advice names the line, Flame graph shows the way there.")}},
      {"pytorch-gpt-2-ranks",
       {QObject::tr("A small GPT on two GPUs"),
        QObject::tr("One rank waits for the other in every step. Find which, and for how long: the page Ranks shows each step.")}},
      {"pytorch-slow-loader",
       {QObject::tr("A training with a slow loader"),
        QObject::tr("The step waits for its data. Find the line of the loader that takes the time: Advice names it, the timeline shows the waits.")}}};
  std::vector<RecordedProgram> found;
  for (const auto& [name, text] : all)
    if (const QString path = shipped_run(name); !path.isEmpty()) found.push_back({path, text.first, text.second});
  return found;
}

QString shipped_run(const QString& name) {
  const QFileInfo file(folder().filePath(name + ".wsrun"));
  return file.exists() ? file.absoluteFilePath() : QString();
}

bool is_shipped(const QString& path) {
  return QFileInfo(path).absoluteDir().canonicalPath() == folder().canonicalPath() && folder().exists();
}

QString origin_text(const Run& run) {
  if (!run.shipped) return {};
  const bool several = !run.device.isEmpty() && run.device[0].isDigit();  // "2 × NVIDIA H200"
  return (several ? QObject::tr("recorded on %1") : QObject::tr("recorded on an %1")).arg(run.device);
}

}  // namespace ws::app
