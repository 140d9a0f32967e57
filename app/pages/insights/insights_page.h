#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page insights_page(Workspace& workspace);
}  // namespace ws::app
