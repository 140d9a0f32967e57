// The result of an experiment as a figure for paper: one bar per choice, on a log axis if the values are far apart.
#pragma once
#include "app/core/experiments/experiment.h"
#include "app/core/report/drawing.h"

namespace ws::app {

Drawing experiment_figure(const ExperimentResult& result);  // step times

}  // namespace ws::app
