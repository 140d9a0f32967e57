// An experiment's result as a figure for paper: a bar a choice, logarithmic where the values lie far apart.
#pragma once
#include <string>

#include "app/core/experiments/experiment.h"

namespace ws::app {

std::string experiment_svg(const ExperimentResult& result);  // step times; a whole SVG file

}  // namespace ws::app
