// Makes the pictures of a measured and a predicted step from a graph of causes.
#pragma once
#include "app/pages/what_if/step_path_view.h"
#include "profiling/causes/what_if.h"

namespace ws::app {

// Without edits only the measured step.
std::vector<PathPicture> step_pictures(const prof::StepCauses& causes, const prof::Trace& trace, const std::vector<prof::Edit>& edits, const prof::WhatIf& result);

}  // namespace ws::app
