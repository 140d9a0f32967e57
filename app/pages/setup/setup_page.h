#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page setup_page(Workspace& workspace);
}  // namespace ws::app
