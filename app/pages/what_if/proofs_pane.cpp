#include "app/pages/what_if/proofs_pane.h"

#include <QEvent>
#include <QHelpEvent>
#include <QLabel>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/charts/plot.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kBand = 0.10;

Table kinds_table(const ProvedPredictions& proved) {
  Table table;
  using Kind = Table::Kind;
  table.columns = {{.key = "edits", .name = "edits", .kind = Kind::Text, .tip = "what was predicted"},
                   {.key = "proofs", .name = "checks", .kind = Kind::Count},
                   {.key = "median", .name = "median", .unit = "%", .kind = Kind::Percent, .tip = "half of the predictions were off by less, as a share of the measured step"},
                   {.key = "worst", .name = "worst", .unit = "%", .kind = Kind::Percent}};
  for (const ProvedKind& one : proved.by_kind())
    table.rows.push_back({{one.kind, one.errors.proofs, one.errors.median, one.errors.worst}});
  return table;
}

}  // namespace

ProofsPane::ProofsPane(QWidget* parent) : Pane(tr("Checked predictions"), parent) {
  legend()->hide();
  auto* body = new QWidget(this);
  plot_ = new Plot(body);
  plot_->setAccessibleName(tr("Measured against predicted steps"));
  plot_->setLogX(true), plot_->setLogY(true);
  plot_->installEventFilter(this);
  errors_ = new QLabel(body);
  errors_->setFont(ui_font(11));
  errors_->setWordWrap(true);
  errors_->setForegroundRole(QPalette::PlaceholderText);
  errors_->setContentsMargins(8, 0, 8, 0);
  table_ = table_view(body, model_, sorter_, tr("Errors of predictions by kind of edit"));
  table_->viewport()->installEventFilter(this);
  column_ = new QVBoxLayout(body);
  column_->setContentsMargins(0, 0, 0, 0), column_->setSpacing(2);
  column_->addWidget(plot_, 3);
  column_->addWidget(errors_);
  column_->addWidget(table_, 2);
  setBody(body);
  connect(plot_, &Plot::zoomChanged, this, &ProofsPane::draw);
}

void ProofsPane::addNote(QLabel* note) {
  note->setContentsMargins(8, 2, 8, 0);
  column_->insertWidget(notes_++, note);
}

void ProofsPane::setProofs(const ProvedPredictions& proved) {
  proofs_ = proved.proofs();
  setTitle(tr("Checked predictions"), proofs_.empty() ? QString() : tr("%1 · how far they were off").arg(proofs_.size()), QString::number(proofs_.size()));
  errors_->setText(tr("%1. %2.").arg(with_capital(text(errors_text(errors_of(proofs_)))), with_capital(text(proved.where()))));
  errors_->setVisible(!proofs_.empty());
  table_->setVisible(!proofs_.empty());
  model_.setTable(kinds_table(proved));
  fitTable();
  plot_->setEmptyText(proofs_.empty() ? tr("No prediction has been checked yet. Add an edit, such as “no sync”, then press “Check it”.") : QString());
  draw();
}

// The names matter most: a narrow table leaves out the worst errors.
void ProofsPane::fitTable() {
  constexpr int kAllColumns = 330, kWorst = 3;
  table_->setColumnHidden(kWorst, table_->viewport()->width() < kAllColumns);
  fit_columns(*table_, model_);
}

void ProofsPane::mark(const Proof& proof) {
  marked_ = proof;
  draw();
}

void ProofsPane::draw() {
  plot_->clearGraphs();
  QVector<double> predicted, measured;
  for (const Proof& proof : proofs_) predicted << proof.predicted_us.value, measured << proof.after_us.value;
  const QVector<double> all = proofs_.empty() ? QVector<double>{10, 1000} : predicted + measured;
  const double low = *std::ranges::min_element(all) / 1.5, high = *std::ranges::max_element(all) * 1.5;
  drawBand(low, high);
  drawPoints(predicted, measured, theme().secondary, false);
  if (marked_) drawPoints({marked_->predicted_us.value}, {marked_->after_us.value}, theme().primary, true);
  plot_->xAxis->setLabel(tr("predicted, µs"));
  plot_->yAxis->setLabel(tr("measured, µs"));
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
    axis->setLabelColor(theme().secondary);
    axis->setLabelFont(ui_font(11));
    if (axis == plot_->yAxis || !plot_->zoomed()) axis->setRange(low, high);
  }
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

// Between its edges a prediction is off by at most 10 % of the measured step.
void ProofsPane::drawBand(double low, double high) {
  const auto line = [&](double factor, const QPen& pen) {
    QCPGraph* graph = plot_->addGraph();
    graph->setPen(pen);
    graph->setData({low / 10, high * 10}, {low / 10 * factor, high * 10 * factor}, true);
    return graph;
  };
  QColor fill = theme().secondary;
  fill.setAlphaF(0.15F);
  QCPGraph* upper = line(1 / (1 - kBand), Qt::NoPen);
  upper->setBrush(fill);
  upper->setChannelFillGraph(line(1 / (1 + kBand), Qt::NoPen));
  line(1, QPen(theme().quiet, 1, Qt::DashLine));
}

void ProofsPane::drawPoints(const QVector<double>& predicted, const QVector<double>& measured, const QColor& colour, bool filled) {
  QCPGraph* graph = plot_->addGraph();
  graph->setLineStyle(QCPGraph::lsNone);
  graph->setScatterStyle({QCPScatterStyle::ssCircle, QPen(colour, 1.4), filled ? colour : theme().base, filled ? 9.0 : 6.0});
  graph->setData(predicted, measured);
}

QString ProofsPane::proofAt(QPointF at) const {
  constexpr double kNear = 9;
  const Proof* best = nullptr;
  double distance = kNear;
  for (const Proof& proof : proofs_) {
    const double x = plot_->xAxis->coordToPixel(proof.predicted_us.value), y = plot_->yAxis->coordToPixel(proof.after_us.value);
    if (const double away = std::hypot(x - at.x(), y - at.y()); away <= distance) best = &proof, distance = away;
  }
  if (!best) return {};
  return tr("%1: %2. Before %3, predicted %4, measured %5: %6 % off. %7.")
      .arg(text(best->name), text(best->edits), step_time_text(best->before_us.value), step_time_text(best->predicted_us.value), step_time_text(best->after_us.value),
           fixed_text(100 * best->error(), 1), text(best->device));
}

bool ProofsPane::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && watched == table_->viewport()) fitTable();
  if (event->type() == QEvent::ToolTip && watched == plot_) plot_->setToolTip(proofAt(static_cast<QHelpEvent*>(event)->pos()));
  return Pane::eventFilter(watched, event);
}

}  // namespace ws::app
