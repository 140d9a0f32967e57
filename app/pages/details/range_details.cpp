#include "app/pages/details/range_details.h"

#include "app/core/runs/data_shape.h"
#include "app/pages/details/details_html.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/timeline/block_label.h"
#include "app/timeline/time_scale.h"
#include "app/widgets/glossary.h"
#include "app/widgets/theme.h"
#include "app/workspace/report_reader.h"
#include "profiling/analysis/activity.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/trace/lod.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

using namespace details;

constexpr size_t kRowsOfARange = 14;
constexpr size_t kSpansSplit = 200'000;  // longer ranges have only sums: dragging must not wait

QString shortened(const QString& name, int letters) {
  return name.size() <= letters ? name : name.left(letters - 1) + QChar(0x2026);
}

bool too_long_to_split(const prof::Trace& trace, TimeRange range) {
  size_t count = 0;
  for (const prof::Track& track : trace.tracks()) count += prof::spans_about(track, range.begin, range.end);
  return count > kSpansSplit;
}

QString percent(double share) { return fixed_text(share * 100, 1) + " %"; }

// Stays on one line even in a narrow dock.
QString part_row(const prof::PartId& part, const QString& name, const QString& time, double share) {
  return QString(
             "<tr><td style='white-space:nowrap'>%1%2</td><td align='right' "
             "style='white-space:nowrap'>&nbsp;%3</td><td "
             "align='right' style='white-space:nowrap;color:%5'>&nbsp;%4&nbsp;%</td></tr>")
      .arg(swatch(part_colour(part)), word_link(name, theme().text), time, fixed_text(share * 100, 0), theme().quiet.name());
}

// A value that also needs the column of the shares.
QString wide_row(const QString& name, const QString& value) {
  return QString("<tr><td style='color:%1'>%2</td><td colspan='2' align='right' style='white-space:nowrap'>&nbsp;%3</td></tr>")
      .arg(theme().quiet.name(), word_link(name, theme().quiet), value.toHtmlEscaped());
}

using Row = QString (*)(const QString& name, const QString& value);

// Rows that need GPU records. `busy`: the GPU's share of the steps, if known; a range may hold more than steps. `waits`: rows below it.
QString gpu_rows(Row row_of, const prof::GpuFigures& gpu, std::optional<double> busy = {}, const QString& waits = {}) {
  if (gpu.activity.busy == 0) return {};
  QString rows = row_of("GPU busy", percent(busy.value_or(gpu.activity.busy_share()))) + waits;
  if (gpu.activity.copies > 0) rows += row_of("overlap", fixed_text(gpu.activity.hidden_copies() * 100, 0) + " % of copies");
  if (gpu.delay.count > 0) {
    rows += row_of("launch delay, median", span_time(gpu.delay.median));
    rows += row_of("launch delay, P99", span_time(gpu.delay.p99));
  }
  return rows;
}

QString range_parts(const prof::Trace& trace, TimeRange range) {
  if (too_long_to_split(trace, range))
    return row("parts", "not split: more than " + count_text(static_cast<int64_t>(kSpansSplit)) + " records");
  const prof::Breakdown parts = prof::breakdown(trace, range.begin, range.end);
  if (parts.wall() <= 0) return {};
  QString rows;
  for (const auto& [id, ns] : prof::parts_of(parts))
    rows += part_row(id, QString::fromUtf8(prof::part_name(id)), span_time(ns), static_cast<double>(ns) / static_cast<double>(parts.wall()));
  return rows;
}

// Returns the time that was deliberately not traced.
prof::TimeNs untraced_in(const prof::Trace& trace, TimeRange range) {
  prof::TimeNs all = 0;
  for (const prof::Track& track : trace.tracks())
    if (prof::untraced(track))
      prof::for_each_span(track, range.begin, range.end, [&](const prof::Span& span) {
        all += std::min(span.end(), range.end) - std::max(span.start, range.begin);
        return true;
      });
  return all;
}

// "GPU busy", and of which rank if there are several: its steps stand for the run.
QString busy_name(const prof::Trace& trace) {
  return several_ranks(trace) ? QObject::tr("GPU of rank %1 busy").arg(prof::rank_of_steps(trace)) : QObject::tr("GPU busy");
}

QString busy_row(const prof::Trace& trace, prof::TimeNs busy, prof::TimeNs idle, prof::TimeNs untraced) {
  QString text = QObject::tr("%1 %2, idle %3").arg(busy_name(trace), span_time(busy), span_time(idle));
  if (untraced > 0) text += QObject::tr(", not traced %1").arg(span_time(untraced));
  return "<tr><td colspan='3'>" + text + "</td></tr>";
}

// Rows for a range that was read from the run file.
QString stored_gpu_rows(const prof::Trace& trace, const prof::Activity& gpu) {
  QString rows = busy_row(trace, gpu.busy, gpu.wall - gpu.busy, gpu.untraced);
  if (gpu.busy == 0) return rows;
  rows += row("GPU busy", percent(gpu.busy_share()));
  if (gpu.copies > 0) rows += row("overlap", fixed_text(gpu.hidden_copies() * 100, 0) + " % of copies");
  return rows;
}

// The parts of a range, and the GPU's work in it.
QString whereabouts(const prof::Trace& trace, TimeRange range) {
  const QString where = range_parts(trace, range);
  const QString gpu = too_long_to_split(trace, range) ? QString() : gpu_rows(row, prof::gpu_figures(trace, {range.begin, range.end}, {}));
  return (where.isEmpty() ? where : table(where)) + (gpu.isEmpty() ? gpu : table(gpu));
}

QString tracing_row(const Run& run) {
  const std::string cost = prof::tracing_cost_text(run.tracing_cost);
  return cost.empty() ? QString() : wide_row("tracing costs", QString::fromStdString(cost));
}

bool same_range(const RunRange& a, const RunRange& b) { return a.run == b.run && a.range == b.range; }

QString sums_html(const StoredSums& sums, int letters) {
  QString rows;
  for (const StoredSums::Row& row : sums.rows) {
    if (row.kind == prof::TrackKind::Steps || row.kind == prof::TrackKind::Phases) continue;
    rows += QString("<tr><td colspan='3' style='color:%1'>%2</td></tr>")
                .arg(theme().quiet.name(), QString::fromStdString(row.name).toHtmlEscaped());
    for (size_t i = 0; i < std::min(kRowsOfARange, row.sums.size()); ++i)
      rows += QString(
                  "<tr><td style='white-space:nowrap'>%1%2</td><td align='right' style='white-space:nowrap'>%3 "
                  "×</td><td align='right' "
                  "style='white-space:nowrap'>%4</td></tr>")
                  .arg(swatch(theme().of(row.sums[i].meaning)),
                       shortened(short_kernel_name(row.sums[i].name), letters).toHtmlEscaped())
                  .arg(count_text(static_cast<int64_t>(row.sums[i].count)), span_time(row.sums[i].total));
  }
  return rows;
}

QString note_html(const QString& text) {
  return QString("<tr><td colspan='3' style='color:%1'>%2</td></tr>").arg(theme().quiet.name(), text.toHtmlEscaped());
}

}  // namespace

namespace {

// The choices of the run, which Setup may have changed since. Numbers stand with their names.
QString choice_rows(const Run& run) {
  static const std::pair<const char*, std::vector<const char*>> kParts[] = {
      {"execution", {"exec.allocator", "exec.sync", "exec.fusion", "exec.launch", "exec.precision"}},
      {"model", {"model.hidden", "model.layers", "model.activation", "model.init"}},
      {"training", {"train.optimizer", "train.lr", "train.batch", "train.epochs"}},
      {"data", {"data.name"}}};
  QString rows;
  for (const auto& [part, keys] : kParts) {
    QStringList values;
    for (const char* key : keys) {
      const Field& choice = field(key);
      QString value = QString::fromStdString(field_text(run.spec, key));
      if (choice.kind == FieldKind::Choice) value.replace('-', ' ');  // as Setup writes it
      if (relevant(run.spec, key) && !value.isEmpty()) values << text(choice.label) + ' ' + value;
    }
    rows += row(part, values.join(QStringLiteral(", ")));
  }
  return QString("<div style='color:%1; margin-left:2px; margin-top:6px'>%2</div>").arg(theme().quiet.name(), QObject::tr("settings of this run")) + table(rows);
}

}  // namespace

// What the tool bar does not show of the run.
QString step_details(const Run& run) {
  const StepSplit& split = run.split;
  if (split.steps == 0 || split.wall_us <= 0)
    return heading({}, run.title, {}, run.slot) +
           note_html(run.live() || !run.loaded ? QObject::tr("No step is traced yet.") : QObject::tr("No step was traced."));
  const auto counted = QString::fromStdString(split.which);
  const bool some = counted.contains(QStringLiteral(" of steps "));  // which ones stands in the tip
  QString of = QObject::tr("median of %1").arg(some ? QObject::tr("%1 of %2 steps").arg(count_text(split.steps), count_text(split.marked)) : counted);
  if (const int rank = prof::rank_of_steps(run.trace); rank >= 0 && several_ranks(run.trace)) of += QObject::tr(" of rank %1").arg(rank);
  QString rows;
  if (run.step_time.p95_us >= run.step_time.p5_us) rows += wide_row(QObject::tr("90 % of the steps"), QObject::tr("%1 to %2").arg(time_axis_text(run.step_time.p5_us), time_axis_text(run.step_time.p95_us)));
  // The GPU is busy as long as a kernel runs, also while its multiprocessors wait.
  const double inside = split.inner_wait_us(), kernels = split.busy * split.wall_us;
  const QString waits = inside > 0 && kernels > 0 ? wide_row(QString::fromUtf8(prof::part_name({prof::Meaning::Sync, prof::PartKind::InnerWait})), QObject::tr("%1 of it").arg(percent(inside / kernels))) : QString();
  rows += gpu_rows(wide_row, split.gpu, split.busy, waits);
  const bool fewer = split.gpu.activity.busy > 0 && split.gpu.of != split.which;
  if (fewer) rows += note_html((split.gpu.delay.count > 0 ? QObject::tr("overlap and launch delay: %1") : QObject::tr("overlap: %1")).arg(QString::fromStdString(split.gpu.of)));
  rows += tracing_row(run);
  return heading({}, run.title, {}, run.slot) + QString("<div style='color:%1; margin-left:2px; margin-bottom:4px'><span title='%3'>%2</span>%4</div>").arg(theme().quiet.name(), of, counted.toHtmlEscaped(), split.left_out.isEmpty() ? QString() : "<br>" + split.left_out.toHtmlEscaped()) + table(rows) +
         (run.hasChoices() && !run.lab ? choice_rows(run) : QString());
}

// Spans that are out of memory count only after they were read.
QString range_details(const std::vector<RunRange>& ranges, int letters, const std::vector<SummedRange>& from_file) {
  QString html;
  for (const RunRange& part : ranges) {
    if (!part.run) continue;
    const prof::Trace& trace = part.run->trace;
    html += heading({}, part.run->title, span_time(part.range.length()), part.run->slot);
    const auto read = std::ranges::find_if(from_file, [&](const SummedRange& r) { return same_range(r.range, part); });
    QString rows;
    const bool here = in_memory(trace, part.range);
    if (here) {
      const prof::Busy gpu = gpu_during(trace, part.range);
      const prof::TimeNs untraced = untraced_in(trace, part.range);
      if (first_track(trace, prof::TrackKind::Stream) && gpu.known)
        rows += busy_row(trace, gpu.busy, std::max<prof::TimeNs>(gpu.idle - untraced, 0), untraced);
      rows += sums_html(sums_in(trace, part.range), letters);
    } else if (read == from_file.end()) {
      rows += note_html(QObject::tr("Reading the rest from the run file…"));
    } else {
      if (!read->problem.isEmpty()) rows += note_html(read->problem);
      if (read->sums.gpu) rows += stored_gpu_rows(trace, *read->sums.gpu);
      rows += sums_html(read->sums, letters);
    }
    if (here) html += whereabouts(trace, part.range);
    html += table(rows);
  }
  return html;
}

QString RangeDetails::html(int letters) {
  sumFromFiles();
  return focus_->ranges().empty() ? QString() : range_details(focus_->ranges(), letters, summed_);
}

// Reads one file after the other and shows each answer at once.
void RangeDetails::sumFromFiles() {
  const auto& ranges = focus_->ranges();
  const auto among = [](const auto& list, const RunRange& range) {
    return std::ranges::any_of(list, [&](const auto& each) {
      if constexpr (requires { each.sums; })
        return same_range(each.range, range);
      else
        return same_range(each, range);
    });
  };
  std::erase_if(summed_, [&](const SummedRange& known) { return !among(ranges, known.range); });
  search_.cancel();
  for (const RunRange& part : ranges) {
    if (!part.run || in_memory(part.run->trace, part.range) || among(summed_, part)) continue;
    const auto done = [this, part](const StoredSums& sums, size_t unread, const QString& problem) {
      QString why = problem;
      if (unread > 0)
        why = tr("%1 spans cannot be read and are missing here.").arg(count_text(static_cast<int64_t>(unread)));
      summed_.push_back({part, sums, why});
      emit changed();
    };
    if (search_.ask<StoredSums>(
            *part.run, [range = part.range](prof::StoredSpans& file) { return sums_in(file, range); }, done))
      return;
    summed_.push_back({part, {}, tr("Not known: older spans were dropped, and there is no run file.")});
  }
}

}  // namespace ws::app
