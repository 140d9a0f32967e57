#include "app/pages/lab/lab_torch.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QPushButton>

#include "app/pages/lab/lab_tab.h"
#include "app/core/runs/torch_run.h"

namespace ws::app {

void LabTorch::start(const lab::LabSpec& spec) {
  thread_ = {};
  cancel_ = false;
  running_ = true;
  const std::string program = QCoreApplication::applicationFilePath().toStdString();
  thread_ = std::jthread([this, spec, program, python = python_.toStdString(), script = script_.toStdString()] {
    lab::LabResult result;
    QString problem;
    try {
      TorchTools tools = find_torch(python, program);
      if (!script.empty()) tools.script = script, tools.problem.clear();
      result = run_torch_lab(spec, tools, cancel_, [this](const std::string& line) {
        QMetaObject::invokeMethod(this, [this, text = QString::fromStdString(line)] { emit said(text); });
      });
    } catch (const std::exception& failure) {
      problem = QString::fromUtf8(failure.what());
    }
    QMetaObject::invokeMethod(this, [this, result, problem] { finish(result, problem); });
  });
}

void LabTorch::finish(const lab::LabResult& result, const QString& problem) {
  running_ = false;
  if (problem.isEmpty()) emit measured(result);
  emit ended(problem);
}

// ---- its button in the tab ----

void LabTab::buildTorch(QPushButton* button) {
  torch_ = new LabTorch(this);
  torch_button_ = button;
  connect(button, &QPushButton::clicked, this, &LabTab::runTorch);
  connect(torch_, &LabTorch::said, this, [this](const QString& line) { say(tr("PyTorch: %1").arg(line)); });
  connect(torch_, &LabTorch::measured, this, [this](const lab::LabResult& result) {
    torch_note_ = QString::fromStdString(result.message);
    layOver(result, tr("PyTorch"));
  });
  connect(torch_, &LabTorch::ended, this, [this](const QString& problem) {
    torch_button_->setText(tr("The same in PyTorch"));
    emit busyChanged(false);
    const QStringList done{tr("PyTorch's curves lie over ours."), torch_note_};
    say(problem.isEmpty() ? done.join(' ').trimmed() : problem);
  });
}

// What was measured last, else what is chosen now.
void LabTab::runTorch() {
  if (torch_->running()) return torch_->stop();
  if (!elsewhere_.isEmpty()) return say(elsewhere_);
  if (job_->running()) return say(tr("A sweep is being measured: stop it first."));
  try {
    const lab::LabSpec wanted = job_->result().points.empty() ? spec() : job_->result().spec;
    torch_->start(wanted);
  } catch (const Failure& failure) {
    return say(QString::fromUtf8(failure.what()));
  }
  emit busyChanged(true);
  torch_button_->setText(tr("Stop PyTorch"));
  say(tr("PyTorch is being started."));
}

}  // namespace ws::app
