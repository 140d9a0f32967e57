// A page about one run: the one that the window shows, until a button in the top bar picks another of the ticked ones.
#pragma once
#include "app/pages/page.h"

namespace ws::app {

Page one_run_page(Workspace& workspace, const QString& title, QWidget* widget, std::function<void(Run*)> show);

}  // namespace ws::app
