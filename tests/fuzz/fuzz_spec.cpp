// The JSON description of a run.
#include <nlohmann/json.hpp>

#include "engine/plan/run_spec.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(spec) {
  ws::fuzz::accepts([&] {
    const ws::RunSpec spec = ws::parse_spec(bytes);
    ws::fuzz::require(ws::parse_spec(ws::spec_text(spec)) == spec, "what was read can be written and read again");
  });
}
