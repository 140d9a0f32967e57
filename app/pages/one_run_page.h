// A page about one run, with a button in the top bar that picks it among the ticked ones.
#pragma once
#include "app/pages/page.h"

namespace ws::app {

Page one_run_page(const QString& title, QWidget* widget, std::function<void(Run*)> show);

}  // namespace ws::app
