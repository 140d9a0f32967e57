#include "app/pages/memory/memory_map_panel.h"

#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "app/widgets/headlined.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/workspace/rank_count.h"
#include "profiling/analysis/memory_account.h"
#include "profiling/analysis/trace_queries.h"

namespace ws::app {
namespace {

constexpr int kMapRefreshMs = 1000;
constexpr int64_t kStepsShown = 2;

QString entry(const QColor& colour, const QString& name, const QString& mark = QStringLiteral("■")) {
  return QString("<span style='color:%1'>%2</span> %3").arg(colour.name(), mark, name);
}

// What a recorded program made outside of its phases is not known more exactly.
QString content_name(MemoryContent content, bool recorded) {
  return recorded && content == MemoryContent::Other ? QObject::tr("other blocks") : content_name(content);
}

// The same colours in the map and in the table.
QString map_legend(const MemoryMap& map, bool recorded) {
  if (map.empty()) return {};
  QStringList parts;
  for (const MemoryContent content : kContents)
    if (std::ranges::find(map.blocks, content, &MapBlock::content) != map.blocks.end())
      parts << entry(theme().of(meaning_of(content)), content_name(content, recorded));
  if (!map.seams.empty()) parts << entry(theme().quiet, QObject::tr("addresses left out"), QStringLiteral("– –"));
  return parts.join("&nbsp;&nbsp; ");
}

// "gradients 92 %, activations 8 %"
QString shares_text(const std::vector<MemoryPart>& parts, uint64_t all) {
  QStringList texts;
  if (parts.size() == 1 && parts[0].name == content_name(MemoryContent::Other, true)) return {};  // nothing is known
  if (parts.size() == 1) return QObject::tr("all %1").arg(parts[0].name);
  for (const MemoryPart& part : parts)
    texts << QObject::tr("%1 %2 %").arg(part.name, fixed_text(100 * static_cast<double>(part.bytes) / static_cast<double>(all), 0));
  return texts.join(", ");
}

// "weights 397.5 KiB, optimizer 397.5 KiB"
QString sizes_text(const std::vector<MemoryPart>& parts) {
  QStringList texts;
  for (const MemoryPart& part : parts) texts << part.name + ' ' + short_bytes_text(static_cast<double>(part.bytes));
  return texts.join(", ");
}

// "Reserved: 32.0 MiB, of which 8.0 MiB is never used." Empty if it is unknown, or as large as the peak.
QString reserve_text(uint64_t reserved, uint64_t peak) {
  if (reserved <= peak) return {};
  return QObject::tr("[Reserved|Used and reserved]: %1, of which %2 is never used.")
      .arg(bytes_text(static_cast<double>(reserved)), bytes_text(static_cast<double>(reserved - peak)));
}

// "From the driver: 5.00 MiB, at most 8.00 MiB. 4.00 MiB of it is unused: 2.00 MiB beside live blocks, 2.00 MiB in empty segments."
QString gap_text(const prof::MemoryGap& gap) {
  const auto text = [](uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  QString said = gap.most_taken > gap.taken ? QObject::tr("From the driver: %1, at most %2.").arg(text(gap.taken), text(gap.most_taken))
                                            : QObject::tr("From the driver: %1.").arg(text(gap.taken));
  if (gap.beside + gap.empty > 0)
    said += ' ' + QObject::tr("%1 of it is unused: %2 beside live blocks, %3 in empty segments.").arg(text(gap.beside + gap.empty), text(gap.beside), text(gap.empty));
  return said;
}

// "The peak of a step grows from 230.1 MiB to 545.2 MiB: activations from …" Empty if it does not, or only in the first half: the first steps warm up,
// and what was recorded may begin within one.
QString growth_text(const MemoryMap& map) {
  constexpr size_t kFewest = 4;
  constexpr double kGrows = 1.25, kStillGrows = 1.1, kFalls = 0.9;
  const std::vector<UsePoint> peaks = peaks_of_steps(map);
  if (peaks.size() < kFewest) return {};
  const auto falls = [](const UsePoint& before, const UsePoint& after) { return static_cast<double>(after.used) < kFalls * static_cast<double>(before.used); };
  const auto first = static_cast<double>(peaks.front().used), middle = static_cast<double>(peaks[peaks.size() / 2].used), last = static_cast<double>(peaks.back().used);
  if (last < kGrows * first || last < kStillGrows * middle || std::ranges::adjacent_find(peaks, falls) != peaks.end()) return {};
  const QString cause = growth_between(map, peaks.front().x, peaks.back().x);
  return QObject::tr("The peak of a step grows from %1 to %2: %3.").arg(short_bytes_text(first), short_bytes_text(last), cause.isEmpty() ? QObject::tr("the recording does not show what grows") : cause);
}

bool grows(const MemoryMap& map) { return !growth_text(map).isEmpty(); }

// Begins the curve there, with the values that hold there.
void cut_before(FragmentationCurve& curve, double begin) {
  if (curve.empty() || begin <= curve.x_begin) return;
  const auto after = [begin](const prof::MemoryMoment& moment) { return static_cast<double>(moment.time) > begin; };
  const auto first = std::ranges::find_if(curve.moments, after);
  if (first != curve.moments.begin()) curve.moments.erase(curve.moments.begin(), first - 1);
  curve.moments.front().time = std::max(curve.moments.front().time, static_cast<prof::TimeNs>(begin));
  curve.x_begin = begin;
}

// The plan of each rank is the same.
QString ranks_text(const Run& run) {
  const int ranks = rank_count(run);
  return ranks > 1 ? QObject::tr("On each of %1 ranks; together at most %2.").arg(ranks).arg(bytes_text(run.peakBytes())) : QString();
}

Table calls_table(const Run* run) {
  const Table all = run ? prof::allocator_rows(run->trace, run->allocator_calls, run->stepsMade()) : prof::allocator_rows({}, {}, 0);
  Table table = with_columns(all, {"name", "calls", "calls_a_step", "us_a_step", "us_a_call", "bytes"});
  table.columns[0].name = "op";
  return table;
}

}  // namespace

MemoryMapPanel::MemoryMapPanel(Focus* focus, QWidget* parent)
    : QWidget(parent),
      focus_(focus),
      finding_(new Headlined(this)),
      plan_(new PlanPanel(focus, this)),
      pane_(new Pane(tr("Memory map"), this)),
      view_(new MemoryMapView(this)),
      over_time_(new MemoryTimeView(this)),
      calls_table_(new QTableView(this)),
      holders_table_(new QTableView(this)) {
  buildOptions();
  pane_->setBody(view_);
  plan_->setNarrow(true);
  auto* right = new QSplitter(Qt::Vertical, this);
  right->addWidget(pane_);
  right->addWidget(below_map_ = buildBelow());
  right->setSizes({520, 190});
  auto* columns = new QSplitter(Qt::Horizontal, this);
  columns->addWidget(plan_);
  columns->addWidget(right);
  columns->setSizes({500, 800});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(5);
  finding_->setContentsMargins(0, 8, 0, 0);
  finding_->setBackgroundRole(QPalette::Base);
  finding_->setAutoFillBackground(true);
  finding_->setPicture(columns);
  column->addWidget(finding_);
  connect(view_, &MemoryMapView::blockChosen, this, &MemoryMapPanel::chooseBlock);
  connect(view_, &MemoryMapView::foldWanted, this, [this](const QString& block, bool folded) {
    if (run_) run_->setFolded(block.toStdString(), folded);
  });
  connect(plan_, &PlanPanel::opChosen, this, [this](int op) {
    if (view_->map().by_op) view_->setCursorX(op + 0.5);
  });
  refresh_.setInterval(kMapRefreshMs);
  connect(&refresh_, &QTimer::timeout, this, [this] {
    if (!isVisible() || !run_ || !run_->live()) return;
    view_->map().by_op ? refreshBelow() : refresh();
  });
  refresh_.start();
}

void MemoryMapPanel::buildOptions() {
  pane_->legend()->hide();
  source_button_ = option_button(tr("What the map shows"), pane_);
  auto* menu = new QMenu(source_button_);
  menu->addAction(tr("The plan where there is one"), this, [this] { setSource(Source::Best); });
  menu->addAction(tr("The arena's plan"), this, [this] { setSource(Source::Plan); });
  menu->addAction(tr("What was allocated, last steps"), this, [this] { setSource(Source::Events); });
  source_button_->setMenu(menu);
  source_button_->setText(tr("Plan"));
  pane_->addOption(phases_ = new QLabel(pane_));
  phases_->setFont(ui_font(11.5));
  pane_->addOption(source_button_);
  whole_ = option_button(tr("Show all steps, not only the one with most memory in use"), pane_);
  whole_->setText(tr("All steps"));
  whole_->setProperty("menu", false);
  whole_->setCheckable(true);
  connect(whole_, &QPushButton::toggled, this, &MemoryMapPanel::refresh);
  pane_->addOption(whole_);
  allocator_button_ = option_button(tr("Whose memory the page shows"), pane_);
  allocator_button_->setMenu(new QMenu(allocator_button_));
  pane_->addOption(allocator_button_);
}

QWidget* MemoryMapPanel::buildBelow() {
  tables_ = new QStackedWidget(this);
  tables_->addWidget(buildHolders());
  tables_->addWidget(buildCalls());
  auto* below = new QSplitter(Qt::Horizontal, this);
  below->addWidget(over_time_);
  below->addWidget(tables_);
  below->setSizes({300, 430});
  return below;
}

void MemoryMapPanel::addTableChoice(Pane& pane) {
  QPushButton* button = option_button(tr("What the table shows"), &pane);
  auto* menu = new QMenu(button);
  for (const auto& [text, table] : {std::pair{tr("Live at the peak, by layer or module"), Below::Layers},
                                    {tr("Live at the peak, by source line"), Below::Lines},
                                    {tr("Live at the peak, by op"), Below::Ops},
                                    {tr("Allocator calls"), Below::Calls}})
    menu->addAction(text, this, [this, table = table] { setBelow(table); });
  button->setMenu(menu);
  button->setText(tr("Show"));
  pane.addOption(button);
}

Pane* MemoryMapPanel::buildHolders() {
  holders_pane_ = new Pane(tr("Live at the peak"), this);
  holders_pane_->legend()->hide();
  addTableChoice(*holders_pane_);
  holders_.setTable(with_columns(prof::holder_rows({}, 1, "op"), {"name", "bytes", "share", "blocks"}));
  holders_table_->setModel(&holders_);
  style_table(*holders_table_, tr("What was live at the peak"));
  holders_table_->horizontalHeader()->setSectionResizeMode(Holder, QHeaderView::Stretch);
  for (const auto& [column, width] : {std::pair{Bytes, 96}, {Share, 78}, {Blocks, 74}})
    holders_table_->setColumnWidth(column, width);
  no_holders_ = put_table(*holders_pane_, holders_table_);
  connect(holders_table_, &QTableView::clicked, this, [this](const QModelIndex& index) {
    if (const prof::OpTag op = held_.rows[static_cast<size_t>(index.row())].op; run_ && op != prof::kNoOp) focus_->choose(OpChoice{run_, op});
  });
  return holders_pane_;
}

Pane* MemoryMapPanel::buildCalls() {
  calls_pane_ = new Pane(tr("Allocator calls"), this);
  addTableChoice(*calls_pane_);
  calls_pane_->legend()->hide();
  calls_.setTable(calls_table(nullptr));
  calls_table_->setModel(&calls_);
  style_table(*calls_table_, tr("Allocator calls by op"));
  QHeaderView* header = calls_table_->horizontalHeader();
  header->setSectionResizeMode(Op, QHeaderView::Stretch);
  const QFontMetrics metrics(header->font());
  for (int c = 1; c < calls_.columnCount(); ++c) {
    const QString name = calls_.headerData(c, Qt::Horizontal, Qt::DisplayRole).toString();
    calls_table_->setColumnWidth(
        c, std::max(c == Asked ? 86 : 62, metrics.horizontalAdvance(name) + 40));
  }
  calls_table_->viewport()->installEventFilter(this);
  no_calls_ = put_table(*calls_pane_, calls_table_);
  return calls_pane_;
}

// The names come first. If space is short, columns that follow from other columns are hidden.
void MemoryMapPanel::fitCalls() {
  constexpr int kOpWidth = 130;
  int space = calls_table_->viewport()->width() - kOpWidth;
  for (const int column : {UsAStep, CallsAStep, UsACall, Calls, Asked}) {
    calls_table_->setColumnHidden(column, false);
    space -= calls_table_->columnWidth(column);
    calls_table_->setColumnHidden(column, space < 0);
  }
}

bool MemoryMapPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == calls_table_->viewport() && event->type() == QEvent::Resize) fitCalls();
  return QWidget::eventFilter(watched, event);
}

void MemoryMapPanel::setRun(Run* run) {
  if (run_) disconnect(run_, nullptr, this, nullptr);
  run_ = run;
  allocator_button_->menu()->clear();
  plan_->setRun(run);
  plan_->setVisible(!isRecorded());
  if (run) {
    connect(run, &Run::foldsChanged, this, &MemoryMapPanel::refresh);
    connect(run, &Run::changed, this, [this] {
      if (isVisible() && view_->map().empty()) refresh();
    });
  }
  if (isVisible()) refresh();
}

void MemoryMapPanel::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) showLegend();
  QWidget::changeEvent(event);
}

void MemoryMapPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void MemoryMapPanel::showLegend() { phases_->setText(map_legend(view_->map(), isRecorded())); }
QString MemoryMapPanel::headline() const { return finding_->headline(); }
QString MemoryMapPanel::notes() const { return finding_->notes(); }

bool MemoryMapPanel::isRecorded() const { return run_ && !run_->hasChoices(); }
void MemoryMapPanel::setSource(Source source) { source_ = source; refresh(); }
void MemoryMapPanel::setBelow(Below below) {
  below_ = below;
  refreshHolders();
  refreshBelow();
}

QStringList MemoryMapPanel::allocators() const {
  QStringList names;
  if (!isRecorded()) return names;
  for (const std::string& name : run_->trace.memory_sources)
    if (!prof::is_driver_source(name)) names << QString::fromStdString(name);
  return names;
}

// Blocks of two devices may have the same addresses, and their bytes have no sum.
int MemoryMapPanel::shownAllocator() const {
  if (allocators().size() < 2) return -1;
  const auto& names = run_->trace.memory_sources;
  const auto shown = std::ranges::find(names, held_.allocator);
  return shown == names.end() ? -1 : static_cast<int>(shown - names.begin());
}

void MemoryMapPanel::fillAllocators() {
  const QStringList names = allocators();
  allocator_button_->setVisible(names.size() > 1);
  allocator_button_->setText(QString::fromStdString(held_.allocator));
  QMenu* const menu = allocator_button_->menu();
  if (menu->actions().size() == names.size()) return;
  menu->clear();
  for (const QString& name : names) menu->addAction(name, this, [this, name] { allocator_ = name; refresh(); });
}

// What grows from step to step is seen in all steps only.
bool MemoryMapPanel::showsAll(const MemoryMap& map) const { return whole_->isChecked() || grows(map); }

// " · step 21": the one step that is shown
QString MemoryMapPanel::stepText(const MemoryMap& map) const {
  const auto step = std::ranges::find(map.sections, map.x_from, &std::pair<double, QString>::first);
  const bool one = map.by_step && map.x_until < map.x_end && !showsAll(map) && step != map.sections.end();
  return one ? QStringLiteral(" · ") + step->second : QString();
}

void MemoryMapPanel::refresh() {
  refreshHolders();
  fillAllocators();
  const int source = shownAllocator();
  MemoryMap map;
  const auto cursor = view_->cursorX();
  const bool was_by_op = view_->map().by_op;
  if (run_ && run_->plan && source_ != Source::Events) map = plan_map(run_->plan->plan, [this](const std::string& block) { return run_->folded(block, true); });
  if (run_ && map.empty() && source_ != Source::Plan) map = event_map(run_->trace, kStepsShown, source);
  source_button_->setText(map.empty() || map.by_op ? tr("Plan") : tr("Allocated"));
  if (run_ && run_->plan && !map.by_op) name_contents(map, contents(run_->plan->plan, run_->trace));
  const QString note =
      map.empty()     ? QString()
      : map.by_op     ? tr("address × lifetime · colour: what a buffer holds")
      : map.steps > 0 ? tr("address × time · last %1 steps · colour: what a block holds").arg(map.steps)
                      : tr("address × time%1 · colour: what a block holds").arg(stepText(map));
  const int rank = run_ && !map.empty() && !map.by_op ? memory_rank(run_->trace) : -1;
  const QString whose = rank >= 0 ? tr("rank %1 · ").arg(rank) : QString();
  pane_->setTitle(tr("Memory map"), whose + note);
  FragmentationCurve curve;
  if (map.by_op)
    curve = plan_fragmentation(map);
  else if (run_)
    curve = event_fragmentation(run_->trace, source);
  if (!map.by_op && !whole_->isChecked()) cut_before(curve, map.x_normal);
  if (run_ && map.by_step) {
    const auto step_text = [this](double at) { return tr("step %1").arg(count_text(static_cast<int64_t>(run_->stepAt(static_cast<prof::TimeNs>(at))))); };
    curve.first = step_text(curve.x_begin), curve.last = step_text(curve.x_end);
  }
  over_time_->setCurve(std::move(curve), run_ ? run_->slot : 0);
  const bool part = !map.by_op && (map.x_from > map.x_begin || map.x_until < map.x_end);
  whole_->setVisible(part && !grows(map));
  view_->showWhole(showsAll(map));
  over_time_->setVisible(!map.empty());
  const bool recorded = isRecorded();
  if (recorded) map.use_note = tr("without blocks from before the recording, such as weights");
  source_button_->setVisible(!recorded);
  view_->setMap(std::move(map), run_ ? run_->slot : 0,
                recorded ? tr("No allocation was recorded. Trace level collectives records none. On the CPU, PyTorch reports "
                              "its blocks only to its own profiler (profile_memory=True).")
                         : tr("Nothing is placed yet. Train with the arena to see its plan, or with tracing on to see allocations."));
  showLegend();
  refreshBelow();
  if (cursor && was_by_op == view_->map().by_op && was_by_op) view_->setCursorX(*cursor);
  showFinding();
}

// A long history is looked through once, when the run has ended.
void MemoryMapPanel::refreshHolders() {
  constexpr size_t kWhileLive = 100'000;
  if (run_ && run_->live() && run_->trace.memory().size() > kWhileLive) return;
  const prof::GroupBy by = below_ == Below::Lines ? prof::GroupBy::Line
                           : below_ == Below::Ops ? prof::GroupBy::Op
                           : run_                 ? prof::memory_grouping(run_->trace, prof::GroupBy::Name)
                                                  : prof::GroupBy::Layer;
  const QString chosen = allocators().contains(allocator_) ? allocator_ : QString();
  held_ = run_ ? prof::held_memory(run_->trace, by, chosen.toStdString()) : prof::HeldMemory();
  const auto named = run_ && run_->plan ? contents(run_->plan->plan, run_->trace) : std::map<prof::OpTag, MapBlock>();
  for (prof::MemoryHolder& row : held_.rows)
    if (const auto at = named.find(row.op); at != named.end())
      row.meaning = meaning_of(at->second.content);
    else
      row.meaning = meaning_of(content_of_phase(row.phase));
  holders_.setTable(with_columns(prof::holder_rows(held_.rows, held_.peak, to_string(by)), {"name", "bytes", "share", "blocks"}));
  const bool any = holders_.rowCount() > 0;
  holders_table_->setVisible(any), no_holders_->setVisible(!any);
  no_holders_->setText(tr("The allocator of this run does not report its blocks. An arena places them once, before the first step."));
  holders_pane_->setTitle(tr("Live at the peak"),
                          any ? tr("allocator %1").arg(QString::fromStdString(held_.allocator)) : QString());
}

void MemoryMapPanel::refreshBelow() {
  const bool held = below_ == Below::Best ? holders_.rowCount() > 0 : below_ != Below::Calls;
  tables_->setCurrentWidget(held ? holders_pane_ : calls_pane_);
  calls_.setTable(calls_table(run_));
  const bool any = calls_.rowCount() > 0;
  calls_table_->setVisible(any), no_calls_->setVisible(!any);
  const QString reason =
      isRecorded() ? tr("No allocator call was recorded.")
      : run_ ? tr("No allocator call was counted. An arena or a pool makes none in a step, and without a GPU there is none.")
             : tr("Click a run to see its allocator calls by op.");
  no_calls_->setText(reason);
  const auto& calls = run_ ? run_->allocator_calls : prof::AllocatorHistory();
  const double steps = run_ ? static_cast<double>(run_->stepsMade()) : 0;
  const double in_steps = static_cast<double>(calls.in_steps().calls());
  const QString all = count_text(static_cast<int64_t>(calls.all().calls()));
  QString note;
  if (any && (steps == 0 || in_steps == 0))
    note = tr("%1, none in a step").arg(all);
  else if (any)
    note = tr("%1 calls and %2 µs per step")
               .arg(fixed_text(in_steps / steps, 1), us_text(static_cast<double>(calls.in_steps().ns) * 1e-3 / steps));
  calls_pane_->setTitle(tr("Allocator calls"), note);
  const bool nothing = below_ == Below::Best && view_->map().by_op && !view_->map().empty() && in_steps == 0;  // the plan says all
  below_map_->setVisible(!nothing);
}

std::vector<MemoryPart> MemoryMapPanel::parts() const {
  std::vector<MemoryPart> parts;
  if (!held_.phases.empty() && isRecorded())
    for (const prof::MemoryHolder& phase : held_.phases) {
      const QString name = content_name(content_of_phase(phase.name), true);
      const auto same = std::ranges::find(parts, name, &MemoryPart::name);
      same == parts.end() ? parts.push_back({name, phase.bytes}) : static_cast<void>(same->bytes += phase.bytes);
    }
  else if (run_ && run_->plan)
    parts = parts_at_peak(view_->map());
  uint64_t all = 0;
  for (const MemoryPart& part : parts) all += part.bytes;
  std::erase_if(parts, [all](const MemoryPart& part) { return part.bytes * 100 < all; });  // under one percent
  return parts;
}

// How much, when and of what: "429.5 KiB at the peak of a step: all gradients. Kept between steps: weights 397.5 KiB".
void MemoryMapPanel::showFinding() {
  const MemoryMap& map = view_->map();
  if (map.empty()) return finding_->showResult(isRecorded() ? tr("No allocation was recorded") : tr("Nothing is placed yet"), tr("The peak of the memory in use and what holds it stand here."));
  const bool known = !map.by_op && held_.peak > 0;
  const uint64_t peak = known ? held_.peak : map.peak;
  const auto op = static_cast<size_t>(map.peak_x);
  const auto begun = [this](prof::TimeNs at) { return first_track(run_->marks(), prof::TrackKind::Steps) && run_->stepAt(at) > 0; };
  QStringList notes;
  const bool since = known && !(run_ && run_->plan);  // older blocks are not known
  QString when = since ? tr("Peak: %1") : tr("%1 at the peak");
  if (map.by_op && run_ && run_->plan && op < run_->plan->plan.ops.size()) {
    when = tr("%1 at the peak of a step");
    notes << tr("The peak is in op %1, %2.").arg(op).arg(QString::fromStdString(run_->plan->plan.ops[op].name));
  } else if (const auto at = known ? held_.peak_time : static_cast<prof::TimeNs>(map.peak_x); run_ && begun(at))
    when = (since ? tr("Peak in step %2: %1") : tr("%1 at the peak, in step %2")).arg("%1", count_text(static_cast<int64_t>(run_->stepAt(at))));
  const QString shares = shares_text(parts(), peak), kept = run_ && run_->plan ? sizes_text(kept_parts(run_->plan->plan)) : QString();
  notes << (known && held_.gap.known() ? gap_text(held_.gap) : reserve_text(map.reserved, peak));
  if (known && map.peak < peak) notes << tr("In the part that is shown: at most %1.").arg(bytes_text(static_cast<double>(map.peak)));
  if (map.by_op && run_) notes << ranks_text(*run_);
  notes << growth_text(map);
  if (const double times = static_cast<double>(map.sum_bytes) / static_cast<double>(std::max<uint64_t>(1, map.peak)); map.by_op && times >= 1.05)
    notes << tr("Buffers reuse memory: without reuse, a step needs %1.").arg(bytes_text(static_cast<double>(map.sum_bytes)));
  if (map.by_op && map.allocations == 0) notes << tr("The plan allocates nothing in a step.");
  if (const double all = known && isRecorded() ? prof::most_device_memory(run_->trace) : 0; all > static_cast<double>(peak))
    notes << tr("Older blocks such as weights are not counted; with them, libraries and the CUDA context, the GPU had up to %1 in use.").arg(bytes_text(all));
  else if (since)
    notes << tr("Older blocks such as weights are not counted.");
  notes.removeAll(QString());
  if (notes.isEmpty()) notes << tr("Empty in the map: free addresses.");  // the line keeps its height
  const QString size = short_bytes_text(static_cast<double>(peak));
  const QString bytes = since ? tr("%1 allocated by %2 while recording").arg(size, QString::fromStdString(held_.allocator)) : size;
  const QString before = since ? QStringLiteral("; ") : QStringLiteral(": ");
  finding_->showResult(when.arg(bytes) + (shares.isEmpty() ? QString() : before + shares) +
                           (kept.isEmpty() ? QString() : tr(". Kept between steps: %1").arg(kept)),
                       notes.join(' '));
}

void MemoryMapPanel::chooseBlock(const MapBlock& block) {
  if (!run_) return;
  if (block.buffer != BufferId::None)
    focus_->choose(BufferChoice{run_, block.buffer});
  else if (block.op != prof::kNoOp)
    focus_->choose(OpChoice{run_, block.op});
}

}  // namespace ws::app
