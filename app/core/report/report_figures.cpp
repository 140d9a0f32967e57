#include "app/core/report/report_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/core/report/drawing.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/base/text.h"

namespace ws::app::figure {
namespace {

using Point = ReportRun::Point;

constexpr const char* kRunColour[] = {"#6E4306", "#03586F", "#9A1655", "#2B8309",
                                      "#5C3198", "#9933B3", "#696A8C", "#2A3600"};

struct Plot {
  double x0, x1, y0, y1;
  bool log_y, by_time;
  static constexpr double kLeft = 56, kTop = 14, kWidth = 560, kHeight = 220;
  double x(double v) const { return kLeft + (v - x0) / (x1 - x0) * kWidth; }
  double y(double v) const {
    const double share =
        log_y ? (std::log10(v) - std::log10(y0)) / (std::log10(y1) - std::log10(y0)) : (v - y0) / (y1 - y0);
    return kTop + (1 - share) * kHeight;
  }
};

// Keeps at most two points per pixel column: the extremes.
std::vector<std::pair<double, double>> thinned(const std::vector<Point>& points, const Plot& plot) {
  std::vector<std::pair<double, double>> out;
  const auto at_x = [&plot](const Point& p) { return plot.by_time ? p.wall_s : p.step; };
  size_t i = 0;
  while (i < points.size()) {
    const double column = std::floor(plot.x(at_x(points[i])));
    size_t low = i, high = i, j = i + 1;
    for (; j < points.size() && std::floor(plot.x(at_x(points[j]))) == column; ++j) {
      if (points[j].value < points[low].value) low = j;
      if (points[j].value > points[high].value) high = j;
    }
    for (size_t k : {std::min(low, high), std::max(low, high)})
      if (out.empty() || k != low || low != high || k == i)
        out.emplace_back(plot.x(at_x(points[k])), plot.y(points[k].value));
    i = j;
  }
  return out;
}

// True if both curves are drawn nearly the same almost everywhere.
bool covers(const std::vector<Point>& upper, const std::vector<Point>& lower, const Plot& plot) {
  if (upper.size() != lower.size()) return false;
  size_t same = 0;
  for (size_t i = 0; i < upper.size(); ++i) {
    const double x = plot.by_time ? upper[i].wall_s - lower[i].wall_s : upper[i].step - lower[i].step;
    same += std::abs(x) * Plot::kWidth < 2 * (plot.x1 - plot.x0) &&
            std::abs(plot.y(upper[i].value) - plot.y(lower[i].value)) < 2;
  }
  return same * 10 >= upper.size() * 8;
}

// A running mean for curves with many points; empty for few points.
std::vector<Point> smoothed(const std::vector<Point>& points) {
  constexpr size_t kMany = 150;
  constexpr double kFactor = 0.95;
  if (points.size() < kMany) return {};
  std::vector<Point> out = points;
  double sum = 0, weight = 0;
  for (Point& p : out) {
    sum = kFactor * sum + (1 - kFactor) * p.value, weight = kFactor * weight + (1 - kFactor);
    p.value = sum / weight;
  }
  return out;
}

// A name that fits under a bar: "matrix", "launch gaps".
std::string short_name(const prof::Cause& cause) {
  const std::string name = prof::cause_name(cause);
  const bool whole = cause.meaning == prof::Meaning::Launch || cause.kind == prof::PartKind::HostData;
  return whole ? name : name.substr(0, name.find(' '));
}

double us_of(int64_t ps) { return static_cast<double>(ps) * 1e-6; }

std::vector<prof::Cause> changes(const prof::Waterfall& w) {
  std::vector<prof::Cause> causes = w.causes;
  std::erase_if(causes, [](const prof::Cause& c) { return c.delta_ps() == 0; });
  return causes;
}

// The highest value that the bars reach.
double highest(const prof::Waterfall& w, const std::vector<prof::Cause>& causes) {
  double most = std::max({us_of(w.a_ps), us_of(w.b_ps), 1e-9}), at = us_of(w.a_ps);
  for (const prof::Cause& c : causes) most = std::max(most, at += us_of(c.delta_ps()));
  return most;
}

size_t number_of(const std::vector<ReportRun>& runs, size_t i) {
  return runs[i].letter < 0 ? i : static_cast<size_t>(runs[i].letter);
}

// Uses a real minus sign, and thin no-break spaces between the thousands.
std::string for_print(std::string plain) {
  if (plain[0] == '-') plain.replace(0, 1, "−");
  for (size_t at = 0; (at = plain.find(' ', at)) != plain.npos;) plain.replace(at, 1, "\u202F");
  return plain;
}

}  // namespace

RunMark mark(const std::vector<ReportRun>& runs, size_t i) {
  const size_t number = number_of(runs, i);
  return {column_letters(number), kRunColour[number % std::size(kRunColour)], number % std::size(kRunColour) >= 4};
}

std::vector<RunMark> marks(const std::vector<ReportRun>& runs) {
  std::vector<RunMark> all;
  for (size_t i = 0; i < runs.size(); ++i) all.push_back(mark(runs, i));
  return all;
}

std::string fixed(double value, int decimals) { return for_print(ws::fixed(value, decimals)); }
std::string signed_fixed(double value, int decimals) { return for_print(ws::signed_fixed(value, decimals)); }
std::string grouped(double value) { return value > 0 ? for_print(count_text(value)) : "–"; }
std::string bytes_text(double bytes) { return bytes > 0 ? ws::bytes_text(bytes) : "–"; }

std::vector<Point> usable(std::vector<Point> points, bool log_y) {
  std::erase_if(points, [&](const Point& p) { return !std::isfinite(p.value) || (log_y && p.value <= 0); });
  return points;
}

Drawing curves(const std::vector<std::vector<Point>>& curves, const std::vector<RunMark>& marks, bool log_y,
               bool by_time) {
  Plot plot{0, by_time ? 1e-6 : 1, std::numeric_limits<double>::max(), 0, log_y, by_time};
  const auto at_x = [by_time](const Point& p) { return by_time ? p.wall_s : p.step; };
  for (const auto& points : curves)
    for (const Point& p : points)
      plot.x1 = std::max(plot.x1, at_x(p)), plot.y0 = std::min(plot.y0, p.value), plot.y1 = std::max(plot.y1, p.value);
  if (plot.y1 <= plot.y0 && !log_y && plot.y0 > 0) plot.y0 *= 0.9;  // all correct: there is nothing above 100 %
  if (plot.y1 <= plot.y0) plot.y1 = plot.y0 * 1.1 + 1e-6;
  Drawing drawing{660, 276};
  for (double t : ticks(plot.y0, plot.y1, log_y, 5)) {
    drawing.line(Plot::kLeft, plot.y(t), Plot::kLeft + Plot::kWidth, plot.y(t), kGrid);
    drawing.text(Plot::kLeft - 6, plot.y(t) + 4, tick_text(t), Anchor::End);
  }
  for (double t : ticks(plot.x0, plot.x1, false, 6))
    drawing.text(plot.x(t), Plot::kTop + Plot::kHeight + 16, tick_text(t), Anchor::Middle);
  drawing.line(Plot::kLeft, Plot::kTop + Plot::kHeight, Plot::kLeft + Plot::kWidth, Plot::kTop + Plot::kHeight, kAxis);
  drawing.line(Plot::kLeft, Plot::kTop, Plot::kLeft, Plot::kTop + Plot::kHeight, kAxis);
  drawing.text(Plot::kLeft + Plot::kWidth / 2, 268, by_time ? "training time, s" : "step", Anchor::Middle);
  std::vector<double> written;  // y of the letters so far: letters of equal curves are placed below each other
  for (size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].empty()) continue;
    const std::vector<Point> smooth = smoothed(curves[i]);
    if (!smooth.empty()) drawing.polyline(thinned(curves[i], plot), marks[i].colour, 0.8, {}, 0.28);
    // A curve on top of another curve is dashed, so that both are visible.
    const bool above = std::any_of(curves.begin(), curves.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const auto& other) { return covers(curves[i], other, plot); });
    std::vector<double> dashes;
    if (above)
      dashes = {7, 7};
    else if (marks[i].dashed)
      dashes = {6, 3};
    drawing.polyline(thinned(smooth.empty() ? curves[i] : smooth, plot), marks[i].colour, 1.7, dashes);
    const Point& last = smooth.empty() ? curves[i].back() : smooth.back();
    double y = plot.y(last.value) + 4;
    while (std::ranges::any_of(written, [y](double other) { return std::abs(other - y) < 11; })) y += 11;
    written.push_back(y);
    drawing.text(plot.x(at_x(last)) + 5, y, marks[i].letter, Anchor::Start, 11, marks[i].colour, 700);
  }
  return drawing;
}

// The wait of a collective is a lighter shade of its transfer.
double opacity_of(const prof::PartId& id) { return id.kind == prof::PartKind::RankWait ? 0.5 : 1; }

void legend(Drawing& drawing, double y, const std::vector<prof::PartId>& shown) {
  constexpr double kLeft = 28, kRight = 656;
  double x = kLeft;
  for (const prof::PartId& id : shown) {
    const std::string name = prof::part_name(id);
    const double width = 12 + 5.8 * static_cast<double>(name.size());
    if (x + width > kRight) x = kLeft, y += 13;
    drawing.rect(x, y, 9, 9, kMeaningColour[static_cast<size_t>(id.meaning)], kEdge, opacity_of(id));
    drawing.text(x + 12, y + 8, name, Anchor::Start, 9.5);
    x += width + 14;
  }
}

Drawing split(const std::vector<ReportRun>& runs) {
  double most = 1e-9;
  for (const ReportRun& run : runs)
    most = std::max(most, run.run.sample.median_step_us());
  Drawing drawing{660, 30.0 * static_cast<double>(runs.size()) + 44};
  std::vector<prof::PartId> shown;
  double y = 8;
  for (size_t i = 0; i < runs.size(); ++i, y += 30) {
    drawing.text(8, y + 15, letter(runs, i), Anchor::Start, 12, mark(runs, i).colour, 700);
    if (runs[i].run.sample.parts.steps == 0) {
      drawing.text(28, y + 15, "not traced");
      continue;
    }
    const double per_step = 1e-3 / static_cast<double>(runs[i].run.sample.median_parts.steps);
    double x = 28;
    for (const auto& [id, ns] : prof::parts_of(runs[i].run.sample.median_parts)) {
      const double width = static_cast<double>(ns) * per_step / most * 540;
      drawing.rect(x, y, width, 20, kMeaningColour[static_cast<size_t>(id.meaning)], kEdge, opacity_of(id));
      x += width;
      if (std::ranges::find(shown, id) == shown.end()) shown.push_back(id);
    }
    drawing.text(x + 6, y + 15, fixed(runs[i].run.sample.median_step_us(), 1) + " µs",
                 Anchor::Start, 12, kInk, 600);
  }
  legend(drawing, y + 8, shown);
  return drawing;
}

Drawing waterfall(const prof::Waterfall& w, const RunMark& baseline, const RunMark& candidate) {
  const std::vector<prof::Cause> causes = changes(w);
  const double most = highest(w, causes);
  double at = us_of(w.a_ps);
  Drawing drawing{660, 262};
  const double scale = 210 / most, bottom = 240, pitch = 600.0 / static_cast<double>(causes.size() + 2);
  const auto bar = [&](size_t i, double from, double to, const std::string& fill, double opacity,
                       const std::string& label, const std::string& name) {
    const double x = 30 + pitch * static_cast<double>(i) + pitch * 0.2, top = bottom - std::max(from, to) * scale;
    drawing.rect(x, top, pitch * 0.6, std::max(1.0, std::abs(to - from) * scale), fill, opacity < 1 ? fill : kEdge,
                 opacity);
    drawing.text(x + pitch * 0.3, top - 5, label, Anchor::Middle, 11, kInk, 600);
    drawing.text(x + pitch * 0.3, bottom + 16, name, Anchor::Middle, 10);
  };
  bar(0, 0, us_of(w.a_ps), baseline.colour, 0.22, fixed(us_of(w.a_ps), 1), baseline.letter);
  for (size_t i = 0; i < causes.size(); ++i) {
    const double change = us_of(causes[i].delta_ps());
    bar(i + 1, at, at + change, kMeaningColour[static_cast<size_t>(causes[i].meaning)], 1, signed_fixed(change, 1),
        short_name(causes[i]));
    at += change;
  }
  bar(causes.size() + 1, 0, us_of(w.b_ps), candidate.colour, 0.22, fixed(us_of(w.b_ps), 1), candidate.letter);
  drawing.line(30, bottom, 630, bottom, kAxis);
  return drawing;
}

Drawing waterfall_by_op(const prof::Waterfall& w, const RunMark& baseline, const RunMark& candidate) {
  constexpr double kLeft = 190, kWidth = 400, kRowHeight = 20;
  constexpr size_t kLetters = 26;
  const std::vector<prof::Cause> causes = changes(w);
  const double scale = kWidth / highest(w, causes);
  const auto rows = static_cast<double>(causes.size() + 2);
  Drawing drawing{660, kRowHeight * rows + 26};
  const double bottom = kRowHeight * rows + 4;
  double y = 4;
  for (const double t : ticks(0, kWidth / scale, false, 5)) {
    drawing.line(kLeft + t * scale, 4, kLeft + t * scale, bottom, t == 0 ? kAxis : kGrid);
    drawing.text(kLeft + t * scale, bottom + 14, tick_text(t), Anchor::Middle, 10);
  }
  const auto row = [&](double from, double to, const std::string& fill, double opacity, const std::string& value,
                       const std::string& name, const std::string& ink) {
    const double left = kLeft + std::min(from, to) * scale, width = std::max(1.0, std::abs(to - from) * scale);
    drawing.rect(left, y + 3, width, kRowHeight - 6, fill, opacity < 1 ? fill : kEdge, opacity);
    drawing.text(left + width + 5, y + 14, value, Anchor::Start, 11, kInk, 600);
    drawing.text(kLeft - 8, y + 14, name, Anchor::End, 11, ink, opacity < 1 ? 700 : 400);
    y += kRowHeight;
  };
  row(0, us_of(w.a_ps), baseline.colour, 0.22, fixed(us_of(w.a_ps), 1), baseline.letter, baseline.colour);
  int64_t at = w.a_ps;
  for (const prof::Cause& cause : causes) {
    row(us_of(at), us_of(at + cause.delta_ps()), kMeaningColour[static_cast<size_t>(cause.meaning)], 1,
        signed_fixed(us_of(cause.delta_ps()), 1), prof::shortened(prof::cause_name(cause), kLetters), "#48505D");
    at += cause.delta_ps();
  }
  row(0, us_of(w.b_ps), candidate.colour, 0.22, fixed(us_of(w.b_ps), 1), candidate.letter, candidate.colour);
  return drawing;
}

}  // namespace ws::app::figure
