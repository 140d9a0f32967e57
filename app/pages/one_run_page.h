// A page about one run: the run that the window shows. A button in the top bar picks another ticked run.
#pragma once
#include "app/pages/page.h"

namespace ws::app {

Page one_run_page(Workspace& workspace, const QString& title, QWidget* widget, std::function<void(Run*)> show);

}  // namespace ws::app
