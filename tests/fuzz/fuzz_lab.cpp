// The JSON of a sweep, and of its result.
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/lab/lab.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(lab) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), count);
  try {
    const auto spec = ws::lab::lab_spec_from_json(ws::parse_json(text, "fuzz"));
    ws::lab::lab_spec_from_json(ws::lab::to_json(spec));
  } catch (const ws::Failure&) {
  }
  try {
    const auto result = ws::lab::lab_result_from_json(ws::parse_json(text, "fuzz"));
    ws::lab::to_csv(result);
    ws::lab::lab_result_from_json(ws::lab::to_json(result));
  } catch (const ws::Failure&) {
  }
  return 0;
}
