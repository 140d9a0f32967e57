// The JSON description of a run.
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/plan/run_spec.h"
#include "profiling/base/failure.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(spec) {
  try {
    const ws::RunSpec spec = ws::parse_spec({reinterpret_cast<const char*>(bytes), count});
    ws::fuzz::require(ws::parse_spec(ws::spec_text(spec)) == spec, "what was read can be written and read again");
  } catch (const ws::Failure&) {
  }
  return 0;
}
