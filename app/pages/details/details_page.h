#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page details_page(Workspace& workspace);
}  // namespace ws::app
