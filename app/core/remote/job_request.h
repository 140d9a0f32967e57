// The requests that start jobs, as start_job() takes them. The command line and the window build them here.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/core/runs/torch_run.h"
#include "app/core/runs/traced_training.h"
#include "engine/lab/lab.h"
#include "engine/plan/run_spec.h"
#include "profiling/recording/record_environment.h"
#include "profiling/recording/record_program.h"

namespace ws::app {

nlohmann::json train_request(const RunSpec& spec, const std::string& title, const prof::CollectorOptions& trace,
                             bool paused = false);
nlohmann::json record_request(const std::vector<std::string>& command, const prof::RecordOptions& options);
// `experiment`: as to_json() of its ExperimentSpec; rows: known lines of results.jsonl, which are not trained again.
nlohmann::json experiment_request(const std::string& title, nlohmann::json experiment, nlohmann::json rows);
nlohmann::json lab_request(const lab::LabSpec& spec, bool record);

// Python on the other machine. An empty script is the one that is shipped with the program there.
struct RemotePython {
  std::string python = "python3", script;
};
nlohmann::json torch_lab_request(const lab::LabSpec& spec, const RemotePython& python);
nlohmann::json torch_request(const TorchRequest& request, const RemotePython& python);

// What a recorded program has reported since the last call, as an update of a run: its spans, its losses and its tests.
RunUpdate take_update(prof::RecordedProgram& program);

}  // namespace ws::app
