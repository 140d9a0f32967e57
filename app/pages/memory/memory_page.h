#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page memory_page(Workspace& workspace);
}  // namespace ws::app
