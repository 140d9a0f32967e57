// The step before and after a person's kernel came into use, as pictures on one axis.
#pragma once
#include <optional>
#include <vector>

#include "app/pages/what_if/step_path_view.h"

namespace ws::app {

class Run;

// The newest change of exec.kernels in the run: the first step with it.
std::optional<int64_t> kernel_change(const Run& run);
// Empty until both steps are in the trace.
std::vector<PathPicture> pictures_around(const Run& run, int64_t step);

}  // namespace ws::app
