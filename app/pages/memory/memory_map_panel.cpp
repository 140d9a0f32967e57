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

#include "app/widgets/glossary.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/workspace/rank_count.h"

namespace ws::app {
namespace {

constexpr int kMapRefreshMs = 1000;
constexpr int64_t kStepsShown = 2;

Figure bytes_figure(const QString& name, const QString& text, const QString& note = {}) {
  const auto space = text.lastIndexOf(' ');
  return {name, text.left(space), text.mid(space + 1) + note};
}

// The figures and the axis of what is in use have the unit of the peak.
struct PeakUnit {
  ByteUnit unit;
  QString operator()(uint64_t bytes) const { return bytes_in(static_cast<double>(bytes), unit); }
};

bool has_phases(const MemoryMap& map) {
  return std::ranges::any_of(map.blocks, [](const MapBlock& block) { return block.phase != BlockPhase::None; });
}

QString entry(const QColor& colour, const QString& name) { return QString("<span style='color:%1'>■</span> %2").arg(colour.name(), name); }

// The kinds of ops that write the blocks of a map.
QString writer_legend(const MemoryMap& map) {
  QStringList parts;
  for (size_t m = 0; m < prof::kMeanings; ++m)
    if (const auto meaning = static_cast<prof::Meaning>(m); std::ranges::find(map.blocks, meaning, &MapBlock::meaning) != map.blocks.end())
      parts << entry(theme().of(meaning), ws::app::meaning_name(meaning));
  return parts.join("&nbsp;&nbsp; ");
}

QString phase_legend() {
  const std::pair<BlockPhase, QString> phases[] = {{BlockPhase::Forward, QObject::tr("activations (forward)")},
                                                   {BlockPhase::Backward, QObject::tr("gradients (backward)")},
                                                   {BlockPhase::Optimizer, QObject::tr("optimizer")},
                                                   {BlockPhase::None, QObject::tr("weights, data, other")}};
  QStringList parts;
  for (const auto& [phase, name] : phases)
    parts << entry(theme().of(meaning_of(phase)), name);
  return parts.join("&nbsp;&nbsp; ");
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
      figures_(new FigureStrip(this)),
      plan_(new PlanPanel(focus, this)),
      pane_(new Pane(tr("Memory map"), this)),
      view_(new MemoryMapView(this)),
      sizes_(new HistogramView(tr("Sizes of the blocks"), this)),
      over_time_(new MemoryTimeView(this)),
      calls_table_(new QTableView(this)),
      holders_table_(new QTableView(this)) {
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
  allocator_button_ = option_button(tr("Whose memory the page shows"), pane_);
  allocator_button_->setMenu(new QMenu(allocator_button_));
  pane_->addOption(allocator_button_);
  pane_->setBody(view_);
  plan_->setNarrow(true);
  auto* right = new QSplitter(Qt::Vertical, this);
  right->addWidget(pane_);
  right->addWidget(buildBelow());
  right->setSizes({520, 190});
  auto* columns = new QSplitter(Qt::Horizontal, this);
  columns->addWidget(plan_);
  columns->addWidget(right);
  columns->setSizes({420, 900});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(5);
  column->addWidget(figures_);
  auto* words = new WordLabel(this);
  words->setFont(ui_font(11));
  words->setForegroundRole(QPalette::PlaceholderText);
  words->setContentsMargins(12, 0, 12, 0);
  words->setWords(tr("In use: bytes of live blocks. [Reserved|Used and reserved]: what the allocator took from the driver, in use or not. Device memory: all that the GPU "
                     "holds, with CUDA itself and other programs."));
  column->addWidget(words);
  column->addWidget(columns, 1);
  connect(view_, &MemoryMapView::blockChosen, this, &MemoryMapPanel::chooseBlock);
  connect(view_, &MemoryMapView::cursorMoved, this, &MemoryMapPanel::showFigures);
  connect(view_, &MemoryMapView::foldWanted, this, [this](const QString& block, bool folded) {
    if (run_) run_->setFolded(block.toStdString(), folded);
  });
  connect(plan_, &PlanPanel::opChosen, this, [this](int op) {
    if (view_->map().by_op) view_->setCursorX(op + 0.5), showFigures();
  });
  refresh_.setInterval(kMapRefreshMs);
  connect(&refresh_, &QTimer::timeout, this, [this] {
    if (!isVisible() || !run_ || !run_->live()) return;
    view_->map().by_op ? refreshBelow() : refresh();
  });
  refresh_.start();
}

QWidget* MemoryMapPanel::buildBelow() {
  auto* over = new QSplitter(Qt::Vertical, this);
  over->addWidget(over_time_);
  over->addWidget(sizes_);
  over->setSizes({130, 70});
  tables_ = new QStackedWidget(this);
  tables_->addWidget(buildHolders());
  tables_->addWidget(buildCalls());
  auto* below = new QSplitter(Qt::Horizontal, this);
  below->addWidget(over);
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
  style_table(*calls_table_, tr("Calls of the driver's allocator, by op"));
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

void MemoryMapPanel::showLegend() { phases_->setText(has_phases(view_->map()) ? phase_legend() : writer_legend(view_->map())); }

bool MemoryMapPanel::isRecorded() const { return run_ && !run_->hasChoices(); }
void MemoryMapPanel::setSource(Source source) { source_ = source; refresh(); }
void MemoryMapPanel::setBelow(Below below) {
  below_ = below;
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
  const bool named = run_ && run_->plan && !map.by_op;
  if (named) name_contents(map, contents(run_->plan->plan, run_->trace));
  const QString note =
      map.empty()       ? QString()
      : map.by_op       ? tr("address × lifetime · a buffer has the colour of the op that writes it")
      : has_phases(map) ? tr("address × time · colour of the phase in which a block was made")
      : named           ? tr("address × time · last %1 steps · a block has the colour of the op that writes it").arg(map.steps)
      : map.steps > 0   ? tr("address × time · last %1 steps · colour of the allocating op").arg(map.steps)
                        : tr("address × time · colour of the allocating op, if known");
  const int rank = run_ && !map.empty() && !map.by_op ? memory_rank(run_->trace) : -1;
  const QString whose = rank >= 0 ? tr("rank %1 · ").arg(rank) : QString();
  pane_->setTitle(tr("Memory map"), whose + note);
  std::vector<double> kib;
  for (const MapBlock& block : map.blocks) kib.push_back(static_cast<double>(block.bytes) / 1024);
  HistogramData bins = histogram_of(kib, 40, true);
  bins.caption = tr("sizes of %1 blocks · log axis").arg(count_text(static_cast<int64_t>(kib.size())));
  bins.low_text = bytes_text(1024 * bins.low), bins.high_text = bytes_text(1024 * bins.high);
  sizes_->setData(std::move(bins), theme().quiet);
  FragmentationCurve curve;
  if (map.by_op)
    curve = plan_fragmentation(map);
  else if (run_)
    curve = event_fragmentation(run_->trace, source);
  over_time_->setCurve(std::move(curve), run_ ? run_->slot : 0);
  over_time_->parentWidget()->setVisible(!map.empty());  // both pictures below the map
  const bool recorded = isRecorded();
  source_button_->setVisible(!recorded);
  view_->setMap(std::move(map), run_ ? run_->slot : 0,
                recorded ? tr("No allocation was recorded. Trace level collectives records none. On the CPU, PyTorch reports "
                              "its blocks only to its own profiler (profile_memory=True).")
                         : tr("Nothing is placed yet. Train with the arena to see its plan, or with tracing on to see allocations."));
  showLegend();
  refreshBelow();
  if (cursor && was_by_op == view_->map().by_op && was_by_op) view_->setCursorX(*cursor);
  showFigures();
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
    if (const auto at = named.find(row.op); at != named.end()) row.meaning = at->second.meaning;
  holders_.setTable(with_columns(prof::holder_rows(held_.rows, held_.peak, to_string(by)), {"name", "bytes", "share", "blocks"}));
  const bool any = holders_.rowCount() > 0;
  holders_table_->setVisible(any), no_holders_->setVisible(!any);
  no_holders_->setText(tr("The allocator of this run does not report its blocks. An arena places them once, before the first step."));
  holders_pane_->setTitle(tr("Live at the peak"),
                          any ? tr("%1 of %2").arg(bytes_text(static_cast<double>(held_.peak)), QString::fromStdString(held_.allocator))
                              : QString());
}

void MemoryMapPanel::refreshBelow() {
  refreshHolders();
  const bool held = below_ == Below::Best ? holders_.rowCount() > 0 : below_ != Below::Calls;
  tables_->setCurrentWidget(held ? holders_pane_ : calls_pane_);
  calls_.setTable(calls_table(run_));
  const bool any = calls_.rowCount() > 0;
  calls_table_->setVisible(any), no_calls_->setVisible(!any);
  const QString reason =
      isRecorded() ? tr("No call of cudaMalloc or cudaFree was recorded.")
      : run_ ? tr("No driver allocation was counted. An arena or a pool makes none in a step, and without a GPU there is none.")
             : tr("Click a run to see its calls of cudaMalloc and cudaFree, by op.");
  no_calls_->setText(reason);
  const auto& calls = run_ ? run_->allocator_calls : prof::AllocatorHistory();
  const double steps = run_ ? static_cast<double>(run_->stepsMade()) : 0;
  const double in_steps = static_cast<double>(calls.in_steps().calls());
  const QString all = count_text(static_cast<int64_t>(calls.all().calls()));
  QString note;
  if (any && (steps == 0 || in_steps == 0))
    note = tr("%1, none in a step").arg(all);
  else if (any)
    note = tr("%1 and %2 µs a step")
               .arg(fixed_text(in_steps / steps, 1), us_text(static_cast<double>(calls.in_steps().ns) * 1e-3 / steps));
  calls_pane_->setTitle(tr("Allocator calls"), note);
}

// The peak of the live blocks, what was taken from the driver for them, and what lies between the two.
void MemoryMapPanel::addPeaks(std::vector<Figure>& figures) const {
  const PeakUnit text{byte_unit(static_cast<double>(view_->map().peak))};
  figures.push_back(bytes_figure(tr("peak of live blocks"), text(held_.peak), tr(" of %1, made while recording").arg(QString::fromStdString(held_.allocator))));
  const prof::MemoryGap& gap = held_.gap;
  if (!gap.known()) return;
  figures.push_back(bytes_figure(tr("taken from the driver then"), text(gap.taken),
                                 gap.most_taken > gap.taken ? tr(", at most %1").arg(text(gap.most_taken)) : tr(", its peak")));
  figures.push_back(bytes_figure(tr("taken, but unused"), text(gap.beside + gap.empty),
                                 tr(": %1 beside live blocks, %2 in empty segments").arg(text(gap.beside), text(gap.empty))));
}

void MemoryMapPanel::showFigures() {
  const MemoryMap& map = view_->map();
  if (map.empty())
    return figures_->setFigures({{tr("memory"), QStringLiteral("—"), isRecorded() ? tr("no allocation recorded") : tr("nothing placed")}});
  std::vector<Figure> figures;
  const PeakUnit text{byte_unit(static_cast<double>(map.peak))};
  const int ranks = run_ && map.by_op ? rank_count(*run_) : 1;  // the plan of each rank is the same
  if (map.reserved)
    figures.push_back(bytes_figure(ranks > 1 ? tr("reserved on each of %1 ranks").arg(ranks) : tr("reserved"), text(map.reserved), map.by_op ? tr(", one block") : QString()));
  const bool known = !map.by_op && held_.peak > 0;
  if (known) addPeaks(figures);
  if (!known || map.peak < held_.peak)
    figures.push_back(bytes_figure(known ? tr("peak in the part shown") : tr("peak used"), text(map.peak),
                                   map.by_op ? tr(" at op %1").arg(static_cast<int>(map.peak_x)) : QString()));
  if (const double all = run_ ? run_->peakBytes() : 0; ranks > 1 && all > 0)
    figures.push_back(bytes_figure(tr("peak of all %1 ranks").arg(ranks), bytes_text(all), {}));
  if (map.by_op)
    figures.push_back({tr("unused between blocks at the peak"), fixed_text(holes_at(map, map.peak_x) * 100, 1),
                       tr("% of the bytes that they span")});
  if (const double times = static_cast<double>(map.sum_bytes) / static_cast<double>(std::max<uint64_t>(1, map.peak));
      map.by_op && times >= 1.05)
    figures.push_back(bytes_figure(tr("without reuse"), text(map.sum_bytes), tr(", %1× as much").arg(fixed_text(times, 1))));
  figures.push_back({map.by_op ? tr("allocator calls a step") : tr("allocations shown"),
                     count_text(static_cast<int64_t>(map.allocations)),
                     {}});
  if (run_ && run_->progress)
    figures.push_back(bytes_figure(tr("outside the map"), bytes_text(static_cast<double>(run_->progress->memory.parameter_bytes)),
                                   tr(" parameters and data")));
  if (const auto x = view_->cursorX())
    figures.push_back(
        bytes_figure(tr("at the cursor"), text(used_at(map, *x)),
                     map.by_op ? tr(", %1 % unused between blocks").arg(fixed_text(holes_at(map, *x) * 100, 0)) : QString()));
  figures_->setFigures(std::move(figures));
}

void MemoryMapPanel::chooseBlock(const MapBlock& block) {
  if (!run_) return;
  if (block.buffer != BufferId::None)
    focus_->choose(BufferChoice{run_, block.buffer});
  else if (block.op != prof::kNoOp)
    focus_->choose(OpChoice{run_, block.op});
}

}  // namespace ws::app
