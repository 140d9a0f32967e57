#include "app/window/all_pages.h"

#include "app/pages/kernel_editor/kernel_page.h"
#include "app/pages/library/library_page.h"
#include "app/pages/live/live_page.h"
#include "app/window/log_panel.h"

namespace ws::app {

// Each function is defined in the folder of its name.
Page compare_page(Workspace&), details_page(Workspace&), experiments_page(Workspace&), flame_page(Workspace&), insights_page(Workspace&),
    kernels_page(Workspace&), lab_page(Workspace&), memory_page(Workspace&), multiprocessors_page(Workspace&),
    plan_page(Workspace&), query_page(Workspace&), ranks_page(Workspace&), roofline_page(Workspace&), setup_page(Workspace&), weights_page(Workspace&), what_if_page(Workspace&);

AllPages make_all_pages(Workspace& workspace) {
  AllPages all;
  all.setup = setup_page(workspace);
  const LibraryPages library = library_pages(workspace);
  all.docks = {library.runs, log_page(workspace), details_page(workspace)};
  const Page plan = plan_page(workspace), kernel = kernel_editor_page(workspace, plan.widget);
  // First the pages about one run, then those about many. In a narrow window the last ones are under "More". A new page
  // comes last, so that no tab changes its place.
  all.tabs = {live_page(workspace),     compare_page(workspace),     what_if_page(workspace),        plan,                            kernels_page(workspace),
              memory_page(workspace),   ranks_page(workspace),       multiprocessors_page(workspace), flame_page(workspace),
              roofline_page(workspace), weights_page(workspace),     insights_page(workspace),        experiments_page(workspace),
              lab_page(workspace),      library.library,           query_page(workspace),         kernel};
  return all;
}

std::vector<const Page*> AllPages::each() const {
  std::vector<const Page*> pages{&setup};
  for (const Page& page : tabs) pages.push_back(&page);
  for (const Page& page : docks) pages.push_back(&page);
  return pages;
}

}  // namespace ws::app
