#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page plan_page(Workspace& workspace);
}  // namespace ws::app
