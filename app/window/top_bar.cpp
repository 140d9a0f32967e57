#include "app/window/top_bar.h"

#include <cmath>
#include <utility>

#include <QAbstractItemView>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QStackedWidget>
#include <QStyle>
#include <QToolButton>

#include "app/widgets/pane.h"
#include "app/widgets/primary_button.h"
#include "app/widgets/theme.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/workspace/rank_count.h"
#include "app/workspace/run_loss.h"
#include "app/workspace/shipped_runs.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_stats.h"

namespace ws::app {
namespace {

QString tracing_tip() {
  return QObject::tr(
      "Time that tracing adds to a step, measured against short untraced stretches of the same run. The profiler stays "
      "attached in these stretches: if launches set the pace, tracing costs more than this.");
}

constexpr int kWideFrom = 1750;  // there is space for the whole progress
constexpr int kTraceWindow = 100, kTraceCounters = 101, kTraceXray = 102;  // entries in the trace box, beside the levels

QString speed_name(TrainSpeed speed) {
  return speed == TrainSpeed::Full ? QObject::tr("Full speed") : speed == TrainSpeed::Slow ? QObject::tr("Slow") : QObject::tr("Step by step");
}

}  // namespace

ProgressCell::ProgressCell(QWidget* parent) : QPushButton(parent) {
  setFixedHeight(44);
  setMenu(new QMenu(this));
}

void ProgressCell::setWide(bool wide) {
  if (std::exchange(wide_, wide) != wide) updateGeometry();
}

void ProgressCell::show(const Run* run, int waiting, bool compact) {
  if (compact != compact_) compact_ = compact, updateGeometry();
  slot_ = run ? run->slot : -1;
  title_ = run ? run->title : QString();
  strong_.clear(), weak_.clear(), shorter_.clear(), shortest_.clear(), done_ = 0;
  if (run && run->progress) {
    const Progress& p = *run->progress;
    strong_ = tr("epoch %1").arg(count_text(std::min(p.epoch, p.epochs)));
    QString left =
        run->live() ? tr(" · %1 left").arg(duration_text(p.left_s)) : tr(" · %1").arg(duration_text(p.elapsed_s));
    if (waiting > 0) left += tr(" · %1 waiting").arg(waiting);
    const QString of = tr(" / %1").arg(count_text(p.epochs));
    weak_ = of + (compact ? QString() : tr("  step %1").arg(count_text(p.step))) + left;
    shorter_ = of + left, shortest_ = left;
    done_ = p.steps > 0 ? std::min(1.0, static_cast<double>(p.step) / static_cast<double>(p.steps)) : 0;
  } else if (run && run->recording) {
    strong_ = tr("recording");
    const int64_t steps = run->stepsMade();
    weak_ = steps > 0 ? tr(" · %1 steps").arg(count_text(steps))
                      : tr(" · %1 records").arg(count_text(static_cast<int64_t>(run->trace.span_count())));
  } else if (run && run->live()) {
    strong_ = tr("starting");
    const QString newest = run->log.empty() ? tr("loading data") : run->log.back().text;  // its log has what takes long
    weak_ = QStringLiteral(" · ") + newest;
  } else if (run && run->summary) {
    strong_ = QString::fromUtf8(to_string(run->summary->status).data());
    const QString steps = count_text(run->summary->steps);
    const bool counted = run->summary->steps > 0;  // else it is a trace that does not say how many
    // The time is of more than the steps: a training has its first steps and tests, a program loads and ends.
    const QString whole = run->hasChoices()          ? tr(" · training took %1 with first steps and tests")
                          : run->command.isEmpty() ? tr(" · trace of %1")
                                                   : tr(" · program ran %1");
    if (counted) shortest_ = tr(" · %1 steps").arg(steps);
    if (counted) shorter_ = run->hasChoices() ? shortest_ : tr("%1 recorded").arg(shortest_);
    if (counted) weak_ = shorter_ + whole.arg(duration_text(run->summary->wall_s));
    if (!counted && run->origin == RunOrigin::Imported) strong_ = run->command.isEmpty() ? tr("imported") : tr("recorded");
    if (run->shipped) shorter_ = weak_, weak_ += " · " + origin_text(*run);
    done_ = run->summary->status == RunStatus::Finished ? 1 : 0;
  }
  setAccessibleName(tr("Current run"));
  setAccessibleDescription((run ? run_letter(slot_) + " " + strong_ + weak_ : QString()).trimmed());
  setToolTip(tr("%1\nClick to make another run the current one.").arg(title_));
  update();
}

void ProgressCell::paintEvent(QPaintEvent*) {
  constexpr int kArrow = 14;
  const Theme& t = theme();
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  draw_badge(painter, QRectF(0, 4, 15, 15), slot_);
  painter.setFont(ui_font(12.5, 600));
  painter.setPen(t.text);
  if (underMouse() || hasFocus()) painter.setPen(t.focus);
  const QString title = QFontMetricsF(painter.font()).elidedText(title_, Qt::ElideRight, width() - 20 - kArrow);
  painter.drawText(QRectF(20, 2, width() - 20, 18), Qt::AlignLeft | Qt::AlignVCenter, title);
  const QPointF tip(20 + QFontMetricsF(painter.font()).horizontalAdvance(title) + 9, 14);
  painter.drawPolyline(QPolygonF{tip - QPointF(3.5, 3.5), tip, tip + QPointF(3.5, -3.5)});
  const QRectF line(0, 19, width(), 16);
  painter.setFont(ui_font(11, 600));
  painter.setPen(t.secondary);
  draw_number(painter, line, Qt::AlignLeft | Qt::AlignVCenter, strong_);
  const double x = number_width(painter.font(), strong_);
  painter.setFont(ui_font(11));
  // The remaining time is more useful than the step number.
  QString words = weak_;
  for (const QString& fewer : {shorter_, shortest_})
    if (!fewer.isEmpty() && number_width(painter.font(), words) > width() - x) words = fewer;
  const QString rest = QFontMetricsF(painter.font()).elidedText(words, Qt::ElideRight, width() - x + 2);
  draw_number(painter, line.adjusted(x, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, rest);
  painter.setPen(Qt::NoPen);
  painter.setBrush(t.border);
  painter.drawRoundedRect(QRectF(0, 37, width(), 3), 1.5, 1.5);
  painter.setBrush(t.primary);
  if (done_ > 0) painter.drawRoundedRect(QRectF(0, 37, std::max(4.0, width() * done_), 3), 1.5, 1.5);
}

NumberCell::NumberCell(const QString& caption, QWidget* parent) : QWidget(parent), caption_(caption) {
  setFixedHeight(44);
  setAccessibleName(caption);
  keepSpace();
}

void NumberCell::setCaption(const QString& caption) {
  if (caption == caption_) return;
  caption_ = caption;
  setAccessibleName(caption);
  keepSpace();
  update();
}

void NumberCell::setValue(const QString& value, const QString& unit, const QString& note, bool warns) {
  warns_ = warns;
  value_ = value, unit_ = note.isEmpty() ? unit : unit + "  " + note;
  setAccessibleDescription(value + " " + unit_);
  keepSpace();
  update();
}

// A shorter number keeps its width, so that its neighbours do not move, unless one of them needs the space.
void NumberCell::keepSpace() {
  const double caption = QFontMetricsF(ui_font(11)).horizontalAdvance(caption_);
  const double number = number_width(ui_font(14, 600), value_) +
                        (unit_.isEmpty() ? 0 : QFontMetricsF(ui_font(11)).horizontalAdvance(unit_) + 4);
  const int needed = static_cast<int>(std::max({caption, number, 40.0})) + 4;
  if (needed == needed_) return;
  needed_ = needed, width_ = std::max(width_, needed);
  updateGeometry();
}

void NumberCell::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(QRectF(0, 4, width(), 16), Qt::AlignLeft | Qt::AlignVCenter, caption_);
  painter.setFont(ui_font(14, 600));
  painter.setPen(theme().text);
  draw_number(painter, QRectF(0, 20, width(), 20), Qt::AlignLeft | Qt::AlignVCenter, value_);
  const double x = number_width(painter.font(), value_) + 4;
  painter.setFont(ui_font(11));
  painter.setPen(warns_ ? theme().worse : theme().secondary);
  painter.drawText(QRectF(x, 22, width(), 18), Qt::AlignLeft | Qt::AlignVCenter, unit_);
}

TopBar::TopBar(Choices* choices, QWidget* parent) : QWidget(parent), choices_(choices) { build(); }

QWidget* TopBar::separator() {
  auto* line = new QWidget(this);
  line->setFixedSize(1, 26);
  line->setAutoFillBackground(true);
  line->setBackgroundRole(QPalette::Mid);
  return line;
}

void TopBar::build() {
  setFixedHeight(46);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 0, 8, 1);
  row->setSpacing(6);
  train_ = new QPushButton(tr("Train"), this);
  make_primary(*train_);
  train_->setFixedWidth(92);
  stop_ = new QPushButton(tr("Stop"), this);
  step_ = new QPushButton(tr("Step"), this);
  for (QPushButton* button : {train_, stop_, step_}) button->setFont(ui_font(12.5, 500)), row->addWidget(button);
  train_->setToolTip(tr("Train with the settings in Setup (Ctrl+R)"));
  stop_->setToolTip(tr("Stop after this step and keep the run (Ctrl+.)"));
  step_->setToolTip(tr("Run one step and pause again (F10)"));
  connect(train_, &QPushButton::clicked, this, &TopBar::trainClicked);
  connect(stop_, &QPushButton::clicked, this, &TopBar::stopClicked);
  connect(step_, &QPushButton::clicked, this, &TopBar::stepClicked);
  buildSpeed(row);
  row->addSpacing(8);
  row->addWidget(separator());
  row->addSpacing(8);
  middle_ = new QStackedWidget(this);
  middle_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // its figures never widen the window
  hint_ = new QLabel(tr("No run yet"), middle_);
  hint_->setForegroundRole(QPalette::PlaceholderText);
  middle_->addWidget(hint_);
  middle_->addWidget(buildLive());
  row->addWidget(middle_, 1);
  buildRight(row);
  showTrainIcon();
  stop_->setIcon(theme_icon("stop")), step_->setIcon(theme_icon("step"));
  follow_->setIcon(theme_icon("follow")), find_->setIcon(theme_icon("find", &Theme::secondary));
  theme_->setIcon(theme_icon(theme().dark() ? "moon" : "sun", &Theme::secondary));
}

void TopBar::buildSpeed(QHBoxLayout* row) {
  speed_ = option_button(tr("Speed"), this);
  speed_->setToolTip(tr("How fast a training on this machine goes. Its steps and losses stay the same."));
  auto* menu = new QMenu(speed_);
  const std::pair<TrainSpeed, QString> speeds[] = {{TrainSpeed::Full, tr("Full speed")},
                                                   {TrainSpeed::Slow, {}},
                                                   {TrainSpeed::Step, tr("Step by step")}};
  int widest = 0;
  for (const auto& [speed, name] : speeds) {
    QAction* action = menu->addAction(name);
    if (speed == TrainSpeed::Slow) slow_ = action;
    connect(action, &QAction::triggered, this, [this, speed = speed] { emit speedChosen(speed); });
    widest = std::max(widest, QFontMetrics(speed_->font()).horizontalAdvance(speed_name(speed)));
  }
  speed_->setMenu(menu);
  speed_->setFixedWidth(widest + 32);
  setSpeed(TrainSpeed::Full, StartRequest().slow_rate);
  row->addWidget(speed_);
}

void TopBar::setSpeed(TrainSpeed speed, int slow_rate) {
  speed_->setText(speed_name(speed));
  slow_->setText(tr("Slow: %1 steps per second").arg(slow_rate));
}

QWidget* TopBar::buildLive() {
  auto* live = new QWidget(middle_);
  auto* row = new QHBoxLayout(live);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(14);
  progress_ = new ProgressCell(live);
  progress_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  row->addWidget(progress_);
  row->addSpacing(4);
  row->addWidget(separator());
  row->addSpacing(4);
  loss_ = new NumberCell(tr("training loss"), live);  // the longer of its two names keeps the space
  accuracy_ = new NumberCell(tr("test accuracy"), live);
  step_time_ = new NumberCell(step_time_name(), live);
  throughput_ = new NumberCell(tr("throughput, median step"), live);
  memory_ = new NumberCell(tr("step memory"), live);
  gpu_busy_ = new NumberCell(tr("GPU busy"), live);
  kernels_ = new NumberCell(tr("kernels per step"), live);
  for (NumberCell* cell : {loss_, accuracy_, step_time_, gpu_busy_, kernels_, throughput_, memory_}) row->addWidget(cell);
  for (NumberCell* cell : {gpu_busy_, kernels_}) cell->hide();
  row->addStretch(1);
  return live;
}

void TopBar::buildRight(QHBoxLayout* row) {
  buildTrace();
  cost_ = new QLabel(this);
  cost_->setFont(number_font(11.5));
  cost_->setForegroundRole(QPalette::PlaceholderText);
  cost_->hide();
  follow_ = new QPushButton(tr("Follow"), this);
  follow_->setCheckable(true);
  follow_->setToolTip(tr("Keep the newest step of a running training in view (Space). A pan pauses it."));
  connect(follow_, &QPushButton::clicked, this, &TopBar::followClicked);
  find_ = new QPushButton(tr("Find   /"), this);
  find_->setToolTip(tr("Find a kernel, call or op in the timeline ( / )"));
  connect(find_, &QPushButton::clicked, this, &TopBar::findClicked);
  theme_ = new QToolButton(this);
  theme_->setAccessibleName(tr("Light or dark"));
  theme_->setToolTip(tr("Light or dark"));
  connect(theme_, &QToolButton::clicked, this, &TopBar::themeClicked);
  for (QWidget* widget : std::initializer_list<QWidget*>{cost_, trace_}) row->addWidget(widget);
  row->addSpacing(4);
  row->addWidget(separator());
  row->addSpacing(4);
  for (QWidget* widget : std::initializer_list<QWidget*>{follow_, find_, theme_}) row->addWidget(widget);
}

// The levels, then a level that traces a few of many steps, then check boxes for options that any level can have.
void TopBar::buildTrace() {
  trace_ = new QComboBox(this);
  trace_->setFont(ui_font(12));
  trace_->setAccessibleName(tr("Trace level"));
  trace_->setToolTip(
      tr("What a training records. A closer level shows more and costs more. A window of steps, hardware counters and an X-ray "
         "apply from the next run on."));
  const std::pair<int, QString> levels[] = {{static_cast<int>(prof::TraceLevel::Off), tr("Trace off")},
                                            {static_cast<int>(prof::TraceLevel::Steps), tr("Trace steps only")},
                                            {kTraceWindow, tr("Trace 20 of 2 000 steps")},
                                            {static_cast<int>(prof::TraceLevel::Graph), tr("Trace graphs")},
                                            {static_cast<int>(prof::TraceLevel::Kernels), tr("Trace kernels")},
                                            {static_cast<int>(prof::TraceLevel::Full), tr("Trace everything")}};
  for (const auto& [level, name] : levels) trace_->addItem(name, level);
  trace_->setItemData(0,
                      tr("Records nothing. If you choose Off during a run, the profiler stays attached until the run "
                         "ends, and launches may stay a little slower."),
                      Qt::ToolTipRole);
  trace_->setItemData(trace_->findData(static_cast<int>(prof::TraceLevel::Full)),
                      tr("Records kernels, calls to CUDA, and CPU stacks for the flame graph."), Qt::ToolTipRole);
  trace_->insertSeparator(trace_->count());
  trace_->addItem(QString(), kTraceCounters);
  trace_->addItem(QString(), kTraceXray);
  trace_->setItemData(trace_->findData(kTraceXray),
                      tr("Samples where each kernel waits and for what, line by line, in 20 steps each 30 s: see the page Kernel times. Kernel "
                         "records pause meanwhile."),
                      Qt::ToolTipRole);
  trace_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  trace_->setMinimumContentsLength(15);
  trace_->view()->setMinimumWidth(210);
  trace_->setCurrentIndex(shown_trace_ = trace_->findData(static_cast<int>(choices_->traceLevel())));
  setExtras(false, false);
  connect(trace_, &QComboBox::activated, this, &TopBar::pickTrace);
}

void TopBar::pickTrace(int index) {
  const int picked = trace_->itemData(index).toInt();
  if (picked == kTraceCounters || picked == kTraceXray) {
    trace_->setCurrentIndex(shown_trace_);
    setExtras(counters_ != (picked == kTraceCounters), xray_ != (picked == kTraceXray));
  } else {
    shown_trace_ = index;
    choices_->setTraceLevel(traceLevel());
  }
  choices_->setTraceExtras(traceExtras());
}

void TopBar::setExtras(bool counters, bool xray) {
  counters_ = counters, xray_ = xray;
  const auto show = [this](int entry, bool on, const QString& name) { trace_->setItemText(trace_->findData(entry), (on ? "✓ " : "    ") + name); };
  show(kTraceCounters, counters, tr("Hardware counters"));
  show(kTraceXray, xray, tr("X-ray: where kernels wait"));
}

TraceExtras TopBar::traceExtras() const {
  TraceExtras extras{.counters = counters_, .xray = xray_};
  if (trace_->currentData().toInt() == kTraceWindow) extras.node_window = 20, extras.node_every = 2000;
  return extras;
}

QVariantList TopBar::traceChoices() const { return {trace_->currentData().toInt(), counters_, xray_}; }

void TopBar::setTraceChoices(const QVariantList& choices) {
  if (choices.size() < 2) return;
  const int level = choices[0].toInt(), at = trace_->findData(level);
  if (at >= 0 && level != kTraceCounters && level != kTraceXray) trace_->setCurrentIndex(shown_trace_ = at);
  setExtras(choices[1].toBool(), choices.value(2).toBool());
  choices_->setTraceLevel(traceLevel());
  choices_->setTraceExtras(traceExtras());
}

void TopBar::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange)
    theme_->setIcon(theme_icon(theme().dark() ? "moon" : "sun", &Theme::secondary));
}

void TopBar::setCompact(bool compact) {
  compact_ = compact;
  find_->setVisible(!compact);
  fitCells();
}

void TopBar::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fitCells();
}

// A run of another program shows only the recorded figures. A training shows all.
void TopBar::fitCells() {
  progress_->setWide(width() >= kWideFrom);
  loss_->setVisible(!foreign_ || has_loss_);
  accuracy_->setVisible(!foreign_ || has_accuracy_);
  throughput_->setVisible(!compact_ && !foreign_);
  memory_->setVisible(!compact_ && (!foreign_ || has_memory_));
  for (NumberCell* cell : {gpu_busy_, kernels_}) cell->setVisible(foreign_ && has_kernels_);
  step_->setVisible(!program_);
  speed_->setVisible(!program_);
  trace_->setVisible(!program_);
}

void TopBar::setRuns(const std::vector<Run*>& runs) {
  QMenu* menu = progress_->menu();
  menu->clear();
  for (Run* run : runs)
    menu->addAction(badge_icon(run->slot), title_among(*run, {runs.begin(), runs.end()}), this, [this, run] { emit runPicked(run); });
  menu->addSeparator();
  menu->addAction(tr("All runs…"), this, &TopBar::runsWanted);
}

void TopBar::setFollow(bool on) {
  following_ = on;
  follow_->setChecked(following_ && live_);
}

prof::TraceLevel TopBar::traceLevel() const {
  const int choice = trace_->currentData().toInt();
  return choice == kTraceWindow ? prof::TraceLevel::Graph : static_cast<prof::TraceLevel>(choice);
}

void TopBar::showTrainIcon() { train_->setIcon(theme_icon(train_icon_, Qt::white)); }

void TopBar::showButtons(const Run* run, bool busy, bool paused) {
  program_ = !busy && run && !run->command.isEmpty();
  foreign_ = !busy && run && !run->hasChoices();
  const QString name = program_ ? tr("Record") : !busy ? tr("Train") : paused ? tr("Resume") : tr("Pause");
  train_->setText(name);
  train_->setEnabled(!program_ || !run->recording);
  stop_->setEnabled(busy || (run && run->recording));
  step_->setEnabled(!busy || paused);
  if (name == train_name_) return;
  train_icon_ = busy && !paused ? "pause" : program_ ? "record" : "play";
  showTrainIcon();
  train_->setToolTip(program_ ? tr("Run the program again and record it at the level on the left (Ctrl+R)")
                              : tr("Train with the settings in Setup (Ctrl+R)"));
  stop_->setToolTip(program_ ? tr("Interrupt the program, as Ctrl+C would (Ctrl+.)")
                             : tr("Stop after this step and keep the run (Ctrl+.)"));
  train_name_ = name;
}

void TopBar::showRun(const Run* run, bool busy, bool paused, int waiting) {
  showButtons(run, busy, paused);
  live_ = run && run->live();
  follow_->setEnabled(live_);  // a run that has ended has no newer step
  setFollow(following_);
  if (run) {
    has_loss_ = std::isfinite(loss_of(*run).value), has_accuracy_ = std::isfinite(run->testAccuracy());
    has_memory_ = std::isfinite(run->peakBytes()), has_kernels_ = run->split.kernels > 0.5;
  }
  fitCells();
  const bool sweep = run && run->lab;  // it has no steps and no loss
  hint_->setText(sweep ? tr("%1 · a sweep of the laboratory").arg(run->title) : tr("No run yet"));
  middle_->setCurrentIndex(run && !sweep ? 1 : 0);
  progress_->show(run, waiting, compact_);
  if (!run) return cost_->hide();
  showFigures(*run);
}

void TopBar::showFigures(const Run& run) {
  const LossFigure loss = loss_of(run);
  loss_->setValue(significant_text(loss.value), {});
  loss_->setCaption(text(short_name(loss)));
  loss_->setToolTip(with_capital(text(long_name(loss))) + (loss.of_test() ? tr(". From the last test.") : tr(". No test was made yet.")));
  const double accuracy = run.testAccuracy(), rate = run.samplesPerSecond(), bytes = run.peakBytes();
  accuracy_->setValue(fixed_text(accuracy * 100, 2), accuracy == accuracy ? "%" : "");
  const QStringList time = step_time_text(run.stepUs()).split(' ');
  const bool varies = prof::varies_widely(run.step_time), busy = run.machineBusy();
  const QString why = busy ? tr("machine busy") : step_range_text(run.step_time.p5_us, run.step_time.p95_us);  // another program has its own reasons
  step_time_->setValue(time.front(), time.size() > 1 ? time.back() : QString(), varies ? why : QString(), varies && busy);
  step_time_->setToolTip(step_time_tip(run.step_time.p5_us, run.step_time.p95_us));
  throughput_->setValue(significant_text(rate), rate == rate ? tr("samples/s") : "");
  const QStringList memory = bytes_text(bytes).split(' ');
  memory_->setValue(memory.front(), bytes == bytes ? memory.back() : "");
  const int ranks = rank_count(run);
  const bool arena = run.hasChoices() && run.spec.exec.allocator == Allocator::Arena;
  const QString counted = run.plan ? tr("step memory") : tr("peak used");
  memory_->setCaption(ranks > 1 ? tr("%1, %2 ranks").arg(counted).arg(ranks) : counted);
  const QString what = arena ? tr("The block that the arena reserves for the buffers of a step.") : tr("The most memory that blocks held at one time.");
  memory_->setToolTip(run.plan ? what + tr(" Weights and what stays between steps are not counted: the page Memory shows them.") : what);
  const int rank = run.split.rank;
  gpu_busy_->setValue(fixed_text(run.split.busy * 100, 0), "%");
  gpu_busy_->setCaption(rank < 0 ? tr("GPU busy") : tr("GPU busy, rank %1").arg(rank));
  kernels_->setCaption(rank < 0 ? tr("kernels per step") : tr("kernels per step, rank %1").arg(rank));
  kernels_->setValue(count_text(std::lround(run.split.kernels)), {});
  const bool cost = prof::tracing_cost_seen(run.tracing_cost);
  cost_->setText(cost ? tr("tracing costs %1").arg(QString::fromStdString(prof::tracing_cost_text(run.tracing_cost))) : QString());
  cost_->setVisible(cost && !compact_);
  cost_->setToolTip(cost ? tracing_tip() : QString());
}

void TopBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme().header);
  painter.fillRect(QRect(0, height() - 1, width(), 1), theme().border);
}

}  // namespace ws::app
