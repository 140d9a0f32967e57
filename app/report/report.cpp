#include "app/report/report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/report/svg.h"
#include "profiling/analysis/compare.h"

namespace ws::app {
namespace {

using Point = ReportRun::Point;

// The light theme's runs and meanings: reports are read on white.
constexpr const char* kRunColour[] = {"#C4550F", "#326BA5", "#A13D82", "#547F45",
                                      "#633B9E", "#78570E", "#125E4C", "#1A1B1D"};
constexpr const char* kMeaningColour[] = {"#3D82E2", "#6DCB92", "#F9D632", "#D29DF3", "#BCE6F8",
                                          "#EC3A38", "#8D9098", "#DDE1E8", "#EEF0F3", "#B4BBC7"};
constexpr const char* kGrid = "#E6E9EE";

std::string letter(size_t run) { return std::string(1, static_cast<char>('A' + run)); }
std::string colour(size_t run) { return kRunColour[run % std::size(kRunColour)]; }

std::string fixed(double value, int decimals) {
  if (std::isnan(value)) return "–";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  std::string out = text;
  if (out[0] == '-') out.replace(0, 1, "−");
  return out;
}

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

// At most two points a column, the extremes kept.
std::vector<std::pair<double, double>> thinned(const std::vector<Point>& points, const Plot& plot) {
  std::vector<std::pair<double, double>> out;
  const auto at_x = [&plot](const Point& p) { return plot.by_time ? p.wall_s : p.step; };
  size_t i = 0;
  while (i < points.size()) {
    const double column = std::floor(plot.x(at_x(points[i])));
    size_t low = i, high = i, j = i;
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

std::vector<Point> usable(std::vector<Point> points, bool log_y) {
  std::erase_if(points, [&](const Point& p) { return !std::isfinite(p.value) || (log_y && p.value <= 0); });
  return points;
}

// A running mean for curves of many points; none for few.
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

std::string curve_svg(const std::vector<std::vector<Point>>& curves, bool log_y, bool by_time = false) {
  Plot plot{0, by_time ? 1e-6 : 1, std::numeric_limits<double>::max(), 0, log_y, by_time};
  const auto at_x = [by_time](const Point& p) { return by_time ? p.wall_s : p.step; };
  for (const auto& points : curves)
    for (const Point& p : points)
      plot.x1 = std::max(plot.x1, at_x(p)), plot.y0 = std::min(plot.y0, p.value), plot.y1 = std::max(plot.y1, p.value);
  if (plot.y1 <= plot.y0 && !log_y && plot.y0 > 0) plot.y0 *= 0.9;  // all right: there is nothing above 100 %
  if (plot.y1 <= plot.y0) plot.y1 = plot.y0 * 1.1 + 1e-6;
  Svg svg(660, 276);
  for (double t : ticks(plot.y0, plot.y1, log_y, 5)) {
    svg.line(Plot::kLeft, plot.y(t), Plot::kLeft + Plot::kWidth, plot.y(t), kGrid);
    svg.text(Plot::kLeft - 6, plot.y(t) + 4, tick_text(t), "end");
  }
  for (double t : ticks(plot.x0, plot.x1, false, 6))
    svg.text(plot.x(t), Plot::kTop + Plot::kHeight + 16, tick_text(t), "middle");
  svg.line(Plot::kLeft, Plot::kTop + Plot::kHeight, Plot::kLeft + Plot::kWidth, Plot::kTop + Plot::kHeight, "#B4BBC7");
  svg.line(Plot::kLeft, Plot::kTop, Plot::kLeft, Plot::kTop + Plot::kHeight, "#B4BBC7");
  svg.text(Plot::kLeft + Plot::kWidth / 2, 268, by_time ? "training time, s" : "step", "middle");
  std::vector<double> written;  // heights of the letters so far: those of equal curves stand below each other
  for (size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].empty()) continue;
    const std::vector<Point> smooth = smoothed(curves[i]);
    if (!smooth.empty()) svg.polyline(thinned(curves[i], plot), colour(i), 0.8, "", 0.28);
    svg.polyline(thinned(smooth.empty() ? curves[i] : smooth, plot), colour(i), 1.7, i >= 4 ? "6 3" : "");
    const Point& last = smooth.empty() ? curves[i].back() : smooth.back();
    double y = plot.y(last.value) + 4;
    while (std::ranges::any_of(written, [y](double other) { return std::abs(other - y) < 11; })) y += 11;
    written.push_back(y);
    svg.text(plot.x(at_x(last)) + 5, y, letter(i), "start", 11, colour(i), 700);
  }
  return std::move(svg).done();
}

std::string split_svg(const std::vector<ReportRun>& runs) {
  double most = 1e-9;
  for (const ReportRun& run : runs)
    if (run.parts.steps > 0)
      most = std::max(most, static_cast<double>(run.parts.wall()) * 1e-3 / static_cast<double>(run.parts.steps));
  Svg svg(660, 30.0 * static_cast<double>(runs.size()) + 40);
  double y = 8;
  for (size_t i = 0; i < runs.size(); ++i, y += 30) {
    svg.text(8, y + 15, letter(i), "start", 12, colour(i), 700);
    if (runs[i].parts.steps == 0) {
      svg.text(28, y + 15, "not traced");
      continue;
    }
    const double per_step = 1e-3 / static_cast<double>(runs[i].parts.steps);
    double x = 28;
    for (size_t m = 0; m < prof::kMeanings; ++m) {
      const double width = static_cast<double>(runs[i].parts.times[m]) * per_step / most * 540;
      if (width > 0) svg.rect(x, y, width, 20, kMeaningColour[m], "#7B8190");
      x += width;
    }
    svg.text(x + 6, y + 15, fixed(static_cast<double>(runs[i].parts.wall()) * per_step, 1) + " µs", "start", 12, kInk,
             600);
  }
  double x = 28;
  for (size_t m = 0; m < prof::kMeanings; ++m) {
    if (std::ranges::none_of(runs, [m](const ReportRun& r) { return r.parts.times[m] > 0; })) continue;
    const std::string name = prof::meaning_name(static_cast<prof::Meaning>(m));
    svg.rect(x, y + 8, 9, 9, kMeaningColour[m], "#7B8190");
    svg.text(x + 12, y + 16, name, "start", 9.5);
    x += 26 + 5.8 * static_cast<double>(name.size());
  }
  return std::move(svg).done();
}

// "matrix", "launch gaps": what fits under a bar.
std::string short_name(prof::Meaning meaning) {
  const std::string name = prof::meaning_name(meaning);
  return meaning == prof::Meaning::Launch ? name : name.substr(0, name.find(' '));
}

std::string waterfall_svg(const prof::Waterfall& w, size_t candidate) {
  std::vector<prof::Cause> causes = w.causes;
  std::erase_if(causes, [](const prof::Cause& c) { return c.delta_ps() == 0; });
  const auto us = [](int64_t ps) { return static_cast<double>(ps) * 1e-6; };
  double most = std::max(us(w.a_ps), us(w.b_ps)), at = us(w.a_ps);
  for (const prof::Cause& c : causes) most = std::max(most, at += us(c.delta_ps()));
  Svg svg(660, 300);
  const double scale = 210 / most, bottom = 240, pitch = 600.0 / static_cast<double>(causes.size() + 2);
  const auto bar = [&](size_t i, double from, double to, const std::string& fill, double opacity,
                       const std::string& label, const std::string& name) {
    const double x = 30 + pitch * static_cast<double>(i) + pitch * 0.2, top = bottom - std::max(from, to) * scale;
    svg.rect(x, top, pitch * 0.6, std::max(1.0, std::abs(to - from) * scale), fill, opacity < 1 ? fill : "#7B8190",
             opacity);
    svg.text(x + pitch * 0.3, top - 5, label, "middle", 11, kInk, 600);
    svg.text(x + pitch * 0.3, bottom + 16, name, "middle", 10);
  };
  bar(0, 0, us(w.a_ps), colour(0), 0.22, fixed(us(w.a_ps), 1), "A");
  at = us(w.a_ps);
  for (size_t i = 0; i < causes.size(); ++i) {
    const double change = us(causes[i].delta_ps());
    bar(i + 1, at, at + change, kMeaningColour[static_cast<size_t>(causes[i].meaning)], 1,
        (change > 0 ? "+" : "") + fixed(change, 1), short_name(causes[i].meaning));
    at += change;
  }
  bar(causes.size() + 1, 0, us(w.b_ps), colour(candidate), 0.22, fixed(us(w.b_ps), 1), letter(candidate));
  svg.line(30, bottom, 630, bottom, "#B4BBC7");
  return std::move(svg).done();
}

// Which runs a figure shows, on which machine: a figure leaves its page.
std::string runs_caption(const std::vector<ReportRun>& runs) {
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i) {
    const ReportRun& r = runs[i];
    text += (i ? "; " : "") + letter(i) + ": " + r.title;
    if (!r.spec.empty())
      text += " (" + r.spec[0].data.name + ", batch " + std::to_string(r.spec[0].train.batch) + ", " +
              std::string(to_string(r.spec[0].exec.precision)) + ")";
    if (!r.device.empty() && (i == 0 || r.device != runs[i - 1].device)) text += ", " + r.device;
  }
  return text + ".";
}

const RunSpec* spec_in(const ReportRun& run) { return run.spec.empty() ? nullptr : &run.spec[0]; }

ComparedRun compared(const ReportRun& r) { return {spec_in(r), r.device, r.steps, r.traced, r.imported}; }

bool splits_compare(const ReportRun& a, const ReportRun& b) {
  return a.parts.steps > 0 && b.parts.steps > 0 && a.traced == b.traced;
}

bool within_noise(const ReportRun& a, const ReportRun& b) {
  return std::abs(a.us_per_step - b.us_per_step) <= std::hypot(a.half_width_us, b.half_width_us);
}

// "−42.1 %"; beyond ten times, percents are hard to read.
std::string change(double value, double first) {
  const double percent = 100 * (value - first) / first;
  if (percent >= 900) return fixed(value / first, value / first < 100 ? 1 : 0) + " times";
  return std::string(percent > 0 ? "+" : "") + fixed(percent, 1) + " %";
}

std::string against(double value, double first) {
  if (!(first > 0) || std::isnan(value) || value == first) return "";
  return " (" + change(value, first) + ")";
}

std::string row(const std::vector<std::string>& cells, const char* tag) {
  std::string out = "<tr>";
  for (const std::string& cell : cells) out += std::string("<") + tag + ">" + escape_xml(cell) + "</" + tag + ">";
  return out + "</tr>\n";
}

std::string known(double value, int decimals) { return value > 0 ? fixed(value, decimals) : "–"; }

// Samples a second say how fast a run is whatever its batch, as long as a sample takes the same work.
std::string samples_against_first(const std::vector<ReportRun>& runs, size_t i) {
  if (i == 0 || !same_work_a_sample(spec_in(runs[0]), spec_in(runs[i]))) return "";
  return against(runs[i].samples_per_s, runs[0].samples_per_s);
}

// What tracing cost, with the distance of its quartiles; most runs are too short for a measurement.
std::string overhead_text(const ReportRun& r) {
  if (std::isnan(r.overhead_share)) return "–";
  return fixed(100 * r.overhead_share, 1) + (r.overhead_spread > 0 ? " ± " + fixed(50 * r.overhead_spread, 1) : "");
}

std::string warnings_html(const std::vector<ReportRun>& runs) {
  std::string items;
  for (const std::string& sentence : unfair(runs)) items += "<li>" + escape_xml(sentence) + "</li>";
  return items.empty() ? "" : "<h2>Read with care</h2>\n<ul>" + items + "</ul>\n";
}

std::string runs_table(const std::vector<ReportRun>& runs) {
  std::string out = "<table>" + row({"", "run", "device", "status", "steps", "µs/step", "samples/s", "last loss",
                                     "test accuracy %", "driver calls/step", "peak MiB", "tracing %"},
                                    "th");
  for (size_t i = 0; i < runs.size(); ++i) {
    const ReportRun& r = runs[i];
    out += row({letter(i), r.title, r.device, r.status, std::to_string(r.steps),
                known(r.us_per_step, 1) + step_against_first(runs, i),
                known(r.samples_per_s, 0) + samples_against_first(runs, i),
                r.loss.empty() ? "–" : fixed(r.loss.back().value, 4),
                r.accuracy.empty() ? "–" : fixed(r.accuracy.back().value, 2), fixed(r.allocator_calls_per_step, 1),
                known(r.peak_bytes / (1 << 20), 2), overhead_text(r)},
               "td");
  }
  return out + "</table>\n";
}

std::string choices_table(const std::vector<ReportRun>& runs) {
  std::string head = "<th>choice</th>", body;
  for (size_t i = 0; i < runs.size(); ++i) head += "<th>" + letter(i) + "</th>";
  for (const std::vector<std::string>& cells : choices_that_differ(runs)) body += row(cells, "td");
  return body.empty() ? "<p>The same choices in all runs.</p>" : "<table><tr>" + head + "</tr>\n" + body + "</table>\n";
}

constexpr const char* kStyle =
    "body{font:14px/1.5 Inter,'DejaVu Sans',sans-serif;color:#191C22;max-width:1000px;margin:32px auto;padding:0 20px}"
    "h1{font-size:24px}h2{font-size:17px;margin-top:32px}table{border-collapse:collapse;font-size:12px;font-variant-"
    "numeric:tabular-nums}"
    "th,td{border:1px solid #D6DAE1;padding:4px 8px;text-align:left}th{background:#F6F7F9}figure{margin:8px 0 "
    "24px}figcaption{color:#48505D;font-size:12px}"
    "svg{max-width:100%;height:auto}@media print{body{margin:0}}";

}  // namespace

std::vector<std::vector<std::string>> choices_that_differ(const std::vector<ReportRun>& runs) {
  std::vector<std::vector<std::string>> rows;
  for (const Field& f : fields()) {
    std::vector<std::string> values;
    for (const ReportRun& r : runs) values.push_back(r.spec.empty() ? "–" : field_text(r.spec[0], f.key));
    if (std::ranges::all_of(values, [&](const std::string& v) { return v == values[0]; })) continue;
    values.insert(values.begin(), std::string(f.key));
    rows.push_back(std::move(values));
  }
  return rows;
}

std::vector<ReportFigure> figures(const std::vector<ReportRun>& runs) {
  std::vector<std::vector<Point>> losses, accuracies;
  for (const ReportRun& run : runs)
    losses.push_back(usable(run.loss, true)), accuracies.push_back(usable(run.accuracy, false));
  std::vector<ReportFigure> all;
  const auto some = [](const auto& curves) {
    return std::ranges::any_of(curves, [](const auto& c) { return !c.empty(); });
  };
  if (some(losses))
    all.push_back({"loss", "Training loss",
                   "Loss of each training batch, logarithmic; each column keeps its least and greatest value.",
                   curve_svg(losses, true)});
  if (some(losses) && runs.size() > 1)
    all.push_back({"loss-time", "Training loss over time",
                   "The same losses over the time spent training: what a faster step is worth.",
                   curve_svg(losses, true, true)});
  if (some(accuracies))
    all.push_back({"accuracy", "Test accuracy, %", "Share of the test set that is classified right.",
                   curve_svg(accuracies, false)});
  all.push_back({"split", "Where a step's time goes", "Mean of the sampled steps; the parts sum to the wall time.",
                 split_svg(runs)});
  for (size_t i = 1; i < runs.size(); ++i) {
    if (!splits_compare(runs[0], runs[i])) continue;
    std::string caption = "Causes of the difference in µs a step; they sum to it exactly.";
    if (within_noise(runs[0], runs[i])) caption += " The difference is within noise.";
    all.push_back({i == 1 ? "waterfall" : "waterfall-" + std::to_string(i + 1), "From A to " + letter(i), caption,
                   waterfall_svg(prof::waterfall(runs[0].parts, runs[i].parts), i)});
  }
  for (ReportFigure& figure : all) figure.caption += " " + runs_caption(runs);
  return all;
}

std::string step_against_first(const std::vector<ReportRun>& runs, size_t i) {
  const ReportRun &a = runs[0], &b = runs[i];
  if (i == 0 || !same_task(spec_in(a), spec_in(b)) || !(a.us_per_step > 0 && b.us_per_step > 0)) return "";
  const double noise = std::hypot(a.half_width_us, b.half_width_us);
  return noise > 0 && within_noise(a, b) ? " (within noise)" : against(b.us_per_step, a.us_per_step);
}

std::string headline(const std::vector<ReportRun>& runs) {
  if (runs.size() < 2) return "Training run";
  if (runs.size() > 2) return std::to_string(runs.size()) + " runs side by side";
  const ReportRun &a = runs[0], &b = runs[1];
  const bool work = same_work_a_sample(spec_in(a), spec_in(b));
  if (!work) return "A and B train different things";
  if (!same_task(spec_in(a), spec_in(b))) {
    if (!(a.samples_per_s > 0 && b.samples_per_s > 0)) return "A and B take different batches";
    return "B trains " + fixed(100 * b.samples_per_s / a.samples_per_s, 1) + " % of A’s samples a second";
  }
  if (!(a.us_per_step > 0 && b.us_per_step > 0)) return "A and B side by side";
  if (step_against_first(runs, 1) == " (within noise)") return "B is as fast as A: within noise";
  const double ratio = b.us_per_step / a.us_per_step;
  if (ratio >= 10) return "B takes " + fixed(ratio, ratio < 100 ? 1 : 0) + " times A’s time a step";
  return "B takes " + fixed(100 * ratio, 1) + " % of A’s time a step";
}

std::vector<std::string> unfair(const std::vector<ReportRun>& runs) {
  std::vector<std::string> all;
  for (size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].losses.empty()) all.push_back(letter(i) + ": of the GPU’s records " + runs[i].losses);
  for (size_t i = 1; i < runs.size(); ++i) {
    const std::string who = runs.size() > 2 ? "A and " + letter(i) + ": " : "";
    for (const std::string& sentence : mismatches(compared(runs[0]), compared(runs[i]))) all.push_back(who + sentence);
    if (!splits_compare(runs[0], runs[i]))
      all.push_back(who + "no causes of the difference: that takes two runs that were traced equally closely");
  }
  return all;
}

std::string report_html(const std::vector<ReportRun>& runs) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Warpscope report</title><style>" +
      std::string(kStyle) + "</style></head><body>\n<h1>" + headline(runs) + "</h1>\n" + runs_table(runs) +
      warnings_html(runs) + "<h2>What differs</h2>\n" + choices_table(runs);
  for (const ReportFigure& f : figures(runs))
    html += "<h2>" + escape_xml(f.title) + "</h2>\n<figure>" + f.svg + "<figcaption>" + escape_xml(f.caption) +
            "</figcaption></figure>\n";
  return html + "</body></html>\n";
}

}  // namespace ws::app
