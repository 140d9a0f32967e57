#include "app/pages/lab/lab_torch.h"

#include <QCoreApplication>
#include <QFileInfo>

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

}  // namespace ws::app
