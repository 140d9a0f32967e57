#pragma once
#include "app/pages/page.h"

namespace ws::app {
Page lab_page(Workspace& workspace);
}  // namespace ws::app
