#include "app/window/all_pages.h"

#include "app/pages/compare/compare_page.h"
#include "app/pages/details/details_page.h"
#include "app/pages/experiments/experiments_page.h"
#include "app/pages/insights/insights_page.h"
#include "app/pages/kernels/kernels_page.h"
#include "app/pages/lab/lab_page.h"
#include "app/pages/library/library_page.h"
#include "app/pages/live/live_page.h"
#include "app/pages/memory/memory_page.h"
#include "app/pages/plan/plan_page.h"
#include "app/pages/roofline/roofline_page.h"
#include "app/pages/setup/setup_page.h"
#include "app/pages/weights/weights_page.h"
#include "app/window/log_panel.h"

namespace ws::app {

AllPages make_all_pages(Workspace& workspace) {
  AllPages all;
  all.setup = setup_page(workspace);
  const LibraryPages library = library_pages(workspace);
  all.docks = {library.runs, log_page(workspace), details_page(workspace)};
  // The first five have a place in the row, the others stand under "More".
  all.tabs = {live_page(workspace),     compare_page(workspace), plan_page(workspace),  kernels_page(workspace),
              memory_page(workspace),   insights_page(workspace), library.library,      experiments_page(workspace),
              lab_page(workspace),      roofline_page(workspace), weights_page(workspace)};
  return all;
}

std::vector<const Page*> AllPages::each() const {
  std::vector<const Page*> pages{&setup};
  for (const Page& page : tabs) pages.push_back(&page);
  for (const Page& page : docks) pages.push_back(&page);
  return pages;
}

}  // namespace ws::app
