#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page experiments_page(Workspace& workspace);
}  // namespace ws::app
