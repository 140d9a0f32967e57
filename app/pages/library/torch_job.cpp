#include "app/pages/library/torch_job.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>

#include "app/core/runs/torch_run.h"
#include "app/workspace/workspace.h"

namespace ws::app {

TorchJob::TorchJob(Workspace& workspace, QObject* parent) : QObject(parent), workspace_(workspace), python_("python3") {
  setObjectName("torch");
}

void TorchJob::start(const RunSpec& spec) {
  if (running()) return workspace_.say(tr("Stop PyTorch first (Run › Stop PyTorch)."), true);
  if (workspace_.session()->busy()) return workspace_.say(tr("Stop the training first (Run › Stop)."), true);
  workspace_.session()->hold(tr("Stop PyTorch first (Run › Stop PyTorch)."));
  workspace_.say(tr("PyTorch is being started."), false);
  const QString name = QDateTime::currentDateTime().toString("yyyyMMdd-HHmmss") + "-pytorch.wsrun";
  const QString path = QDir(workspace_.library()->folder()).filePath(name);
  const std::string program = QCoreApplication::applicationFilePath().toStdString();
  const auto work = [this, spec, path, program, python = python_.toStdString(),
                     script = script_.toStdString()](const Job::Side& side) {
    TorchTools tools = find_torch(python, program);
    if (!script.empty()) tools.script = script, tools.problem.clear();
    TorchRequest request;
    request.spec = spec;
    request.out = path.toStdString();
    run_torch(request, tools, *side.cancelled(), [&](const std::string& line) {
      side.tell([this, text = QString::fromStdString(line)] { workspace_.say(tr("PyTorch: %1").arg(text), false); });
    });
  };
  job_.start(work, [this, path](const QString& problem) { finish(path, problem); });
  emit runningChanged();
}

void TorchJob::finish(const QString& path, const QString& problem) {
  emit runningChanged();
  workspace_.session()->hold({});
  if (!problem.isEmpty()) {
    workspace_.say(problem, true);
  } else if (Run* run = workspace_.library()->open(path)) {
    workspace_.library()->setTicked(run, true);
    workspace_.say(tr("PyTorch has trained the same network: %1.").arg(run->title), false);
  }
  emit ended(problem);
}

}  // namespace ws::app
