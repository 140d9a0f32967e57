#include "app/pages/details/details_panel.h"

#include <QEvent>
#include <QLabel>
#include <QVBoxLayout>
#include <utility>

#include "app/core/runs/plan_times.h"
#include "app/pages/details/details_html.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/timeline/block_label.h"
#include "app/timeline/hover_card.h"
#include "app/timeline/time_scale.h"
#include "engine/passes/lifetimes.h"
#include "app/widgets/glossary.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/rank_count.h"
#include "app/workspace/card_limits.h"
#include "profiling/analysis/collective_waits.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/thread_names.h"

namespace ws::app {
namespace {

using namespace details;

constexpr int kSoonMs = 60;
constexpr size_t kMedianOf = 20'000;
constexpr int kFewLetters = 9, kManyLetters = 24;

QString dims(const int (&d)[3]) { return QString("%1 × %2 × %3").arg(d[0]).arg(d[1]).arg(d[2]); }

QString occupancy_rows(const Run& run, const prof::Detail& detail) {
  if (detail.block[0] == 0) return {};
  QString rows = row("grid × block", dims(detail.grid) + " · " + dims(detail.block));
  rows += row("registers", QString("%1 per thread").arg(detail.registers));
  if (detail.static_shared + detail.dynamic_shared > 0)
    rows += row("shared memory", bytes_text(detail.static_shared + detail.dynamic_shared));
  const auto limits = card_limits(run);
  if (!limits) return rows + row("theoretical occupancy", "not known for this card");
  return rows + row("theoretical occupancy", text(prof::occupancy_text(prof::occupancy_of(detail, *limits))));
}

QString partner_row(const Run& run, size_t track, const prof::Span& span) {
  const auto other = partner(run.trace, track, span);
  if (!other) return {};
  const QString name = block_names(run.trace, run.trace.tracks()[other->track], other->span).full;
  const bool gpu = on_gpu(run.trace.tracks()[track]);
  const prof::TimeNs delay = gpu ? span.start - other->span.start : other->span.start - span.start;
  return row(gpu ? "launched by" : "launched", name + ", " + span_time(delay) + (gpu ? " earlier" : " later"));
}

QString gap_row(const Run& run, size_t track, const prof::Span& span) {
  if (!on_gpu(run.trace.tracks()[track])) return {};
  const prof::Span* before = nullptr;
  prof::Span last;
  prof::for_each_span(run.trace.tracks()[track], span.start - 1'000'000, span.start, [&](const prof::Span& s) {
    if (s.end() <= span.start) last = s, before = &last;
    return true;
  });
  if (!before) return {};
  return row("after", block_names(run.trace, run.trace.tracks()[track], last).full + ", " +
                          span_time(span.start - last.end()) + " gap");
}

QString duration_row(const prof::Track& track, const prof::Span& span) {
  std::vector<int64_t> durations;
  for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && durations.size() < kMedianOf; ++block)
    for (const prof::Span& s : block->spans)
      if (s.name == span.name && s.op == span.op) durations.push_back(static_cast<int64_t>(s.duration));
  const QString own = span_time(static_cast<prof::TimeNs>(span.duration));
  if (durations.size() < 2) return row("duration", own);
  const prof::DurationStats stats = prof::stats_of(durations);
  return row_html("duration", "<b>" + own + "</b> · median " + span_time(stats.median) + " of " +
                                  count_text(static_cast<int64_t>(stats.count)));
}

QString rate_row(const prof::OpInfo& op, double seconds) {
  QStringList parts;
  if (op.flops > 0) parts << significant_text(static_cast<double>(op.flops) / seconds) + "FLOP/s";
  if (op.bytes > 0) parts << significant_text(static_cast<double>(op.bytes) / seconds) + "B/s";
  return parts.isEmpty() || seconds <= 0 ? QString() : row("rate", parts.join(" · "));
}

QString place_html(std::string_view place) {
  return QString::fromUtf8(place.data(), static_cast<qsizetype>(place.size())).toHtmlEscaped();
}

// The line, and below it the whole stack, innermost frame first as debuggers show it.
QString line_rows(const prof::OpInfo& op) {
  const auto line = prof::line_of(op);
  if (line.empty()) return {};
  QString rows = row_html("line", place_html(line));
  QStringList frames;
  for (const prof::CodeFrame& frame : prof::stack_of(op)) frames.prepend(place_html(frame.line > 0 ? prof::place_text(frame) : prof::frame_text(frame)));
  if (frames.size() > 1) rows += row_html("stack", frames.join("<br>"));
  return rows;
}

QString op_rows(const Run& run, prof::OpTag tag) {
  const prof::OpInfo* op = op_of(run.trace, tag);
  if (!op) return {};
  QString rows = row_html("op", op_link(run, tag));
  rows += row("phase", QString::fromStdString(op->phase + (op->layer.empty() ? "" : " / " + op->layer)));
  rows += line_rows(*op);
  if (op->flops > 0)
    rows += row("work", significant_text(static_cast<double>(op->flops)) + " FLOP · " +
                            bytes_text(static_cast<double>(op->bytes)));
  return rows;
}

}  // namespace

QString span_details(const Run& run, size_t index, const prof::Span& span) {
  const prof::Track& track = run.trace.tracks()[index];
  const prof::Detail& detail = run.trace.detail(span.detail);
  const QString title = block_names(run.trace, track, span).full,
                full = QString::fromStdString(run.trace.name(span.name));
  QString html = heading(theme().of(span.span_meaning()), title, {}, run.slot);
  if (full != title) html += mono(full);
  QString rows = duration_row(track, span) + op_rows(run, prof::charged_tag(run.trace, span));
  if (const auto parts = prof::parts_of_collective(run.trace, track, span, clock_error(run)))
    rows += row("ranks", QString::fromStdString(prof::parts_text(*parts)));
  rows += row("lane", QString::fromStdString(prof::row_title(run.trace, track)));
  if (span.step) rows += row("step", count_text(static_cast<int64_t>(span.step) - 1));
  rows += occupancy_rows(run, detail);
  if (detail.bytes)
    rows += row("bytes", bytes_text(static_cast<double>(detail.bytes)) +
                             (detail.copy_kind.empty() ? QString() : " · " + QString::fromStdString(detail.copy_kind)));
  if (const prof::OpInfo* op = op_of(run.trace, prof::charged_tag(run.trace, span)); op && span.span_kind() == prof::SpanKind::Kernel)
    rows += rate_row(*op, static_cast<double>(span.duration) * 1e-9);
  rows += partner_row(run, index, span) + gap_row(run, index, span);
  rows += row("begins at", offset_time(span.start, 100));
  return html + table(rows);
}

QString op_details(const Run& run, prof::OpTag tag) {
  const prof::OpInfo* op = op_of(run.trace, tag);
  if (!op) return {};
  const auto times = op_times(run.trace);
  const auto time = times.find(tag);
  QString rows = op_rows(run, tag);
  if (time != times.end())
    rows += row("time",
                time_axis_text(time->second.us) + ", median of " + count_text(static_cast<int64_t>(time->second.count)));
  if (time != times.end()) rows += rate_row(*op, time->second.us * 1e-6);
  return heading(theme().of(op->meaning), QString::fromStdString(op->name), {}, run.slot) + table(rows);
}

QString name_details(const Run& run, prof::NameId name) {
  auto durations = prof::durations_of(run.trace, name, run.trace.first_time(), run.trace.last_time() + 1);
  QString html = heading(theme().focus, short_kernel_name(run.trace.name(name)), {}, run.slot) +
                 mono(QString::fromStdString(run.trace.name(name)));
  if (durations.empty()) return html;
  const prof::DurationStats s = prof::stats_of(durations);
  return html + table(row("count", count_text(static_cast<int64_t>(s.count))) + row("total", span_time(s.total)) +
                      row("median", span_time(s.median)) + row("P99", span_time(s.p99)) +
                      row("slowest", span_time(s.max)));
}

QString buffer_details(const Run& run, BufferId id) {
  if (!run.plan || id == BufferId::None) return {};
  const Plan& plan = run.plan->plan;
  const Buffer& buffer = plan.buffer(id);
  const Lifetime life = lifetimes(plan)[index(id)];
  prof::Meaning meaning = prof::Meaning::Other;
  QString rows = row(
      "shape",
      QString("(%1, %2) · %3").arg(buffer.rows).arg(buffer.cols).arg(QString::fromUtf8(to_string(buffer.type).data())));
  if (buffer.offset >= 0) rows += row("offset", QString("0x%1").arg(buffer.offset, 6, 16, QChar('0')));
  rows += row("role", QString::fromUtf8(to_string(buffer.role).data()));
  const auto tags = op_tags(plan, run.trace);
  const auto has = [id](const std::vector<BufferId>& list) { return std::ranges::find(list, id) != list.end(); };
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind == OpKind::Alloc || op.kind == OpKind::Free) continue;
    if (has(op.out)) rows += row_html("written by", plan_op_link(run, i));
    if (has(op.in)) rows += row_html("read by", plan_op_link(run, i));
    if (has(op.out) && op_of(run.trace, tags[i])) meaning = run.trace.ops[tags[i]].meaning;
  }
  if (life.first >= 0)
    rows += row("alive", QString("%1 of %2 ops").arg(life.last - life.first + 1).arg(plan.ops.size()));
  return heading(theme().of(meaning), QString::fromStdString(buffer.name),
                 bytes_text(static_cast<double>(buffer.bytes())), run.slot) +
         table(rows);
}

DetailsPanel::DetailsPanel(Focus* focus, QWidget* parent)
    : QWidget(parent),
      focus_(focus),
      title_(new QLabel(this)),
      text_(new QTextBrowser(this)),
      ranges_(focus) {
  setAccessibleName(tr("Details"));
  text_->setAccessibleName(tr("Details of the selection"));
  text_->setFrameShape(QFrame::NoFrame);
  text_->setOpenLinks(false);
  text_->setFont(ui_font(12));
  text_->setStyleSheet("QTextBrowser { border: none; background: transparent; }");
  text_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);  // text wraps; an unbreakable word overlaps the margin
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  style_panel_title(*title_);
  constexpr int kAsTitle = 4;  // rows begin where the title begins
  text_->document()->setDocumentMargin(kAsTitle);
  column->addWidget(title_);
  column->addWidget(text_);
  soon_.setSingleShot(true);
  soon_.setInterval(kSoonMs);
  connect(&soon_, &QTimer::timeout, this, &DetailsPanel::refresh);
  connect(focus, &Focus::changed, &soon_, qOverload<>(&QTimer::start));
  steps_.setSingleShot(true);
  connect(&steps_, &QTimer::timeout, this, &DetailsPanel::refreshSteps);
  connect(text_, &QTextBrowser::anchorClicked, this, &DetailsPanel::follow);
  explain_words(text_);
  connect(&ranges_, &RangeDetails::changed, this, &DetailsPanel::refresh);
  refresh();
}

void DetailsPanel::refresh() {
  html_.clear();
  if (const auto* c = focus_->get<SpanChoice>()) html_ = span_details(*c->run, c->track, c->span);
  if (const auto* c = focus_->get<OpChoice>()) html_ = op_details(*c->run, c->op);
  if (const auto* c = focus_->get<NameChoice>()) html_ = name_details(*c->run, c->name);
  if (const auto* c = focus_->get<BufferChoice>()) html_ = buffer_details(*c->run, c->buffer);
  // The rest of the line shows count and time.
  const int letters = std::clamp((text_->viewport()->width() - 118) / 7, kFewLetters, kManyLetters);
  if (const QString sums = ranges_.html(letters); !focus_->ranges().empty()) html_ = sums;
  static const char* const kWhat[] = {"", "selected span", "selected op", "selected kernel", "selected buffer"};
  const bool chosen = !html_.isEmpty();
  if (!chosen && run_) html_ = step_details(*run_);
  QString what;  // the run names itself
  if (chosen) what = focus_->ranges().empty() ? QString::fromLatin1(kWhat[focus_->choice().index()]) : tr("selected range");
  title_->setText(
      QString("<b>%1</b>&nbsp; <span style='color:%2'>%3</span>").arg(tr("Details"), theme().quiet.name(), what));
  if (html_.isEmpty())
    html_ = QString("<p style='color:%1'>%2</p>")
                .arg(theme().quiet.name(), tr("Click a span, an op or a buffer; or drag over the timeline to sum a range."));
  text_->setHtml(QString("<style>a{color:%1;text-decoration:none}</style>").arg(theme().focus.name()) + html_);
}

void DetailsPanel::setRun(Run* run) {
  if (run_) disconnect(run_, nullptr, this, nullptr);
  run_ = run;
  shown_wall_us_ = 0;
  if (run)
    connect(run, &Run::changed, this, [this, run] {
      const bool newer = std::exchange(shown_wall_us_, run->split.wall_us) != run->split.wall_us;
      if (newer || !run->live()) steps_.start(0);  // other views show the new figures already
    });
  refresh();
}

// Only while nothing is selected: otherwise the text would jump while the user reads it.
void DetailsPanel::refreshSteps() {
  const bool chosen = focus_->choice().index() != 0 || !focus_->ranges().empty();
  if (!chosen && isVisible()) refresh();
}

void DetailsPanel::follow(const QUrl& link) {
  Run* run = nullptr;
  if (const auto* c = focus_->get<SpanChoice>()) run = c->run;
  if (const auto* c = focus_->get<OpChoice>()) run = c->run;
  if (const auto* c = focus_->get<BufferChoice>()) run = c->run;
  if (run && link.scheme() == "op") focus_->reveal(OpChoice{run, static_cast<prof::OpTag>(link.path().toUInt())});
}

void DetailsPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refreshSteps();
}

void DetailsPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (event->oldSize().width() != event->size().width()) soon_.start();
}

void DetailsPanel::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) soon_.start();
  QWidget::changeEvent(event);
}

}  // namespace ws::app
