// What each multiprocessor does at what time of a step, as a figure: the window paints it in its theme, reports write it
// on white. No Qt.
#pragma once
#include <cstdint>
#include <vector>

#include "app/core/report/figure_ink.h"
#include "profiling/analysis/multiprocessors.h"

namespace ws::app {

// The places of one step in a figure.
struct StepMap {
  size_t step = 0;
  std::vector<uint32_t> rows;  // multiprocessors that work in this step, as rows of the report
  double left = 0, right = 0, top = 0, row_height = 1;
  prof::TimeNs begin = 0, end = 1;
  double x(prof::TimeNs time) const;
  double bottom() const { return top + row_height * static_cast<double>(rows.size()); }
  double row_top(size_t place) const { return top + row_height * static_cast<double>(place); }
};
StepMap step_map(const prof::MultiprocessorReport& report, size_t step, double width, double height);
// Place and size of a bar: {x, y, width, height}. Waits are lower than work.
struct BarBox {
  double x, y, width, height;
};
BarBox bar_box(const prof::MultiprocessorReport& report, const StepMap& map, const prof::InnerBar& bar);
// "17" for "multiprocessor 17", below a head that says what it is.
std::string short_name(const std::string& multiprocessor);
uint32_t part_colour(const prof::MultiprocessorReport& report, size_t part, const FigureInk& ink);

double step_figure_height(const prof::MultiprocessorReport& report, size_t step, double width, double row_height);
Drawing step_figure(const prof::MultiprocessorReport& report, const StepMap& map, const FigureInk& ink, double width);

}  // namespace ws::app
