#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page weights_page(Workspace& workspace);
}  // namespace ws::app
