// The blue button: the main action of a dialog, and Train in the window.
#pragma once
#include <QPushButton>

namespace ws::app {

void make_primary(QPushButton& button);

}  // namespace ws::app
