// The comparison of ranks as figures: the window paints them in its theme, reports write them on white. No Qt.
#pragma once
#include <cstdint>

#include "app/core/report/figure_ink.h"
#include "profiling/analysis/ranks.h"

namespace ws::app {

// "Rank 5 comes 3.0 ms late …", or why no rank is named.
std::string rank_headline(const prof::RankReport& report);
// "Step 44: rank 5 comes last, 3.00 ms after rank 2." Empty if it is not known. `step`: an index into report.steps.
std::string step_text(const prof::RankReport& report, size_t step);
std::string rank_name(const prof::RankReport& report, size_t row);  // "rank 5"
// "8 ranks on 2 hosts · 100 steps · mean step 701.5 µs · clocks ± 14.0 µs"
std::string rank_caption(const prof::RankReport& report);

// When `all` elements share `parts` cells: the first element of a cell, and the cell of an element.
inline size_t first_of(size_t part, size_t parts, size_t all) { return part * all / parts; }
inline size_t part_of(size_t element, size_t parts, size_t all) { return ((element + 1) * parts - 1) / all; }

// Lateness by rank and step. Rows and columns that do not fit are merged by their maximum.
struct LatenessGrid {
  size_t rows = 0, columns = 0;
  std::vector<float> late;  // µs, row by row; NaN: not known
  float at(size_t row, size_t column) const { return late[row * columns + column]; }
};
LatenessGrid lateness_grid(const prof::RankReport& report, size_t most_rows, size_t most_columns);

// The places of the map in a figure.
struct LatenessMap {
  LatenessGrid grid;
  double left = 0, right = 0, row_height = 1;
  std::vector<double> tops, heights;  // of the rows; 0 high: a rank that is never late, beside one with bars
  double scale_us = 1;       // lateness with the full colour, or of the highest bar
  bool capped = false;       // some cells are above it
  double axis_width = 0;     // between the names and the bars
  // Few ranks have high rows: the lateness is the height of a bar, and all bars have one colour.
  bool bars() const { return axis_width > 0; }
  std::pair<double, double> bar(size_t column) const;  // left edge and width
  double bar_height(double late_us) const;  // the whole row if it has no bars
  double bottom() const { return tops.empty() ? 0 : tops.back() + heights.back(); }
  double x(size_t column) const;  // left edge
};
double most_lateness_height(const prof::RankReport& report);  // of all rows; more stays empty
LatenessMap lateness_map(const prof::RankReport& report, double width, double height);
// The colour of a cell. A lateness below the clock error has the colour of none.
uint32_t lateness_colour(const LatenessMap& map, double clock_error_us, double late_us, const FigureInk& ink);
Drawing lateness_frame(const prof::RankReport& report, const LatenessMap& map, const FigureInk& ink, double width);
Drawing lateness_figure(const prof::RankReport& report, double width, double height, const FigureInk& ink);

// What each rank does in the median step, as one bar for each: computes, waits, transfers. For few ranks, where it is known.
bool has_step_of_ranks(const prof::RankReport& report);
Drawing rank_steps_figure(const prof::RankReport& report, double width, double height, const FigureInk& ink);

// A histogram of the lateness over the steps for each rank, on a log axis. Without space for all: the latest ranks.
Drawing arrivals_figure(const prof::RankReport& report, double width, double height, const FigureInk& ink);

// Bus bandwidth against message size. `chosen`: a row of `collectives`, or -1.
bool has_bandwidth(const prof::RankReport& report);
Drawing bandwidth_figure(const prof::RankReport& report, double width, double height, const FigureInk& ink,
                         int chosen = -1);

}  // namespace ws::app
