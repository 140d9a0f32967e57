#include "app/panels/memory_map_panel.h"

#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include "app/panels/theme.h"
#include "app/panels/units.h"

namespace ws::app {
namespace {

constexpr int kMapRefreshMs = 1000;
constexpr int64_t kStepsShown = 2;

Figure bytes_figure(const QString& name, uint64_t bytes, const QString& note = {}) {
  const QString text = bytes_text(static_cast<double>(bytes));
  const auto space = text.lastIndexOf(' ');
  return {name, text.left(space), text.mid(space + 1) + note};
}

}  // namespace

MemoryMapPanel::MemoryMapPanel(Selection* selection, QWidget* parent)
    : QWidget(parent),
      selection_(selection),
      figures_(new FigureStrip(this)),
      plan_(new PlanPanel(selection, this)),
      pane_(new Pane(tr("Memory map"), this)),
      view_(new MemoryMapView(this)),
      sizes_(new HistogramView(tr("Sizes of the blocks"), this)) {
  pane_->legend()->hide();
  source_button_ = option_button(tr("What the map shows"), pane_);
  auto* menu = new QMenu(source_button_);
  menu->addAction(tr("The plan where there is one"), this, [this] { setSource(Source::Best); });
  menu->addAction(tr("The arena's plan"), this, [this] { setSource(Source::Plan); });
  menu->addAction(tr("What was allocated, last steps"), this, [this] { setSource(Source::Events); });
  source_button_->setMenu(menu);
  source_button_->setText(tr("Plan"));
  pane_->addOption(source_button_);
  pane_->setBody(view_);
  plan_->setNarrow(true);
  auto* right = new QSplitter(Qt::Vertical, this);
  right->addWidget(pane_);
  right->addWidget(sizes_);
  right->setSizes({600, 100});
  auto* columns = new QSplitter(Qt::Horizontal, this);
  columns->addWidget(plan_);
  columns->addWidget(right);
  columns->setSizes({420, 900});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(5);
  column->addWidget(figures_);
  column->addWidget(columns, 1);
  connect(view_, &MemoryMapView::blockChosen, this, &MemoryMapPanel::chooseBlock);
  connect(view_, &MemoryMapView::cursorMoved, this, &MemoryMapPanel::showFigures);
  connect(plan_, &PlanPanel::opChosen, this, [this](int op) {
    if (view_->map().by_op) view_->setCursorX(op + 0.5), showFigures();
  });
  refresh_.setInterval(kMapRefreshMs);
  connect(&refresh_, &QTimer::timeout, this, [this] {
    if (isVisible() && run_ && run_->live() && !view_->map().by_op) refresh();
  });
  refresh_.start();
}

void MemoryMapPanel::setRun(Run* run) {
  if (run_) disconnect(run_, nullptr, this, nullptr);
  run_ = run;
  plan_->setRun(run);
  if (run)
    connect(run, &Run::changed, this, [this] {
      if (isVisible() && view_->map().empty()) refresh();
    });
  if (isVisible()) refresh();
}

void MemoryMapPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void MemoryMapPanel::setSource(Source source) { source_ = source, refresh(); }

void MemoryMapPanel::refresh() {
  MemoryMap map;
  const auto cursor = view_->cursorX();
  const bool was_by_op = view_->map().by_op;
  if (run_ && run_->plan && source_ != Source::Events) map = plan_map(run_->plan->plan);
  if (run_ && map.empty() && source_ != Source::Plan) map = event_map(run_->trace, kStepsShown);
  source_button_->setText(map.empty() || map.by_op ? tr("Plan") : tr("Allocated"));
  pane_->setTitle(tr("Memory map"),
                  map.empty() ? QString()
                  : map.by_op ? tr("address × lifetime · a buffer has the colour of the op that writes it")
                              : tr("address × time · last %1 steps · colour of the op that asked").arg(kStepsShown));
  std::vector<double> kib;
  for (const MapBlock& block : map.blocks) kib.push_back(static_cast<double>(block.bytes) / 1024);
  HistogramData bins = histogram_of(kib, 40, true);
  bins.caption = tr("sizes of %1 blocks · log axis").arg(kib.size());
  bins.low_text = bytes_text(1024 * bins.low), bins.high_text = bytes_text(1024 * bins.high);
  sizes_->setData(std::move(bins), theme().quiet);
  view_->setMap(std::move(map), run_ ? run_->slot : 0);
  if (cursor && was_by_op == view_->map().by_op && was_by_op) view_->setCursorX(*cursor);
  showFigures();
}

void MemoryMapPanel::showFigures() {
  const MemoryMap& map = view_->map();
  if (map.empty()) return figures_->setFigures({{tr("memory"), QStringLiteral("—"), tr("nothing placed yet")}});
  std::vector<Figure> figures;
  if (map.reserved)
    figures.push_back(bytes_figure(tr("reserved"), map.reserved, map.by_op ? tr(", one block") : QString()));
  figures.push_back(bytes_figure(tr("peak used"), map.peak,
                                 map.by_op ? tr(" at op %1").arg(static_cast<int>(map.peak_x)) : QString()));
  if (map.by_op)
    figures.push_back({tr("lost to holes at the peak"), fixed_text(holes_at(map, map.peak_x) * 100, 1), "%"});
  if (map.by_op)
    figures.push_back(bytes_figure(
        tr("without reuse"), map.sum_bytes,
        tr(", %1× as much")
            .arg(fixed_text(static_cast<double>(map.sum_bytes) / static_cast<double>(std::max<uint64_t>(1, map.peak)),
                            1))));
  figures.push_back({map.by_op ? tr("allocator calls a step") : tr("allocations shown"),
                     count_text(static_cast<int64_t>(map.allocations)),
                     {}});
  if (run_ && run_->progress)
    figures.push_back(bytes_figure(tr("outside the map"), static_cast<uint64_t>(run_->progress->memory.parameter_bytes),
                                   tr(" parameters and data")));
  if (const auto x = view_->cursorX())
    figures.push_back(
        bytes_figure(tr("at the cursor"), used_at(map, *x),
                     map.by_op ? tr(", %1 % holes").arg(fixed_text(holes_at(map, *x) * 100, 0)) : QString()));
  figures_->setFigures(std::move(figures));
}

void MemoryMapPanel::chooseBlock(const MapBlock& block) {
  if (!run_) return;
  if (block.buffer != BufferId::None)
    selection_->choose(BufferChoice{run_, block.buffer});
  else if (block.op != prof::kNoOp)
    selection_->choose(OpChoice{run_, block.op});
}

}  // namespace ws::app
