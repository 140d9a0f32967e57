// Makes the pictures of a measured and a predicted step from a graph of causes.
#pragma once
#include "app/pages/what_if/step_path_view.h"
#include "profiling/causes/what_if.h"

namespace ws::app {

// `name`: of the edits, in the title of the predicted step. `example`: nobody asked for it yet.
std::vector<PathPicture> step_pictures(const prof::StepCauses& causes, const prof::Trace& trace, const std::vector<prof::Edit>& edits, const QString& name, const prof::WhatIf& result, bool example = false);

}  // namespace ws::app
