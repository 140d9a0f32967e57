// The page Own kernel, and its ways in: from an op on the page Plan, and from a kernel in the timeline.
#pragma once
#include "app/pages/page.h"

namespace ws::app {

// `plan`: the widget of the page Plan.
Page kernel_editor_page(Workspace& workspace, QWidget* plan);

}  // namespace ws::app
