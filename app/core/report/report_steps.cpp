// Draws a typical step of each run, one below the other on one time scale.
#include <algorithm>
#include <array>
#include <cmath>

#include "app/core/report/drawing.h"
#include "app/core/report/report_figures.h"
#include "profiling/analysis/kernel_table.h"

namespace ws::app::figure {
namespace {

constexpr double kLeft = 92, kWidth = 556, kRuler = 20, kHead = 20, kPhase = 14, kMemory = 30, kBetween = 12;
constexpr double kLetterShare = 0.58;  // width of a letter as a share of the font size
constexpr const char *kQuietInk = "#48505D", *kWaiting = "#F2F3F6", *kLine = "#7B8190";

struct Scale {
  prof::TimeNs longest = 0;
  double most_bytes = 0;
  double x(prof::TimeNs t) const { return kLeft + static_cast<double>(t) / static_cast<double>(longest) * kWidth; }
};

Scale scale_of(const std::vector<ReportRun>& runs) {
  Scale scale;
  for (const ReportRun& run : runs) {
    scale.longest = std::max(scale.longest, run.step.length);
    for (const StepPicture::Level& level : run.step.memory) scale.most_bytes = std::max(scale.most_bytes, level.bytes);
  }
  return scale;
}

double lane_height(prof::TrackKind kind, size_t runs) {
  return kind == prof::TrackKind::Phases ? kPhase : runs > 3 ? 15 : 19;
}

std::string time_text(double ns, bool ms) { return fixed(ns * (ms ? 1e-6 : 1e-3), 1) + (ms ? " ms" : " µs"); }
bool in_ms(const Scale& scale) { return scale.longest >= 10'000'000; }

double height_of(const std::vector<ReportRun>& runs) {
  double height = kRuler + 44;
  for (const ReportRun& run : runs) {
    height += kHead + kBetween + (run.step.memory.empty() ? 0 : kMemory);
    for (const StepPicture::Lane& lane : run.step.lanes) height += lane_height(lane.kind, runs.size());
  }
  return height;
}

void draw_ruler(Drawing& drawing, const Scale& scale, double bottom) {
  const double unit = in_ms(scale) ? 1e6 : 1e3;
  const char* const name = in_ms(scale) ? " ms" : " µs";
  for (const double t : ticks(0, static_cast<double>(scale.longest) / unit, false, 6)) {
    const double x = scale.x(static_cast<prof::TimeNs>(t * unit));
    drawing.line(x, kRuler - 4, x, bottom, kGrid);
    drawing.text(x + 3, kRuler - 7, tick_text(t) + (t == 0 ? name : ""), Anchor::Start, 10);
  }
}

void draw_lane(Drawing& drawing, const StepPicture::Lane& lane, const Scale& scale, double top, double height,
               prof::TimeNs length) {
  const bool phases = lane.kind == prof::TrackKind::Phases;
  drawing.text(8, top + height / 2 + 3.5, prof::shortened(lane.name, 15), Anchor::Start, 10);
  if (!phases) drawing.rect(kLeft, top + 1.5, scale.x(length) - kLeft, height - 3, kWaiting);
  double drawn_until = 0;  // blocks narrower than a hairline are drawn once
  for (const StepPicture::Block& block : lane.blocks) {
    const double from = scale.x(block.begin), to = std::max(scale.x(block.end), from + 0.3);
    if (to < drawn_until + 0.15) continue;
    drawn_until = to;
    const double width = to - from > 2 ? to - from - 0.6 : to - from;  // a gap between neighbours
    if (phases)
      drawing.rect(from, top + 1.5, width, height - 3, "#FFFFFF", kLine);
    else
      drawing.rect(from, top + 1.5, width, height - 3, kMeaningColour[static_cast<size_t>(block.meaning)]);
    if (static_cast<double>(block.name.size()) * kLetterShare * 9.5 + 6 < width)
      drawing.text(from + 3, top + height / 2 + 3.3, block.name, Anchor::Start, 9.5, phases ? kQuietInk : kInk);
  }
}

// Draws used memory over the step, with the number of its peak.
void draw_memory(Drawing& drawing, const StepPicture& step, const Scale& scale, double top, const std::string& ink) {
  const auto y = [&](double bytes) { return top + kMemory - 2 - bytes / scale.most_bytes * (kMemory - 6); };
  drawing.text(8, top + 19, "memory", Anchor::Start, 10);
  drawing.text(kLeft - 4, top + 9, bytes_text(scale.most_bytes), Anchor::End, 8.5);
  drawing.text(kLeft - 4, top + kMemory - 1, "0", Anchor::End, 8.5);
  drawing.line(kLeft, y(0), scale.x(step.length), y(0), kAxis, 0.7);
  std::vector<std::pair<double, double>> line;
  const StepPicture::Level* peak = &step.memory.front();
  for (size_t i = 0; i < step.memory.size(); ++i) {
    const StepPicture::Level& level = step.memory[i];
    const double from = scale.x(level.time),
                 to = scale.x(i + 1 < step.memory.size() ? step.memory[i + 1].time : step.length);
    drawing.rect(from, y(level.bytes), to - from, y(0) - y(level.bytes), ink, "none", 0.16);
    line.emplace_back(from, y(level.bytes));
    line.emplace_back(to, y(level.bytes));
    if (level.bytes > peak->bytes) peak = &level;
  }
  drawing.polyline(line, ink, 1.2);
  constexpr double kTextWidth = 84;  // for the text, which stands beside a shorter step
  const double end = scale.x(step.length), at = y(peak->bytes), peak_x = scale.x(peak->time);
  const bool beside = end - kLeft < 2 * kTextWidth, left = !beside && peak_x > end - kTextWidth;
  const double x = beside ? end + 4 : left ? peak_x - 3 : peak_x + 3;
  drawing.text(x, at > top + 14 ? at - 3 : at + 9,
               "peak " + bytes_text(peak->bytes), left ? Anchor::End : Anchor::Start, 9, kInk, 600);
}

double draw_run(Drawing& drawing, const std::vector<ReportRun>& runs, size_t i, const Scale& scale, double top) {
  const ReportRun& run = runs[i];
  const StepPicture& step = run.step;
  const RunMark mark = figure::mark(runs, i);
  drawing.text(8, top + 14, mark.letter, Anchor::Start, 12, mark.colour, 700);
  drawing.text(mark.letter.size() > 1 ? 32 : 22, top + 14, prof::shortened(run.run.name, 64), Anchor::Start, 11, kInk, 600);
  const auto length = static_cast<double>(step.length);
  const double median_us = run.run.time.us.value;  // the drawn step is nearly as long; the text has the median, as everywhere
  const std::string words = step.length == 0  ? "no step was traced"
                            : step.steps == 1 ? "median " + time_text(median_us > 0 ? median_us * 1e3 : length, in_ms(scale))
                                              : time_text(length, in_ms(scale)) + " for the " + std::to_string(step.steps) + " steps of a graph";
  drawing.text(kLeft + kWidth, top + 14, words, Anchor::End, 10.5);
  double y = top + kHead;
  for (const StepPicture::Lane& lane : step.lanes) {
    const double height = lane_height(lane.kind, runs.size());
    draw_lane(drawing, lane, scale, y, height, step.length);
    y += height;
  }
  if (!step.memory.empty()) {
    draw_memory(drawing, step, scale, y, mark.colour);
    y += kMemory;
  }
  if (step.length > 0) drawing.line(scale.x(step.length), top + kHead, scale.x(step.length), y, mark.colour, 1.2);
  return y + kBetween;
}

}  // namespace

Drawing steps(const std::vector<ReportRun>& runs) {
  const Scale scale = scale_of(runs);
  if (scale.longest == 0) return {};
  const double height = height_of(runs);
  Drawing drawing{660, height};
  draw_ruler(drawing, scale, height - 42);
  double y = kRuler;
  for (size_t i = 0; i < runs.size(); ++i) y = draw_run(drawing, runs, i, scale, y);
  std::array<bool, prof::kMeanings> drawn{};
  for (const ReportRun& run : runs)
    for (const StepPicture::Lane& lane : run.step.lanes)
      for (const StepPicture::Block& block : lane.blocks)
        if (lane.kind != prof::TrackKind::Phases) drawn[static_cast<size_t>(block.meaning)] = true;
  std::vector<prof::PartId> shown;
  for (const prof::Meaning meaning : prof::kPartOrder)
    if (drawn[static_cast<size_t>(meaning)]) shown.push_back({meaning});
  legend(drawing, height - 30, shown);
  return drawing;
}

}  // namespace ws::app::figure
