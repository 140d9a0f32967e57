// What the status line says about the machine, the training and the trace of the shown run. What the header says is not repeated.
#pragma once
#include "app/window/status_line.h"
#include "app/workspace/workspace.h"

namespace ws::app {

void show_status(StatusLine& line, Workspace& workspace);

}  // namespace ws::app
