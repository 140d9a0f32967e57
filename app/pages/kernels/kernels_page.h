#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page kernels_page(Workspace& workspace);
}  // namespace ws::app
