#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page compare_page(Workspace& workspace);
}  // namespace ws::app
