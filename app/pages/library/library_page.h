#pragma once
#include "app/pages/page.h"

namespace ws::app {

struct LibraryPages {
  Page runs, library;  // the dock, and the table of all runs
};
LibraryPages library_pages(Workspace& workspace);

}  // namespace ws::app
