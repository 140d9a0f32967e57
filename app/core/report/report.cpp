#include "app/core/report/report.h"

#include <algorithm>
#include <cmath>

#include "app/core/comparison/comparison_text.h"
#include "app/core/comparison/comparison.h"
#include "app/core/report/drawing.h"
#include "app/core/report/report_sections.h"
#include "app/core/report/report_figures.h"
#include "app/core/runs/loss_figure.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/safe_text.h"

namespace ws::app {
namespace {

using figure::fixed;
using Point = ReportRun::Point;

// Names the runs of a figure and their machines, because a figure may be used without its page.
std::string runs_caption(const std::vector<ReportRun>& runs) {
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i) {
    const ComparedRun& r = runs[i].run;
    text += (i ? "; " : "") + letter(runs, i) + ": " + r.name;
    if (r.spec)
      text += " (" + r.spec->data.name + ", batch " + std::to_string(r.spec->train.batch) + ", " +
              std::string(to_string(r.spec->exec.precision)) + ")";
    if (!r.device.empty() && (i == 0 || r.device != runs[i - 1].run.device)) text += ", " + r.device;
  }
  return text + ".";
}

constexpr size_t kMostOps = 12;  // ops with a bar of their own

MeasureDelta delta(const ReportRun& a, const ReportRun& b, MeasureKind kind) {
  return compared_delta(a.run, b.run, measure(measures_of(a.run), kind),
                        measure(measures_of(b.run), kind));
}

bool within_noise(const ReportRun& a, const ReportRun& b) {
  return delta(a, b, MeasureKind::StepTime).verdict == Verdict::WithinNoise;
}

std::string in_brackets(const MeasureDelta& d) {
  if (!d.known() || d.delta == 0) return "";
  if (is_quiet(d.verdict)) return std::string(" (") + verdict_text(d) + ")";
  return " (" + percent_change_text(d.percent) + (d.verdict == Verdict::NoiseUnknown ? ", " + no_interval_text(d) : "") + ")";
}

std::string row(const std::vector<std::string>& cells, const char* tag) {
  std::string out = "<tr>";
  for (const std::string& cell : cells) out += std::string("<") + tag + ">" + escape_xml(cell) + "</" + tag + ">";
  return out + "</tr>\n";
}

std::string known(double value, int decimals) { return value > 0 ? fixed(value, decimals) : "–"; }

// Samples per second compare runs with any batch, as long as a sample needs the same work.
std::string samples_against_first(const std::vector<ReportRun>& runs, size_t i) {
  if (i == 0 || !same_work_a_sample(runs[0].run.choices(), runs[i].run.choices())) return "";
  return in_brackets(delta(runs[0], runs[i], MeasureKind::Throughput));
}

// A dash for runs that are too short for a measurement, which is most of them.
std::string tracing_text(const ComparedRun& r) {
  const std::string text = prof::tracing_cost_text(r.tracing_cost);
  return text.empty() ? "–" : text;
}

std::string step_text(const ComparedRun& r) {
  const std::string median = known(r.time.us.value, 1);
  return r.time.has_spread() ? median + ", " + fixed(r.time.p5_us, 1) + " to " + fixed(r.time.p95_us, 1) : median;
}

// Which loss it is stands beside it: of a test, or a mean of steps.
std::string loss_text(const ReportRun& r) {
  const LossFigure loss = loss_figure(r.run.evaluations.empty() ? ComparedRun::kUnknown : r.run.evaluations.back().test_loss, r.loss, &Point::value);
  return std::isnan(loss.value) ? "–" : fixed(loss.value, 4) + " (" + long_name(loss) + ")";
}

std::string warnings_html(const std::vector<ReportRun>& runs) {
  std::string items;
  for (const std::string& sentence : unfair(runs)) items += "<li>" + escape_xml(sentence) + "</li>";
  return items.empty() ? "" : "<h2>Read with care</h2>\n<ul>" + items + "</ul>\n";
}

constexpr const char* kWhichSteps =
    "The step time is the median of the traced steps, without the first ones and the open last one, with P5 and P95 (5 and 95 of 100 steps are shorter). A run without traced "
    "steps uses stretches between its losses. A step ten times as long as the median contains a pause, such as an "
    "evaluation or a checkpoint, and is left out. The mean with pauses counts them, the first steps and untraced "
    "steps, too. The cost of tracing is measured against untraced stretches of the same run. The profiler stays attached "
    "there, so tracing costs more than that if launches set the pace.";

std::string runs_table(const std::vector<ReportRun>& runs) {
  std::string out = "<table>" + row({"", "run", "device", "status", "steps", "step time, µs", "mean with pauses, µs",
                                     "samples/s", "loss", "test accuracy %", "allocator calls per step", "peak memory",
                                     "tracing costs"},
                                    "th");
  for (size_t i = 0; i < runs.size(); ++i) {
    const ReportRun& r = runs[i];
    out += row({letter(runs, i), r.run.name, r.run.device, r.status, r.run.steps > 0 ? std::to_string(r.run.steps) : "–",
                step_text(r.run) + step_against_first(runs, i), known(r.run.whole_run_us, 1),
                figure::grouped(measure(measures_of(r.run), MeasureKind::Throughput).value.value) +
                    samples_against_first(runs, i),
                loss_text(r),
                r.accuracy.empty() ? "–" : fixed(r.accuracy.back().value, 2), fixed(r.run.driver_calls, 1),
                figure::bytes_text(r.run.peak_bytes), tracing_text(r.run)},
               "td");
  }
  return out + "</table>\n<p class=\"note\">" + kWhichSteps + "</p>\n";
}

std::string choices_table(const std::vector<ReportRun>& runs) {
  std::string head = "<th>setting</th>", body;
  for (size_t i = 0; i < runs.size(); ++i) head += "<th>" + letter(runs, i) + "</th>";
  for (const ChoiceRow& choice : choices_that_differ(runs)) {
    std::vector<std::string> cells{choice.key};
    cells.insert(cells.end(), choice.values.begin(), choice.values.end());
    body += row(cells, "td");
  }
  const auto known = std::ranges::count_if(runs, [](const ReportRun& r) { return r.run.spec.has_value(); });
  if (known < 2) return "<p>The settings of fewer than two of the runs are known here.</p>\n";
  return body.empty() ? "<p>The same settings in all runs whose settings are known.</p>\n"
                      : "<table><tr>" + head + "</tr>\n" + body + "</table>\n";
}

std::string kernels_html(const std::vector<ReportRun>& runs) {
  std::string out;
  for (const KernelTable& table : kernel_tables(runs)) {
    const std::string &a = table.a, &b = table.b;
    out += "<h2>" + from_to(a, b) + ", kernels by difference</h2>\n<table class=\"kernels\">" +
           row({"kernel", a + ", calls per step", b + ", calls per step", a + ", µs per step", b + ", µs per step",
                b + " − " + a + ", µs"},
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

std::string sentence(const std::string& text) { return text.empty() ? text : text + ". "; }

std::string steps_of(const std::vector<ReportRun>& runs) {
  std::vector<NamedRun> named;
  for (size_t i = 0; i < runs.size(); ++i) named.push_back({letter(runs, i), &runs[i].run});
  return sentence(steps_text(named));
}

}  // namespace

std::string letter(const std::vector<ReportRun>& runs, size_t i) { return figure::mark(runs, i).letter; }

std::string from_to(const std::string& a, const std::string& b) { return "From " + a + " to " + b; }

std::vector<ChoiceRow> choices_that_differ(const std::vector<ReportRun>& runs) {
  std::vector<const RunSpec*> specs;
  for (const ReportRun& r : runs) specs.push_back(r.run.choices());
  return differing_choices(specs);
}

std::vector<ReportFigure> figures(const std::vector<ReportRun>& runs) {
  std::vector<std::vector<Point>> losses, accuracies;
  for (const ReportRun& run : runs)
    losses.push_back(figure::usable(run.loss, true)), accuracies.push_back(figure::usable(run.accuracy, false));
  std::vector<ReportFigure> all;
  const std::vector<figure::RunMark> who = figure::marks(runs);
  const auto some = [](const auto& curves) {
    return std::ranges::any_of(curves, [](const auto& c) { return !c.empty(); });
  };
  if (some(losses))
    all.push_back({"loss", "Training loss",
                   "Loss of each training batch, logarithmic; each column keeps its least and greatest value.",
                   figure::curves(losses, who, true)});
  if (some(losses) && runs.size() > 1)
    all.push_back({"loss-time", "Training loss over time",
                   "The same losses over the time spent training: what a faster step is worth.",
                   figure::curves(losses, who, true, true)});
  if (some(accuracies))
    all.push_back({"accuracy", "Test accuracy, %", "Share of the test set that is classified right.",
                   figure::curves(accuracies, who, false)});
  all.push_back({"split", "Where a step's time goes", steps_of(runs) + "The parts sum to the step time.",
                 figure::split(runs)});
  if (Drawing steps = figure::steps(runs); !steps.shapes.empty())
    all.push_back({"steps", runs.size() > 1 ? "A typical step of each" : "A typical step",
                   "The step whose length is the median of those sampled; memory is what the allocator has handed out.",
                   std::move(steps)});
  for (size_t i = 1; i < runs.size(); ++i) {
    if (!splits_compare(runs[0].run, runs[i].run)) continue;
    const std::string number = i == 1 ? "" : "-" + std::to_string(i + 1), title = from_to(letter(runs, 0), letter(runs, i));
    const std::string noise = within_noise(runs[0], runs[i]) ? " The difference is within noise." : "";
    const prof::StepSample &a = runs[0].run.sample, &b = runs[i].run.sample;
    all.push_back({"waterfall" + number, title,
                   "Causes of the difference of the median steps, in µs; they sum to it exactly. " +
                       sentence(steps_text({{letter(runs, 0), &runs[0].run}, {letter(runs, i), &runs[i].run}})) + noise,
                   figure::waterfall(prof::waterfall(a.median_parts, b.median_parts), who[0], who[i])});
    if (a.op_parts.empty() && b.op_parts.empty()) continue;
    all.push_back({"waterfall-ops" + number, title + ", kernels by op",
                   "The same difference in µs per step, the time of kernels by the op that they belong to." + noise,
                   figure::waterfall_by_op(prof::folded(prof::waterfall_by_op(a, b), kMostOps), who[0], who[i])});
  }
  for (ReportFigure& figure : all) figure.caption += " " + runs_caption(runs);
  return all;
}

std::vector<KernelTable> kernel_tables(const std::vector<ReportRun>& runs, size_t most) {
  std::vector<KernelTable> all;
  for (size_t i = 1; i < runs.size(); ++i) {
    if (!splits_compare(runs[0].run, runs[i].run)) continue;
    KernelTable table{letter(runs, 0), letter(runs, i), prof::kernel_deltas(runs[0].run.sample, runs[i].run.sample)};
    for (size_t k = most; k < table.rows.size(); ++k) ++table.left_out, table.left_out_us += table.rows[k].delta_us();
    table.rows.resize(std::min(most, table.rows.size()));
    if (!table.rows.empty()) all.push_back(std::move(table));
  }
  return all;
}

std::string step_against_first(const std::vector<ReportRun>& runs, size_t i) {
  if (i == 0 || !same_task(runs[0].run.choices(), runs[i].run.choices())) return "";
  return in_brackets(delta(runs[0], runs[i], MeasureKind::StepTime));
}

std::string headline(const std::vector<ReportRun>& runs) {
  if (runs.size() < 2) return "Training run";
  if (runs.size() > 2) return std::to_string(runs.size()) + " runs side by side";
  return answer_text(compare(runs[0].run, runs[1].run), letter(runs, 0), letter(runs, 1));
}

std::vector<std::string> unfair(const std::vector<ReportRun>& runs) {
  std::vector<std::string> all;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& problem : runs[i].problems) all.push_back(letter(runs, i) + ": the file is damaged. " + problem);
    if (const std::string& lost = runs[i].run.lost_records; !lost.empty())
      all.push_back(letter(runs, i) + ": of the GPU’s records " + lost);
  }
  for (size_t i = 1; i < runs.size(); ++i) {
    const std::string a = letter(runs, 0), b = letter(runs, i), who = runs.size() > 2 ? a + " and " + b + ": " : "";
    for (const std::string& sentence : warnings_of(runs[0].run, runs[i].run, a, b)) all.push_back(who + sentence);
  }
  return all;
}

std::string report_html(const std::vector<ReportRun>& runs) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Warpsight report</title><style>" +
      std::string(kStyle) + "</style></head><body>\n<h1>" + headline(runs) + "</h1>\n" + runs_table(runs) +
      warnings_html(runs);
  if (runs.size() > 1) html += "<h2>What differs</h2>\n" + choices_table(runs);
  for (const ReportFigure& f : figures(runs))
    html += "<h2>" + escape_xml(f.title) + "</h2>\n<figure>" + to_svg(f.drawing) + "<figcaption>" +
            escape_xml(f.caption) + "</figcaption></figure>\n";
  return html + ranks_html(runs) + multiprocessors_html(runs) + kernels_html(runs) + "</body></html>\n";
}

}  // namespace ws::app
