#include "app/window/all_pages.h"

#include "app/pages/kernel_editor/kernel_page.h"
#include "app/pages/library/library_page.h"
#include "app/pages/live/live_page.h"
#include "app/window/log_panel.h"

namespace ws::app {

// Each function is defined in the folder of its name.
Page checks_page(Workspace&), compare_page(Workspace&), details_page(Workspace&), experiments_page(Workspace&), flame_page(Workspace&), insights_page(Workspace&),
    kernels_page(Workspace&), lab_page(Workspace&), memory_page(Workspace&), multiprocessors_page(Workspace&),
    plan_page(Workspace&), query_page(Workspace&), ranks_page(Workspace&), roofline_page(Workspace&), setup_page(Workspace&), weights_page(Workspace&), what_if_page(Workspace&);

AllPages make_all_pages(Workspace& workspace) {
  AllPages all;
  all.setup = setup_page(workspace);
  const LibraryPages library = library_pages(workspace);
  all.docks = {library.runs, log_page(workspace), details_page(workspace)};
  const Page plan = plan_page(workspace), kernel = kernel_editor_page(workspace, plan.widget);
  // First the pages about one run, then those about many. Pages of one tab stand beside each other.
  const auto tab = [&all](const char* group, Page page, const char* answers) {
    page.group = QObject::tr(group), page.answers = QObject::tr(answers);
    all.tabs.push_back(std::move(page));
  };
  tab("Overview", live_page(workspace), "What happens in a step?");
  tab("Compare", compare_page(workspace), "Why is one run faster?");
  tab("Advice", insights_page(workspace), "What would make a step shorter?");
  tab("Advice", what_if_page(workspace), "How long would a step be without some of its work?");
  tab("Advice", checks_page(workspace), "How far were predictions off?");
  tab("Network", plan, "What does a step do, op by op?");
  tab("Network", weights_page(workspace), "What did the network learn?");
  tab("Kernels", kernels_page(workspace), "Which kernel, op, module or line takes the time?");
  tab("Kernels", roofline_page(workspace), "Does memory or arithmetic limit an op?");
  tab("Kernels", multiprocessors_page(workspace), "What happens inside a kernel?");
  tab("Kernels", flame_page(workspace), "What did the host do?");
  tab("Kernels", kernel, "Can you write this op faster?");
  tab("Memory", memory_page(workspace), "Who holds memory, when and where?");
  tab("Ranks", ranks_page(workspace), "Which GPU comes late, and what do all others lose by it?");
  tab("Experiments", experiments_page(workspace), "How do settings combine?");
  tab("Experiments", lab_page(workspace), "How does one operation behave over many sizes?");
  tab("Library", library.library, "Which runs are there?");
  tab("Library", query_page(workspace), "Any other question, in SQL");
  return all;
}

std::vector<const Page*> AllPages::each() const {
  std::vector<const Page*> pages{&setup};
  for (const Page& page : tabs) pages.push_back(&page);
  for (const Page& page : docks) pages.push_back(&page);
  return pages;
}

}  // namespace ws::app
