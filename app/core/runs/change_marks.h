// A change during a run, in the form that run files store: "exec.allocator: arena → direct".
#pragma once
#include <optional>
#include <vector>

#include "engine/plan/run_spec.h"
#include "engine/train/trainer.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

prof::ChangeMark mark_of(const Change& change, double wall_s);
std::optional<Change> change_of(const prof::ChangeMark& mark);  // nullopt if it is not one of our choices
RunSpec with_changes(RunSpec spec, const std::vector<prof::ChangeMark>& marks);  // the choices at the end of the run

}  // namespace ws::app
