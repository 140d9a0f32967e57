// A change in mid-run as a run file keeps it: "exec.allocator: arena → direct".
#pragma once
#include <optional>
#include <vector>

#include "engine/plan/run_spec.h"
#include "engine/train/trainer.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

prof::ChangeMark mark_of(const Change& change, double wall_s);
std::optional<Change> change_of(const prof::ChangeMark& mark);  // nullopt: not one of our choices
RunSpec with_changes(RunSpec spec, const std::vector<prof::ChangeMark>& marks);  // as the run ended

}  // namespace ws::app
