#include "app/core/report/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "app/core/report/report_figures.h"
#include "app/core/report/svg.h"
#include "app/core/comparison/compared_step.h"
#include "profiling/analysis/waterfall.h"
#include "profiling/analysis/kernel_table.h"

namespace ws::app {
namespace {

using figure::fixed, figure::letter;
using Point = ReportRun::Point;

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

constexpr size_t kMostOps = 12;  // that have a bar of their own

bool splits_compare(const ReportRun& a, const ReportRun& b) {
  return a.sample.parts.steps > 0 && b.sample.parts.steps > 0 && a.traced == b.traced;
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
  if (!(first > 0) || !(value > 0) || value == first) return "";
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
  return fixed(100 * std::max(r.overhead_share, 0.0), 1) +
         (r.overhead_spread > 0 ? " ± " + fixed(50 * r.overhead_spread, 1) : "");
}

std::string warnings_html(const std::vector<ReportRun>& runs) {
  std::string items;
  for (const std::string& sentence : unfair(runs)) items += "<li>" + escape_xml(sentence) + "</li>";
  return items.empty() ? "" : "<h2>Read with care</h2>\n<ul>" + items + "</ul>\n";
}

constexpr const char* kWhichSteps =
    "µs/step and samples/s are of the newest steps that were traced, whose parts are shown below; of a run without "
    "them, of the whole run. The mean of the whole run counts its first steps too, and those that were not traced. "
    "What "
    "tracing costs is measured against untraced stretches of the same run, in which the profiler stays attached: where "
    "the host's launches set the pace it costs more than that.";

std::string runs_table(const std::vector<ReportRun>& runs) {
  std::string out =
      "<table>" + row({"", "run", "device", "status", "steps", "µs/step", "µs/step, whole run", "samples/s",
                       "last loss", "test accuracy %", "driver calls/step", "peak", "tracing %"},
                      "th");
  for (size_t i = 0; i < runs.size(); ++i) {
    const ReportRun& r = runs[i];
    out += row({letter(i), r.title, r.device, r.status, std::to_string(r.steps),
                known(r.us_per_step, 1) + step_against_first(runs, i), known(r.whole_us_per_step, 1),
                figure::grouped(r.samples_per_s) + samples_against_first(runs, i),
                r.loss.empty() ? "–" : fixed(r.loss.back().value, 4),
                r.accuracy.empty() ? "–" : fixed(r.accuracy.back().value, 2), fixed(r.allocator_calls_per_step, 1),
                figure::bytes_text(r.peak_bytes), overhead_text(r)},
               "td");
  }
  return out + "</table>\n<p class=\"note\">" + kWhichSteps + "</p>\n";
}

std::string choices_table(const std::vector<ReportRun>& runs) {
  std::string head = "<th>choice</th>", body;
  for (size_t i = 0; i < runs.size(); ++i) head += "<th>" + letter(i) + "</th>";
  for (const std::vector<std::string>& cells : choices_that_differ(runs)) body += row(cells, "td");
  const auto known = std::ranges::count_if(runs, [](const ReportRun& r) { return !r.spec.empty(); });
  if (known < 2) return "<p>The choices of fewer than two of the runs are known here.</p>\n";
  return body.empty() ? "<p>The same choices in all runs whose choices are known.</p>\n"
                      : "<table><tr>" + head + "</tr>\n" + body + "</table>\n";
}

std::string kernels_html(const std::vector<ReportRun>& runs) {
  std::string out;
  for (const KernelTable& table : kernel_tables(runs)) {
    const std::string b = table.title.substr(table.title.size() - 1);
    out += "<h2>" + table.title + ", kernels by difference</h2>\n<table class=\"kernels\">" +
           row({"kernel", "A, calls a step", b + ", calls a step", "A, µs a step", b + ", µs a step", b + " − A, µs"},
               "th");
    for (const prof::KernelDelta& k : table.rows)
      out += row({prof::plain_kernel_name(k.name), fixed(k.a_count, 2), fixed(k.b_count, 2), fixed(k.a_us, 2),
                  fixed(k.b_us, 2), figure::signed_fixed(k.delta_us(), 2)},
                 "td");
    if (table.left_out > 0)
      out += row({std::to_string(table.left_out) + " more", "", "", "", "", figure::signed_fixed(table.left_out_us, 2)},
                 "td");
    out += "</table>\n";
  }
  return out;
}

constexpr const char* kStyle =
    ":root{color-scheme:light}body{background:#fff;font:14px/1.5 Inter,'DejaVu "
    "Sans',sans-serif;color:#191C22;max-width:1000px;margin:32px auto;padding:0 20px}"
    "h1{font-size:24px}h2{font-size:17px;margin-top:32px}table{border-collapse:collapse;font-size:12px;font-variant-"
    "numeric:tabular-nums}"
    "th,td{border:1px solid #D6DAE1;padding:4px 8px;text-align:left}th{background:#F6F7F9}figure{margin:8px 0 "
    "24px}figcaption,.note{color:#48505D;font-size:12px}"
    ".kernels td{text-align:right}.kernels td:first-child{text-align:left;overflow-wrap:anywhere}"
    "svg{max-width:100%;height:auto}@media print{body{margin:0}}";

}  // namespace

std::vector<std::vector<std::string>> choices_that_differ(const std::vector<ReportRun>& runs) {
  std::vector<std::vector<std::string>> rows;
  for (const Field& f : fields()) {
    std::vector<std::string> values;
    for (const ReportRun& r : runs) values.push_back(r.spec.empty() ? "–" : field_text(r.spec[0], f.key));
    std::set<std::string> different;
    for (size_t i = 0; i < runs.size(); ++i)
      if (!runs[i].spec.empty()) different.insert(values[i]);
    if (different.size() < 2) continue;
    values.insert(values.begin(), std::string(f.key));
    rows.push_back(std::move(values));
  }
  return rows;
}

std::vector<ReportFigure> figures(const std::vector<ReportRun>& runs) {
  std::vector<std::vector<Point>> losses, accuracies;
  for (const ReportRun& run : runs)
    losses.push_back(figure::usable(run.loss, true)), accuracies.push_back(figure::usable(run.accuracy, false));
  std::vector<ReportFigure> all;
  const auto some = [](const auto& curves) {
    return std::ranges::any_of(curves, [](const auto& c) { return !c.empty(); });
  };
  if (some(losses))
    all.push_back({"loss", "Training loss",
                   "Loss of each training batch, logarithmic; each column keeps its least and greatest value.",
                   figure::curves(losses, true)});
  if (some(losses) && runs.size() > 1)
    all.push_back({"loss-time", "Training loss over time",
                   "The same losses over the time spent training: what a faster step is worth.",
                   figure::curves(losses, true, true)});
  if (some(accuracies))
    all.push_back({"accuracy", "Test accuracy, %", "Share of the test set that is classified right.",
                   figure::curves(accuracies, false)});
  all.push_back({"split", "Where a step's time goes", "Mean of the sampled steps; the parts sum to the wall time.",
                 figure::split(runs)});
  if (std::string steps = figure::steps(runs); !steps.empty())
    all.push_back({"steps", runs.size() > 1 ? "A typical step of each" : "A typical step",
                   "The step whose length is the median of those sampled; memory is what the allocator has handed out.",
                   std::move(steps)});
  for (size_t i = 1; i < runs.size(); ++i) {
    if (!splits_compare(runs[0], runs[i])) continue;
    const std::string number = i == 1 ? "" : "-" + std::to_string(i + 1), title = "From A to " + letter(i);
    const std::string noise = within_noise(runs[0], runs[i]) ? " The difference is within noise." : "";
    const prof::StepSample &a = runs[0].sample, &b = runs[i].sample;
    all.push_back({"waterfall" + number, title,
                   "Causes of the difference in µs a step; they sum to it exactly." + noise,
                   figure::waterfall(prof::waterfall(a.parts, b.parts), i)});
    if (a.op_parts.empty() && b.op_parts.empty()) continue;
    all.push_back({"waterfall-ops" + number, title + ", kernels by op",
                   "The same difference in µs a step, the time of kernels by the op that they belong to." + noise,
                   figure::waterfall_by_op(prof::folded(prof::waterfall_by_op(a, b), kMostOps), i)});
  }
  for (ReportFigure& figure : all) figure.caption += " " + runs_caption(runs);
  return all;
}

std::vector<KernelTable> kernel_tables(const std::vector<ReportRun>& runs, size_t most) {
  std::vector<KernelTable> all;
  for (size_t i = 1; i < runs.size(); ++i) {
    if (!splits_compare(runs[0], runs[i])) continue;
    KernelTable table{"From A to " + letter(i), prof::kernel_deltas(runs[0].sample, runs[i].sample)};
    for (size_t k = most; k < table.rows.size(); ++k) ++table.left_out, table.left_out_us += table.rows[k].delta_us();
    table.rows.resize(std::min(most, table.rows.size()));
    if (!table.rows.empty()) all.push_back(std::move(table));
  }
  return all;
}

void take_speed(ReportRun& run, double whole_us_per_step, double rows) {
  run.whole_us_per_step = whole_us_per_step;
  run.us_per_step = compared_step_us(run.sample, whole_us_per_step);
  run.samples_per_s = run.us_per_step > 0 ? rows * 1e6 / run.us_per_step : 0;
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
  return html + kernels_html(runs) + "</body></html>\n";
}

}  // namespace ws::app
