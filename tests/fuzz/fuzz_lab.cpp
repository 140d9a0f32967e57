// The JSON of a sweep, and of its result.
#include <nlohmann/json.hpp>

#include "engine/lab/lab.h"
#include "profiling/base/json_input.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(lab) {
  using namespace ws::lab;
  ws::fuzz::accepts([&] { lab_spec_from_json(to_json(lab_spec_from_json(ws::parse_json(bytes, "fuzz")))); });
  ws::fuzz::accepts([&] {
    const LabResult result = lab_result_from_json(ws::parse_json(bytes, "fuzz"));
    to_csv(result);
    lab_result_from_json(to_json(result));
  });
}
