#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page roofline_page(Workspace& workspace);
}  // namespace ws::app
