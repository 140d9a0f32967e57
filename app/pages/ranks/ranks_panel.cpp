#include "app/pages/ranks/ranks_panel.h"

#include <QEvent>
#include <QHeaderView>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/pages/ranks/lateness_view.h"
#include "app/pages/ranks/rank_figure_view.h"
#include "app/text/qt_text.h"
#include "app/widgets/headlined.h"
#include "app/widgets/pane.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

QString how_to_get_ranks() {
  return QObject::tr("To compare several, record a program that torchrun starts (File › Record a program…), train with "
                     "several GPUs (Setup › Execution › GPUs), or open the traces of all ranks at once.");
}

QByteArray lateness_csv(const prof::RankReport& report) {
  QByteArray out = "step";
  for (const prof::RankRow& row : report.ranks) out += ",rank_" + QByteArray::number(row.rank) + "_late_us";
  for (size_t s = 0; s < report.steps.size(); ++s) {
    out += '\n' + QByteArray::number(static_cast<qlonglong>(report.steps[s]));
    for (size_t r = 0; r < report.ranks.size(); ++r) {
      const float late = report.late(r, s);
      out += ',' + (std::isnan(late) ? QByteArray() : QByteArray::number(static_cast<double>(late), 'g', 7));
    }
  }
  return out + '\n';
}

}  // namespace

RanksPanel::RanksPanel(QWidget* parent) : QWidget(parent) {
  build();
  connect(&reader_, &RankReader::changed, this, [this] { showReport(*reader_.report()); });
  connect(&reader_, &RankReader::failed, this, [this](const QString& problem) { emit said(problem, true); });
  connect(map_, &LatenessView::stepChosen, this, [this](int index) { wantStep(index, false); });
  connect(map_, &LatenessView::stepOpened, this, [this](int index) { wantStep(index, true); });
  connect(collectives_table_->selectionModel(), &QItemSelectionModel::currentChanged, this,
          &RanksPanel::chooseCollective);
  showReport({});
}

void RanksPanel::build() {
  rows_ = new QSplitter(Qt::Vertical, this);
  rows_->setChildrenCollapsible(false);
  buildTop();
  below_ = new QWidget(rows_);
  tables_ = new QSplitter(Qt::Horizontal, below_);
  ranks_pane_ = new Pane(tr("By rank"), tables_);
  ranks_table_ = addTable(ranks_pane_, ranks_model_, ranks_sorter_, tr("Ranks"));
  collectives_pane_ = new Pane(tr("Collectives"), tables_);
  collectives_table_ = addTable(collectives_pane_, collectives_model_, collectives_sorter_, tr("Collectives"));
  auto* figures = figures_ = new QSplitter(Qt::Horizontal, below_);
  arrivals_pane_ = new Pane(tr("Arrival by rank"), figures);
  arrivals_ = new RankFigureView(tr("Arrival by rank"), {220, 120}, arrivals_pane_);
  arrivals_pane_->setBody(arrivals_);
  bandwidth_pane_ = new Pane(tr("Bandwidth"), figures);
  bandwidth_ = new RankFigureView(tr("Bandwidth against message size"), {220, 120}, bandwidth_pane_);
  bandwidth_pane_->setBody(bandwidth_);
  for (Pane* pane : {ranks_pane_, collectives_pane_, arrivals_pane_, bandwidth_pane_}) pane->legend()->hide();
  for (QSplitter* row : {tables_, figures_}) {
    row->setChildrenCollapsible(false);
    connect(row, &QSplitter::splitterMoved, this, [this, row] { (row == tables_ ? figures_ : tables_)->setSizes(row->sizes()); });
  }
  auto* parts = parts_ = new QSplitter(Qt::Vertical, below_);
  parts->setChildrenCollapsible(false);
  parts->addWidget(tables_);
  parts->addWidget(figures);
  parts->setSizes({235, 205});
  auto* inner = new QVBoxLayout(below_);
  inner->setContentsMargins(0, 0, 0, 0);
  inner->addWidget(parts);
  rows_->addWidget(top_);
  rows_->addWidget(below_);
  rows_->setStretchFactor(1, 1);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(rows_);
}

void RanksPanel::buildTop() {
  top_ = new Pane(tr("Ranks"), this);
  top_->legend()->hide();
  body_ = new Headlined(top_);
  map_ = new LatenessView(body_);
  body_->setPicture(map_);
  top_->setBody(body_);
  addExportMenu();
}

QTableView* RanksPanel::addTable(Pane* pane, TableModel& model, TableSorter& sorter, const QString& name) {
  QTableView* table = table_view(pane, model, sorter, name);
  table->viewport()->installEventFilter(this);
  table->setTextElideMode(Qt::ElideMiddle);  // names often begin alike
  pane->setBody(table);
  connect(table->horizontalHeader(), &QHeaderView::sortIndicatorChanged, this, &RanksPanel::fitColumns);
  return table;
}

void RanksPanel::addExportMenu() {
  export_ = option_button(tr("Export figures and tables"), top_);
  export_->setText(tr("Export"));
  auto* menu = new QMenu(export_);
  menu->addAction(tr("Lateness…"), this, [this] { exportChart(mapPicture()); });
  menu->addAction(tr("Arrival by rank…"), this, [this] { exportChart(arrivalsPicture()); });
  QAction* arrivals = menu->actions().back();
  QAction* bandwidth = menu->addAction(tr("Bandwidth…"), this, [this] { exportChart(bandwidthPicture()); });
  menu->addSeparator();
  menu->addAction(tr("Ranks as CSV…"), this, [this] { exportTable("ranks.csv", ranks_table(report(), true)); });
  menu->addAction(tr("Collectives as CSV…"), this, [this] { exportTable("collectives.csv", collectives_table(report(), true)); });
  connect(menu, &QMenu::aboutToShow, this, [this, arrivals, bandwidth] {
    arrivals->setText(arrivals_pane_->title() + QString::fromUtf8("…"));
    bandwidth->setVisible(has_bandwidth(map_->report()));
  });
  export_->setMenu(menu);
  top_->addOption(export_);
}

const prof::RankReport& RanksPanel::report() const { return map_->report(); }
QString RanksPanel::headline() const { return body_->headline(); }

void RanksPanel::setRun(Run* run) {
  if (reader_.run() != run) {
    if (reader_.run()) disconnect(reader_.run(), nullptr, this, nullptr);
    if (run)
      connect(run, &Run::changed, this, [this] {
        if (isVisible()) reader_.refreshSoon();
      });
    map_->chooseStep(-1);
  }
  reader_.setRun(run);
  if (isVisible()) refresh();
}

void RanksPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
  fitColumns();
}

// A scroll bar that appears also takes width.
bool RanksPanel::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) fitColumns();
  return QWidget::eventFilter(watched, event);
}

void RanksPanel::refresh() {
  reader_.refresh();
  if (!report().any()) fill();
}

void RanksPanel::showReport(prof::RankReport report) {
  const bool same = report.ranks.size() == this->report().ranks.size();
  map_->setReport(std::move(report));
  fill();
  if (!same) fitHeights();
}

// Other ranks: the map gets the height that it asks for, and the straggler is in sight.
void RanksPanel::fitHeights() {
  for (QWidget* part = map_->parentWidget(); part != rows_; part = part->parentWidget()) part->layout()->activate();
  constexpr int kHeads = 28 + 26 + 12, kRow = 22, kLeast = 120, kFigures = 190;  // titles, heads and edges; what the figures need
  const auto rows = static_cast<int>(std::max(report().ranks.size(), report().collectives.size() + 1));
  const bool few = has_step_of_ranks(report());
  const int least = top_->sizeHint().height(), most = least - map_->sizeHint().height() + map_->mostHeight();
  const int left_over = few ? height() - std::max(kLeast, kHeads + kRow * rows) - kFigures : 0;  // few ranks: for the bars by step
  const int top = std::clamp(left_over, least, std::max(least, most));
  rows_->setSizes({top, std::max(1, height() - top)});
  rows_->setStretchFactor(0, few), rows_->setStretchFactor(1, !few);
  const bool hosts = std::ranges::any_of(report().ranks, [](const prof::RankRow& row) { return !row.host.empty(); });
  const int below = std::max(1, height() - top), tables = std::clamp(kHeads + kRow * rows, kLeast, std::max(kLeast, below / 2));
  parts_->setSizes({tables, std::max(1, below - tables)});
  for (QSplitter* columns : {tables_, figures_}) columns->setSizes(hosts ? QList{500, 500} : QList{470, 530});  // names of collectives are long
  const auto row = std::ranges::find(report().ranks, report().straggler.rank, &prof::RankRow::rank);
  if (row == report().ranks.end()) return ranks_table_->clearSelection();
  const auto at = static_cast<int>(row - report().ranks.begin());
  ranks_table_->setCurrentIndex(ranks_sorter_.mapFromSource(ranks_model_.index(at, 0)));
}

QString RanksPanel::notes() const {
  QStringList notes;
  if (report().straggler.rank >= 0 && !report().straggler.of_median) notes << tr("Lost time: how late the rank comes, shared out over all steps. The tables can show longer waits, because other work of the GPU goes on meanwhile.");
  if (const int step = map_->chosenStep(); step >= 0) notes << text(step_text(report(), static_cast<size_t>(step)));
  for (const auto& lines : {prof::more_cost_texts(report()), report().notes})
    for (const std::string& line : lines) notes << text(line);
  return notes.join(' ');
}

void RanksPanel::showFinding() { body_->showResult(text(rank_headline(report())), notes()); }

void RanksPanel::fill() {
  const prof::RankReport& shown = report();
  const bool any = shown.any(), compared = any && !shown.steps.empty();
  below_->setVisible(compared);
  export_->setEnabled(compared);
  const QString why_empty = reader_.reading() ? tr("Comparing the ranks…")
                            : any             ? text(rank_headline(shown)) + ' ' + notes()
                            : reader_.run()   ? tr("This run has one rank.\n%1").arg(how_to_get_ranks())
                                              : tr("Click a run of several ranks.\n%1").arg(how_to_get_ranks());
  if (compared)
    showFinding();
  else
    body_->showReason(why_empty);
  top_->setTitle(tr("Ranks"), any ? text(rank_caption(shown)) : QString());
  const QString unit = text(unit_of(shown).name());
  ranks_pane_->setTitle(tr("By rank"), unit);
  collectives_pane_->setTitle(tr("Collectives"), tr("%1 · %2").arg(unit, text(collectives_note(shown))), unit);
  const bool steps = has_step_of_ranks(shown);
  steps ? arrivals_pane_->setTitle(tr("The median step of each rank"), {}) : arrivals_pane_->setTitle(tr("Arrival by rank"), tr("steps by latest arrival after the first rank"));
  bandwidth_pane_->setTitle(tr("Bandwidth"), tr("bus GB/s against message size"), tr("bus GB/s"));
  ranks_model_.setTable(ranks_table(shown, false));
  collectives_model_.setTable(collectives_table(shown, false));
  arrivals_->setFigure([this](double width, double height, const FigureInk& ink) {
    return has_step_of_ranks(report()) ? rank_steps_figure(report(), width, height, ink) : arrivals_figure(report(), width, height, ink);
  });
  bandwidth_pane_->setVisible(has_bandwidth(shown));
  chooseCollective();
  fitColumns();
}

void RanksPanel::fitColumns() {
  fit_columns(*ranks_table_, ranks_model_);
  fit_columns(*collectives_table_, collectives_model_);
}

void RanksPanel::chooseCollective() {
  const int row = collectives_sorter_.mapToSource(collectives_table_->currentIndex()).row();
  bandwidth_->setFigure([this, row](double width, double height, const FigureInk& ink) {
    return bandwidth_figure(report(), width, height, ink, row);
  });
}

void RanksPanel::wantStep(int index, bool show) {
  if (reader_.run() && static_cast<size_t>(index) < std::min(report().steps.size(), report().step_begins.size()))
    emit stepWanted(index, show);
  if (!report().steps.empty()) showFinding();
}

QString RanksPanel::caption() const {
  const QString sentence = text(rank_headline(report())) + "\n" + text(rank_caption(report()));
  return reader_.run() ? sentence + "\n" + run_caption(*reader_.run()) : sentence;
}

ChartPicture RanksPanel::mapPicture() const {
  return {"lateness", caption(), map_->size(),
          [this](QPainter& painter, const QRectF& area) { map_->render(painter, area); },
          [this] { return lateness_csv(report()); }};
}

ChartPicture RanksPanel::arrivalsPicture() const {
  return {has_step_of_ranks(report()) ? "rank-steps" : "arrivals",
          caption(),
          arrivals_->size(),
          [this](QPainter& painter, const QRectF& area) { arrivals_->render(painter, area); },
          {}};
}

ChartPicture RanksPanel::bandwidthPicture() const {
  return {"bandwidth",
          caption(),
          bandwidth_->size(),
          [this](QPainter& painter, const QRectF& area) { bandwidth_->render(painter, area); },
          {}};
}

void RanksPanel::exportChart(ChartPicture chart) {
  try {
    if (const QString done = ask_and_write(this, std::move(chart)); !done.isEmpty()) emit said(done, false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

void RanksPanel::exportTable(const QString& name, const Table& table) {
  try {
    if (const QString done = ask_and_write(this, name, table); !done.isEmpty()) emit said(done, false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

}  // namespace ws::app
