#include "app/core/remote/job_request.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "app/core/remote/curves.h"

namespace ws::app {

using nlohmann::json;

namespace {

json with_python(json request, const RemotePython& python) {
  request["python"] = python.python;
  if (!python.script.empty()) request["script"] = python.script;
  return request;
}

}  // namespace

json train_request(const RunSpec& spec, const std::string& title, const prof::CollectorOptions& trace, bool paused) {
  return {{"kind", "train"},
          {"spec", to_json(spec)},
          {"title", title},
          {"trace", prof::to_string(trace.level)},
          {"counters", trace.hardware_counters},
          {"window", trace.node_window},
          {"every", trace.node_every},
          {"xray", trace.xray.length},
          {"xray_every", trace.xray.every},
          {"xray_again_by_time", trace.xray.again_by_time},
          {"paused", paused}};
}

json record_request(const std::vector<std::string>& command, const prof::RecordOptions& options) {
  return {{"kind", "record"},
          {"command", command},
          {"trace", prof::to_string(options.level)},
          {"counters", options.counters},
          {"python", prof::to_string(options.python)},
          {"window", options.window},
          {"xray", options.xray},
          {"captures", options.captures},
          {"library", options.library},
          {"keep_command", options.keep_command},
          {"folder", options.folder}};
}

json experiment_request(const std::string& title, json experiment, json rows) {
  return {{"kind", "experiment"}, {"title", title}, {"experiment", std::move(experiment)}, {"rows", std::move(rows)}};
}

json lab_request(const lab::LabSpec& spec, bool record) {
  return {{"kind", "lab"}, {"title", to_string(spec.operation)}, {"lab", to_json(spec)}, {"record", record}};
}

json torch_lab_request(const lab::LabSpec& spec, const RemotePython& python) {
  return with_python({{"kind", "lab"}, {"title", "PyTorch"}, {"lab", to_json(spec)}, {"torch", true}}, python);
}

json torch_request(const TorchRequest& request, const RemotePython& python) {
  return with_python({{"kind", "torch"},
                      {"title", request.title},
                      {"spec", to_json(request.spec)},
                      {"compile", request.compile},
                      {"record", request.record}},
                     python);
}

RunUpdate take_update(prof::RecordedProgram& program) {
  RunUpdate update;
  for (prof::TraceBatch batch = program.take(); !batch.empty(); batch = program.take())
    update.traces.push_back(std::move(batch));
  const prof::LiveCurves curves = program.take_curves();
  for (const prof::Metric& m : curves.metrics) update.steps.push_back(step_of(m));
  for (const prof::Evaluation& e : curves.evaluations) update.epochs.push_back(test_of(e));
  return update;
}

}  // namespace ws::app
