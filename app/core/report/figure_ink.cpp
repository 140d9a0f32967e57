#include "app/core/report/figure_ink.h"

#include <cmath>
#include <cstdlib>

#include "app/core/report/report_figures.h"
#include "profiling/base/text.h"

namespace ws::app {

FigureInk paper_ink() {
  FigureInk ink{0xFFFFFF, 0x191C22, 0x48505D, 0x5F6772, 0xE6E9EE, 0xB4BBC7, 0x8D9098, 0x191C22, 0xD23CC3, {}};
  for (size_t m = 0; m < prof::kMeanings; ++m)
    ink.meaning[m] = static_cast<uint32_t>(std::strtoul(figure::kMeaningColour[m] + 1, nullptr, 16));
  return ink;
}

std::string hex_colour(uint32_t rgb) { return formatted("#{:06X}", rgb & 0xFFFFFF); }

uint32_t mixed_colour(uint32_t ground, uint32_t top, double share) {
  uint32_t mixed = 0;
  for (const int shift : {16, 8, 0}) {
    const double a = (ground >> shift) & 0xFF, b = (top >> shift) & 0xFF;
    mixed |= static_cast<uint32_t>(std::lround(a + (b - a) * share)) << shift;
  }
  return mixed;
}

}  // namespace ws::app
