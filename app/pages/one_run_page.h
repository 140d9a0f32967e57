// A page about the current run, which the top bar names.
#pragma once
#include "app/pages/page.h"

namespace ws::app {

Page one_run_page(Workspace& workspace, const QString& title, QWidget* widget, std::function<void(Run*)> show,
                  std::function<bool(const Run&)> suits = {});  // Page::suits

}  // namespace ws::app
