// What the status line says about the machine, the training and the shown run.
#pragma once
#include "app/window/status_line.h"
#include "app/workspace/workspace.h"

namespace ws::app {

void show_status(StatusLine& line, Workspace& workspace);

}  // namespace ws::app
