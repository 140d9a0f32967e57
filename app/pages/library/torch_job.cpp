#include "app/pages/library/torch_job.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <nlohmann/json.hpp>

#include "app/core/remote/job_request.h"
#include "app/core/runs/torch_run.h"
#include "app/workspace/workspace.h"

namespace ws::app {

TorchJob::TorchJob(Workspace& workspace, QObject* parent) : QObject(parent), workspace_(workspace), python_("python3") {
  setObjectName("torch");
}

void TorchJob::start(const RunSpec& spec) {
  if (running()) return workspace_.say(tr("Stop PyTorch first (Run › Stop PyTorch)."), true);
  if (workspace_.session()->busy()) return workspace_.say(tr("Stop the training first (Run › Stop)."), true);
  begin();
  if (!workspace_.session()->machine()) return startHere(spec, freshPath());
  TorchRequest request;
  request.spec = spec, request.title = spec.name;
  startThere(QString::fromStdString(RemoteRun::new_name("pytorch")),
             torch_request(request, {python_.toStdString(), script_.toStdString()}), freshPath());
}

void TorchJob::follow(const RemoteJobInfo& job) {
  if (running() || workspace_.session()->busy() || !workspace_.session()->machine()) return;
  begin();
  startThere(job.name, nlohmann::json(), freshPath());
}

// No other training may start meanwhile.
void TorchJob::begin() {
  workspace_.session()->hold(this, tr("Stop PyTorch first (Run › Stop PyTorch)."));
  workspace_.say(tr("Starting PyTorch."), false);
}

QString TorchJob::freshPath() const {
  const QString name = QDateTime::currentDateTime().toString("yyyyMMdd-HHmmss") + "-pytorch.wsrun";
  return QDir(workspace_.library()->folder()).filePath(name);
}

void TorchJob::startThere(const QString& name, const nlohmann::json& job, const QString& path) {
  const auto run_file = [path](const std::string&, const std::vector<std::string>& files) {
    std::vector<RemoteWork::Copy> copies;
    if (!files.empty()) copies.push_back({{{"file", files.front()}}, path});
    return copies;
  };
  RemoteWork* there =
      there_.follow(std::make_unique<RemoteWork>(workspace_.session()->machine(), name, job, run_file, this),
                    [this, path](const QString& problem) { finish(path, problem); });
  connect(there, &RemoteWork::printed, this,
          [this](const QString& line) { workspace_.say(tr("PyTorch: %1").arg(line), false); });
  emit runningChanged();
}

void TorchJob::stop() {
  job_.cancel();
  there_.stop();
}

void TorchJob::leave() {
  if (!there_.leave()) return;
  workspace_.session()->hold(this, {});
  emit runningChanged();
}

void TorchJob::startHere(const RunSpec& spec, const QString& path) {
  const std::string program = QCoreApplication::applicationFilePath().toStdString();
  const auto work = [this, spec, path, program, python = python_.toStdString(),
                     script = script_.toStdString()](const Job::Side& side) {
    TorchTools tools = find_torch(python, program);
    if (!script.empty()) tools.script = script, tools.problem.clear();
    TorchRequest request;
    request.spec = spec;
    request.out = path.toStdString();
    run_torch(request, tools, *side.cancelled(), [&](const std::string& line) {
      side.post([this, text = QString::fromStdString(line)] { workspace_.say(tr("PyTorch: %1").arg(text), false); });
    });
  };
  job_.start(work, [this, path](const QString& problem) { finish(path, problem); });
  emit runningChanged();
}

void TorchJob::finish(const QString& path, const QString& problem) {
  emit runningChanged();
  workspace_.session()->hold(this, {});
  if (!problem.isEmpty()) {
    workspace_.say(problem, true);
  } else if (Run* run = workspace_.library()->open(path)) {
    workspace_.library()->setTicked(run, true);
    workspace_.say(tr("PyTorch has trained the same network: %1.").arg(run->title), false);
  }
  emit ended(problem);
}

}  // namespace ws::app
