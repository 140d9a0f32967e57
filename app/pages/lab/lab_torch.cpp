#include "app/pages/lab/lab_torch.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <nlohmann/json.hpp>

#include "app/core/remote/job_request.h"
#include "app/core/runs/torch_run.h"
#include "profiling/base/json_input.h"

namespace ws::app {

using nlohmann::json;

void LabTorch::start(const lab::LabSpec& spec) {
  if (!machine_) return startHere(spec);
  follow(QString::fromStdString(RemoteRun::new_name("lab-pytorch")),
         torch_lab_request(spec, {python_.toStdString(), script_.toStdString()}));
}

void LabTorch::follow(const QString& name) { follow(name, json()); }

void LabTorch::follow(const QString& name, const json& job) {
  const auto no_files = [](const std::string&, const std::vector<std::string>&) {
    return std::vector<RemoteWork::Copy>();
  };
  RemoteWork* there = there_.follow(std::make_unique<RemoteWork>(machine_, name, job, no_files, this),
                                    [this](const QString& problem) { emit ended(problem); });
  connect(there, &RemoteWork::printed, this, &LabTorch::said);
  connect(there, &RemoteWork::received, this, &LabTorch::take);
}

void LabTorch::take(const std::vector<std::string>& results) {
  for (const std::string& text : results) try {
      const json parsed = parse_json(text, "A result");
      const JsonInput in(parsed, "");
      if (in.at("whole").there()) emit measured(lab::lab_result_from_json(in.at("whole").value()));
    } catch (const std::exception& problem) {
      emit said(QString::fromUtf8(problem.what()));
    }
}

void LabTorch::stop() {
  job_.cancel();
  there_.stop();
}

void LabTorch::leave() {
  if (there_.leave()) emit ended({});
}

void LabTorch::startHere(const lab::LabSpec& spec) {
  const std::string program = QCoreApplication::applicationFilePath().toStdString();
  const auto result = std::make_shared<lab::LabResult>();
  const auto work = [this, spec, result, program, python = python_.toStdString(),
                     script = script_.toStdString()](const Job::Side& side) {
    TorchTools tools = find_torch(python, program);
    if (!script.empty()) tools.script = script, tools.problem.clear();
    *result = run_torch_lab(spec, tools, *side.cancelled(), [&](const std::string& line) {
      side.post([this, text = QString::fromStdString(line)] { emit said(text); });
    });
  };
  job_.start(work, [this, result](const QString& problem) {
    if (problem.isEmpty()) emit measured(*result);
    emit ended(problem);
  });
}

}  // namespace ws::app
