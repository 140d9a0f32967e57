#include "app/pages/lab/lab_torch.h"

#include <QCoreApplication>
#include <QFileInfo>

#include "app/core/runs/torch_run.h"

namespace ws::app {

void LabTorch::start(const lab::LabSpec& spec) {
  const std::string program = QCoreApplication::applicationFilePath().toStdString();
  const auto result = std::make_shared<lab::LabResult>();
  const auto work = [this, spec, result, program, python = python_.toStdString(),
                     script = script_.toStdString()](const Job::Side& side) {
    TorchTools tools = find_torch(python, program);
    if (!script.empty()) tools.script = script, tools.problem.clear();
    *result = run_torch_lab(spec, tools, *side.cancelled(), [&](const std::string& line) {
      side.tell([this, text = QString::fromStdString(line)] { emit said(text); });
    });
  };
  job_.start(work, [this, result](const QString& problem) {
    if (problem.isEmpty()) emit measured(*result);
    emit ended(problem);
  });
}

}  // namespace ws::app
