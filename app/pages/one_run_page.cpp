#include "app/pages/one_run_page.h"

namespace ws::app {

Page one_run_page(Workspace& workspace, const QString& title, QWidget* widget, std::function<void(Run*)> show,
                  std::function<bool(const Run&)> suits) {
  Page page;
  page.title = title, page.widget = widget;
  page.suits = std::move(suits);
  page.show_runs = [&workspace, show = std::move(show)](const std::vector<Run*>&) { show(workspace.shownRun()); };
  return page;
}

}  // namespace ws::app
