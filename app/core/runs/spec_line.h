// The choices of a run as one line to send to somebody: "ws1:name=mnist;data.name=mnist;exec.allocator=arena". It has what
// differs from the defaults, so the same choices give the same line.
#pragma once
#include <string>
#include <string_view>

#include "engine/plan/run_spec.h"

namespace ws::app {

std::string spec_line(const RunSpec& spec);
bool is_spec_line(std::string_view text);
RunSpec spec_of_line(std::string_view line);  // throws SpecError with a sentence

}  // namespace ws::app
