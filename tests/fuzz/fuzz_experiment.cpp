// The JSON of an experiment.
#include <nlohmann/json.hpp>

#include "app/core/experiments/experiment.h"
#include "profiling/base/json_input.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(experiment) {
  ws::fuzz::accepts([&] {
    const ws::app::ExperimentSpec spec = ws::app::experiment_from_json(ws::parse_json(bytes, "fuzz"));
    const auto again = ws::app::experiment_from_json(ws::app::to_json(spec));
    ws::fuzz::require(ws::app::to_json(again) == ws::app::to_json(spec), "what was read can be written and read again");
    ws::app::run_order(spec, ws::app::trials_of(spec, false));
  });
}
