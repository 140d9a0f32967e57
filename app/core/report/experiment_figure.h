// An experiment's result as a figure for paper: a bar a choice, logarithmic where the values lie far apart.
#pragma once
#include "app/core/experiments/experiment.h"
#include "app/core/report/drawing.h"

namespace ws::app {

Drawing experiment_figure(const ExperimentResult& result);  // step times

}  // namespace ws::app
