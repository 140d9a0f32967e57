// Joins the panels about one run to the window: Details, Plan, Kernels, Memory map, Roofline, Weights, and the palette.
#pragma once

namespace ws::app {
class MainWindow;
void add_analysis(MainWindow& window);
}  // namespace ws::app
