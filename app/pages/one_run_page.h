// A page about one run: the run that the window shows, or the first ticked run that suits the page. A button in the top
// bar picks another ticked run.
#pragma once
#include "app/pages/page.h"

namespace ws::app {

Page one_run_page(Workspace& workspace, const QString& title, QWidget* widget, std::function<void(Run*)> show,
                  std::function<bool(const Run&)> suits = {});  // Page::suits

}  // namespace ws::app
