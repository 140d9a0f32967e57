#include "app/core/report/experiment_figure.h"

#include <algorithm>
#include <cmath>

#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr double kLabel = 230, kBars = 420, kRow = 24, kBarsTop = 34;
constexpr const char *kQuiet = "#48505D", *kFill = "#D5E5FC", *kEdge = "#1F6FEB";

}  // namespace

Drawing experiment_figure(const ExperimentResult& result) {
  double least = 1e300, most = 0;
  for (const TrialResult& t : result.trials)
    if (t.us_per_step > 0) least = std::min(least, t.us_per_step), most = std::max(most, t.us_per_step);
  if (most <= 0) least = most = 1;
  const bool log = most / least > 10;
  const double from = log ? std::pow(10, std::floor(std::log10(least / 1.5))) : 0;
  const auto x = [&](double v) {
    const double share = log ? std::log(std::max(v, from) / from) / std::log(most / from) : v / most;
    return kLabel + share * kBars;
  };
  const double height = kBarsTop + kRow * static_cast<double>(result.trials.size());
  Drawing drawing{kLabel + kBars + 90, height + 34};
  drawing.rect(0, 0, kLabel + kBars + 90, height + 34, "#FFFFFF");  // also on a dark page
  drawing.text(8, 16, result.spec.title + ": µs per step", Anchor::Start, 13, kInk, 600);
  for (const double tick : ticks(log ? from : 0, most, log, 5)) {
    drawing.line(x(tick), kBarsTop - 4, x(tick), height, "#E6E9EE");
    drawing.text(x(tick), height + 12, tick_text(tick), Anchor::Middle, 10);
  }
  double y = kBarsTop;
  for (const TrialResult& t : result.trials) {
    drawing.text(kLabel - 8, y + 15, t.trial.label, Anchor::End, 11, kInk);
    if (t.us_per_step > 0) {
      drawing.rect(kLabel, y + 4, std::max(1.0, x(t.us_per_step) - kLabel), kRow - 8, kFill, kEdge);
      if (t.high > t.low) drawing.line(x(t.low), y + kRow / 2, x(t.high), y + kRow / 2, kInk, 1.4);
      drawing.text(x(std::max(t.us_per_step, t.high)) + 6, y + 16, fixed(t.us_per_step, t.us_per_step < 1000 ? 1 : 0),
                   Anchor::Start, 11, kInk, 600);
    } else {
      drawing.text(kLabel + 6, y + 16, t.trial.skipped.empty() ? "not trained" : "skipped", Anchor::Start, 11, kQuiet);
    }
    y += kRow;
  }
  drawing.line(kLabel, kBarsTop - 4, kLabel, height, "#B4BBC7");
  drawing.text(8, height + 28,
               result.device + " · median of " + std::to_string(result.spec.repeats) + ", line: least to most" +
                   (log ? " · logarithmic" : ""),
               Anchor::Start, 10);
  return drawing;
}

}  // namespace ws::app
