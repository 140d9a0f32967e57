#include "app/pages/checks/checks_panel.h"

#include <QEvent>
#include <QHelpEvent>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/charts/plot.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/headlined.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr double kBand = 0.10;

// "NVIDIA H200, Warpsight 0.1, driver 580.159, CUDA 13.0"; checks of older versions of the program do not keep versions.
std::string used_text(const Proof& proof) {
  const std::string versions = versions_text(proof.versions);
  return proof.device + (versions.empty() ? "" : ", " + versions);
}

// In words; a proof of another version may have edits that are unknown here.
std::string in_words(const std::string& edits) try {
  return prof::edits_phrase(edits);
} catch (const Failure&) {
  return edits;
}

Table checks_table(const std::vector<Proof>& proofs, const ProvedPredictions& proved) {
  Table table;
  using Kind = Table::Kind;
  table.columns = {{.key = "edits", .name = "edits", .kind = Kind::Text, .tip = "what was predicted, as edits of the page What if"},
                   {.key = "run", .name = "run", .kind = Kind::Text},
                   {.key = "before_us", .name = "before", .unit = "µs", .kind = Kind::Time, .tip = "measured step without the change"},
                   {.key = "predicted_us", .name = "predicted", .unit = "µs", .kind = Kind::Time, .tip = "of a step"},
                   {.key = "measured_us", .name = "measured", .unit = "µs", .kind = Kind::Time, .tip = "of a step, with the settings that do the edits"},
                   {.key = "off", .name = "off", .unit = "%", .kind = Kind::Percent, .tip = "as a share of the measured step; below 0, the prediction was too short"}};
  std::string kind;
  for (const Proof& proof : proofs) {
    const std::string now = kind_of_edits(proof.edits);
    if (now != kind) table.rows.push_back({{Table::Cell(ws::with_capital(in_words(now)) + ": " + proved.off_text(now))}, Table::Row::Part::Heading});
    kind = now;
    Table::Cell edits(proof.edits);
    edits.tip = in_words(proof.edits) + "\n" + proof.changes + "\n" + used_text(proof);
    table.rows.push_back({{edits, proof.name, proof.before_us.value, proof.predicted_us.value, proof.after_us.value, proof.error()}});
  }
  return table;
}

}  // namespace

ChecksPanel::ChecksPanel(QWidget* parent) : QWidget(parent) { build(); }

void ChecksPanel::build() {
  auto* pane = new Pane(tr("Checked predictions"), this);
  pane->legend()->hide();
  body_ = new Headlined(pane);
  auto* sides = new QSplitter(Qt::Horizontal, body_);
  sides->setChildrenCollapsible(false);
  plot_ = new Plot(sides);
  plot_->setAccessibleName(tr("Error of each prediction against the measured step"));
  plot_->setLogX(true);
  plot_->installEventFilter(this);
  table_ = new QTableView(sides);
  table_->setModel(&model_);
  style_table(*table_, tr("Checked predictions by kind of edit"));
  table_->viewport()->installEventFilter(this);
  sides->addWidget(plot_), sides->addWidget(table_);
  sides->setSizes({360, 760});
  body_->setPicture(sides);
  pane->setBody(body_);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(pane);
  connect(plot_, &Plot::zoomChanged, this, &ChecksPanel::draw);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &ChecksPanel::draw);
}

void ChecksPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  fill(proved_predictions());
}

void ChecksPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && plot_) draw();
}

QString ChecksPanel::headline() const { return body_->headline(); }

void ChecksPanel::fill(const ProvedPredictions& proved) {
  proofs_.clear(), proof_of_row_.clear();
  for (const ProvedKind& kind : proved.by_kind()) {
    proof_of_row_.push_back(-1);
    for (const Proof& proof : proved.proofs())
      if (kind_of_edits(proof.edits) == kind.kind) proof_of_row_.push_back(static_cast<int>(proofs_.size())), proofs_.push_back(proof);
  }
  if (proofs_.empty()) return body_->showReason(tr("No prediction has been checked yet. Choose edits on the page What if, then press “Check it”."));
  body_->showResult(with_units(tr("Predictions were %1.").arg(text(errors_text(errors_of(proofs_))))),
                    with_units(tr("%1. Above 0, a prediction was too long. In the grey band it was at most 10 % off.").arg(with_capital(text(proved.where())))));
  model_.setTable(checks_table(proofs_, proved));
  table_->clearSpans();
  for (int row = 0; row < model_.rowCount(); ++row)
    if (model_.isHeading(row)) table_->setSpan(row, 0, 1, model_.columnCount());
  fitTable();
  draw();
}

// Few checks have more than two edits. The tip of such a cell has them all.
void ChecksPanel::fitTable() {
  constexpr int kTwoEdits = 180;
  fit_columns(*table_, model_);
  const int spare = table_->columnWidth(0) - kTwoEdits;
  if (spare > 0) table_->setColumnWidth(0, kTwoEdits), table_->setColumnWidth(1, table_->columnWidth(1) + spare);
}

bool ChecksPanel::isMarked(const Proof& proof) const {
  const QModelIndexList rows = table_->selectionModel()->selectedRows();
  if (rows.isEmpty()) return false;
  const auto row = static_cast<size_t>(rows.front().row());
  const auto index = static_cast<int>(&proof - proofs_.data());
  if (proof_of_row_[row] >= 0) return proof_of_row_[row] == index;
  return kind_of_edits(proof.edits) == kind_of_edits(proofs_[static_cast<size_t>(proof_of_row_[row + 1])].edits);
}

void ChecksPanel::draw() {
  plot_->clearGraphs();
  std::vector<const Proof*> marked, plain;
  double low = INFINITY, high = 0, most = 1.5 * kBand;
  for (const Proof& proof : proofs_) {
    (isMarked(proof) ? marked : plain).push_back(&proof);
    low = std::min(low, proof.after_us.value / 1.5), high = std::max(high, proof.after_us.value * 1.5);
    most = std::max(most, 1.2 * std::abs(proof.error()));
  }
  if (proofs_.empty()) return;
  drawBand(low, high);
  drawPoints(plain, theme().secondary, false);
  drawPoints(marked, theme().primary, true);
  plot_->xAxis->setLabel(tr("measured step, µs"));
  plot_->yAxis->setLabel(tr("off, %"));
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
    axis->setLabelColor(theme().secondary);
    axis->setLabelFont(ui_font(11));
  }
  if (!plot_->zoomed()) plot_->xAxis->setRange(low, high);
  plot_->yAxis->setRange(-100 * most, 100 * most);
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

// Between its edges a prediction is off by at most 10 % of the measured step.
void ChecksPanel::drawBand(double low, double high) {
  const auto line = [&](double off, const QPen& pen) {
    QCPGraph* graph = plot_->addGraph();
    graph->setPen(pen);
    graph->setData({low / 10, high * 10}, {100 * off, 100 * off}, true);
    return graph;
  };
  QColor fill = theme().secondary;
  fill.setAlphaF(0.15F);
  QCPGraph* upper = line(kBand, Qt::NoPen);
  upper->setBrush(fill);
  upper->setChannelFillGraph(line(-kBand, Qt::NoPen));
  line(0, QPen(theme().quiet, 1, Qt::DashLine));
}

void ChecksPanel::drawPoints(const std::vector<const Proof*>& proofs, const QColor& colour, bool filled) {
  QVector<double> measured, off;
  for (const Proof* proof : proofs) measured << proof->after_us.value, off << 100 * proof->error();
  QCPGraph* graph = plot_->addGraph();
  graph->setLineStyle(QCPGraph::lsNone);
  graph->setScatterStyle({QCPScatterStyle::ssCircle, QPen(colour, 1.4), filled ? colour : theme().base, filled ? 9.0 : 7.0});
  graph->setData(measured, off);
}

QString ChecksPanel::proofAt(QPointF at) const {
  constexpr double kNear = 9;
  const Proof* best = nullptr;
  double distance = kNear;
  for (const Proof& proof : proofs_) {
    const double x = plot_->xAxis->coordToPixel(proof.after_us.value), y = plot_->yAxis->coordToPixel(100 * proof.error());
    if (const double away = std::hypot(x - at.x(), y - at.y()); away <= distance) best = &proof, distance = away;
  }
  if (!best) return {};
  return tr("%1: %2. Before %3, predicted %4, measured %5: %6 % off. %7.")
      .arg(text(best->name), text(best->edits), step_time_text(best->before_us.value), step_time_text(best->predicted_us.value), step_time_text(best->after_us.value),
           fixed_text(100 * best->error(), 1), text(used_text(*best)));
}

bool ChecksPanel::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && watched == table_->viewport()) fitTable();
  if (event->type() == QEvent::ToolTip && watched == plot_) plot_->setToolTip(proofAt(static_cast<QHelpEvent*>(event)->pos()));
  return QWidget::eventFilter(watched, event);
}

}  // namespace ws::app
