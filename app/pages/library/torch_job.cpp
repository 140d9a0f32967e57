#include "app/pages/library/torch_job.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QMenu>

#include "app/pages/setup/setup_panel.h"
#include "app/workspace/run_library.h"
#include "app/core/runs/torch_run.h"
#include "app/window/main_window.h"

namespace ws::app {

TorchJob::TorchJob(MainWindow* window) : QObject(window), window_(window), python_("python3") {
  setObjectName("torch");
}

void TorchJob::start(const RunSpec& spec) {
  if (running_) return window_->say(tr("PyTorch is training already: stop it first under Run."), true);
  if (window_->session()->busy()) return window_->say(tr("A run is training: stop it first."), true);
  thread_ = {};
  cancel_ = false;
  running_ = true;
  window_->session()->hold(tr("PyTorch is training: stop it first under Run."));
  window_->say(tr("PyTorch is being started."), false);
  const QString name = QDateTime::currentDateTime().toString("yyyyMMdd-HHmmss") + "-pytorch.wsrun";
  const QString path = QDir(window_->library()->folder()).filePath(name);
  const std::string program = QCoreApplication::applicationFilePath().toStdString();
  thread_ = std::jthread([this, spec, path, program, python = python_.toStdString(), script = script_.toStdString()] {
    QString problem;
    try {
      TorchTools tools = find_torch(python, program);
      if (!script.empty()) tools.script = script, tools.problem.clear();
      TorchRequest request;
      request.spec = spec;
      request.out = path.toStdString();
      run_torch(request, tools, cancel_, [this](const std::string& line) {
        const QString text = QString::fromStdString(line);
        QMetaObject::invokeMethod(this, [this, text] { window_->say(tr("PyTorch: %1").arg(text), false); });
      });
    } catch (const std::exception& failure) {
      problem = QString::fromUtf8(failure.what());
    }
    QMetaObject::invokeMethod(this, [this, path, problem] { finish(path, problem); });
  });
}

void TorchJob::finish(const QString& path, const QString& problem) {
  running_ = false;
  window_->session()->hold({});
  if (!problem.isEmpty()) {
    window_->say(problem, true);
  } else if (Run* run = window_->library()->open(path)) {
    window_->library()->setTicked(run, true);
    window_->say(tr("PyTorch has trained the same network: %1.").arg(run->title), false);
  }
  emit ended(problem);
}

void add_torch_action(MainWindow& window, TorchJob& job) {
  QMenu* menu = window.menu(QObject::tr("Run"));
  QAction* same = menu->addAction(QObject::tr("Run the same in PyTorch"), &job, [&window, &job] {
    const Run* shown = window.shownRun();
    job.start(shown ? shown->spec : window.setup()->spec());
  });
  QAction* stop = menu->addAction(QObject::tr("Stop PyTorch"), &job, &TorchJob::stop);
  QObject::connect(menu, &QMenu::aboutToShow, &job, [&job, same, stop] {
    same->setEnabled(!job.running());
    stop->setEnabled(job.running());
  });
}

namespace {

// A trace says so near its beginning; choices, experiments and lab sheets are JSON too.
bool is_trace(const QString& path) {
  if (path.endsWith(".json.gz") || path.endsWith(".sqlite") || path.endsWith(".db")) return true;
  QFile file(path);
  if (!(path.endsWith(".json") || path.endsWith(".csv")) || !file.open(QIODevice::ReadOnly)) return false;
  const QByteArray head = file.read(path.endsWith(".csv") ? 64 : 65536);
  return path.endsWith(".csv") ? head.startsWith("Wall time,Step,Value") : head.contains("\"traceEvents\"");
}

}  // namespace

void add_trace_opener(MainWindow& window) {
  window.addOpener([&window](const QString& path) {
    if (!is_trace(path)) return false;
    window.library()->import(path, [library = window.library()](Run* run) { library->setTicked(run, true); });
    return true;
  });
}

}  // namespace ws::app
