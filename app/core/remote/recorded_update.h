// What a recorded program has reported since the last call, as an update of a run: its spans, its losses and its tests.
#pragma once
#include "app/core/runs/traced_training.h"
#include "profiling/recording/record_program.h"

namespace ws::app {

RunUpdate take_update(prof::RecordedProgram& program);

}  // namespace ws::app
