// The one list of tabs and side panels beyond the live dashboard.
#pragma once

namespace ws::app {
class MainWindow;
void add_tabs(MainWindow& window);
}  // namespace ws::app
