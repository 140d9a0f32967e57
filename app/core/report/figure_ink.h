// The colours of a figure: the window paints it in its theme, reports write it on white. No Qt.
#pragma once
#include <array>
#include <cstdint>

#include "app/core/report/drawing.h"
#include "profiling/trace/trace.h"

namespace ws::app {

// Colours as 0xRRGGBB.
struct FigureInk {
  uint32_t ground, text, secondary, quiet, grid, axis, bar, late, point;  // late: ranks and multiprocessors; point: collectives
  std::array<uint32_t, prof::kMeanings> meaning;  // by prof::Meaning
};
FigureInk paper_ink();
std::string hex_colour(uint32_t rgb);  // "#RRGGBB"
uint32_t mixed_colour(uint32_t ground, uint32_t top, double share);

}  // namespace ws::app
