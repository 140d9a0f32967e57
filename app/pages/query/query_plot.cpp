#include "app/pages/query/query_plot.h"

#include <QEvent>
#include <algorithm>
#include <cmath>

#include "app/text/qt_text.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr size_t kMostBars = 40, kMostSeries = 8;
constexpr int kLongestName = 32;  // letters beside a bar

bool is_text(const Table& table, int column) { return table.columns[static_cast<size_t>(column)].kind == Table::Kind::Text; }

bool has_numbers(const Table& table, int column) {
  return !is_text(table, column) &&
         std::ranges::any_of(table.rows, [&](const Table::Row& row) { return row.cells[static_cast<size_t>(column)].known(); });
}

int last_number(const Table& table) {
  for (int c = static_cast<int>(table.columns.size()) - 1; c >= 0; --c)
    if (has_numbers(table, c)) return c;
  return -1;
}

int first_text(const Table& table) {
  for (int c = 0; c < static_cast<int>(table.columns.size()); ++c)
    if (is_text(table, c)) return c;
  return -1;
}

int chosen_x(const Table& table, int y) {
  if (const int names = first_text(table); names >= 0 && table.rows.size() <= kMostBars) return names;
  for (int c = 0; c < static_cast<int>(table.columns.size()); ++c)
    if (c != y && has_numbers(table, c)) return c;
  return -1;
}

// Rows with other texts beside the numbers are other series: a curve for each run.
QString series_name(const Table& table, size_t row, int names) {
  return names < 0 ? QString() : text(cell_text(table, row, static_cast<size_t>(names)));
}

void add_point(QuerySeries& series, double x, double y) {
  series.line = series.x.empty() || (series.line && x >= series.x.back());
  series.x.push_back(x), series.y.push_back(y);
}

void take_series(const Table& table, QueryPicture& picture) {
  const int names = first_text(table);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const auto& cells = table.rows[r].cells;
    const double y = cells[static_cast<size_t>(picture.y)].number();
    const double x = picture.x < 0 ? static_cast<double>(r) : cells[static_cast<size_t>(picture.x)].number();
    if (std::isnan(x) || std::isnan(y)) continue;
    const QString name = series_name(table, r, names);
    auto series = std::ranges::find(picture.series, name, &QuerySeries::name);
    if (series == picture.series.end() && picture.series.size() == kMostSeries) {
      picture.left_out = QObject::tr("Only the first %1 curves are drawn.").arg(kMostSeries);
      continue;
    }
    if (series == picture.series.end()) series = picture.series.insert(series, {name, {}, {}});
    add_point(*series, x, y);
  }
}

void take_bars(const Table& table, QueryPicture& picture) {
  if (table.rows.size() > kMostBars) picture.left_out = QObject::tr("Only the first %1 rows are drawn.").arg(kMostBars);
  QuerySeries& bars = picture.series.emplace_back();
  for (size_t r = 0; r < std::min(table.rows.size(), kMostBars); ++r) {
    const double y = table.rows[r].cells[static_cast<size_t>(picture.y)].number();
    if (std::isnan(y)) continue;
    const QString name = text(cell_text(table, r, static_cast<size_t>(picture.x)));
    picture.names.push_back(name.size() > kLongestName ? name.left(kLongestName - 1) + QStringLiteral("…") : name);
    bars.x.push_back(static_cast<double>(bars.x.size())), bars.y.push_back(y);
  }
}

}  // namespace

QueryPicture query_picture(const Table& table, int x, int y) {
  QueryPicture picture;
  if (table.columns.empty()) {
    picture.why_empty = QObject::tr("The answer of a query is drawn here.");
    return picture;
  }
  picture.y = y >= 0 && has_numbers(table, y) ? y : last_number(table);
  if (picture.y < 0) {
    picture.why_empty = QObject::tr("The answer has no column of numbers to draw.");
    return picture;
  }
  picture.x = x >= 0 ? x : chosen_x(table, picture.y);
  if (picture.x >= 0 && is_text(table, picture.x))
    take_bars(table, picture);
  else
    take_series(table, picture);
  return picture;
}

QueryPlot::QueryPlot(QWidget* parent) : Plot(parent) {
  setAccessibleName(tr("Plot of the answer"));
  connect(this, &Plot::zoomChanged, this, [this] {
    if (!zoomed()) rescaleAxes();
    replot(rpQueuedReplot);
  });
  setPicture(query_picture({}), {});
}

void QueryPlot::setPicture(QueryPicture picture, const Table& table) {
  const auto name = [&](int column) { return column < 0 ? tr("row") : text(table.columns[static_cast<size_t>(column)].name); };
  picture_ = std::move(picture);
  x_name_ = picture_.y < 0 ? QString() : name(picture_.x), y_name_ = picture_.y < 0 ? QString() : name(picture_.y);
  forgetZoom();
  draw();
}

void QueryPlot::changeEvent(QEvent* event) {
  Plot::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) draw();
}

QColor QueryPlot::colourOf(size_t series) const {
  const auto run = run_slots_.find(picture_.series[series].name);
  return theme().run[(run == run_slots_.end() ? series : static_cast<size_t>(run->second)) % std::size(theme().run)];
}

void QueryPlot::draw() {
  clearPlottables();
  setEmptyText(picture_.why_empty);
  setLogY(false);  // the ticker of numbers
  yAxis->setRangeReversed(false);
  for (QCPAxis* axis : {xAxis, yAxis}) axis->setLabelColor(theme().secondary), axis->setLabelFont(ui_font(11));
  const bool bars = !picture_.names.empty();
  xAxis->setLabel(bars ? y_name_ : x_name_);
  yAxis->setLabel(bars ? QString() : y_name_);
  if (bars) drawBars();
  else drawSeries();
  showKey();
  replot(rpQueuedReplot);
}

void QueryPlot::drawBars() {
  auto ticker = QSharedPointer<QCPAxisTickerText>(new QCPAxisTickerText);
  for (size_t i = 0; i < picture_.names.size(); ++i) ticker->addTick(static_cast<double>(i), picture_.names[i]);
  yAxis->setTicker(ticker);
  yAxis->setRangeReversed(true);  // the first row on top
  auto* bars = new QCPBars(yAxis, xAxis);
  bars->setWidth(0.7);
  bars->setPen(Qt::NoPen);
  bars->setBrush(theme().primary);
  const QuerySeries& values = picture_.series.front();
  bars->setData(QVector<double>(values.x.begin(), values.x.end()), QVector<double>(values.y.begin(), values.y.end()), true);
  rescaleAxes();
  yAxis->setRange(-0.6, static_cast<double>(picture_.names.size()) - 0.4);
  if (xAxis->range().lower > 0) xAxis->setRangeLower(0);
}

void QueryPlot::drawSeries() {
  for (size_t i = 0; i < picture_.series.size(); ++i) {
    const QuerySeries& series = picture_.series[i];
    QCPGraph* graph = addGraph();
    graph->setName(series.name);
    graph->setPen(QPen(colourOf(i), 1.7));
    const bool joined = series.line && series.x.size() > 2;
    graph->setLineStyle(joined ? QCPGraph::lsLine : QCPGraph::lsNone);
    if (!joined) graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, colourOf(i), 4));
    graph->setData(QVector<double>(series.x.begin(), series.x.end()), QVector<double>(series.y.begin(), series.y.end()), joined);
  }
  rescaleAxes();
}

void QueryPlot::showKey() {
  legend->setVisible(picture_.names.empty() && picture_.series.size() > 1);
  legend->setFont(ui_font(11));
  legend->setTextColor(theme().text);
  legend->setBrush(theme().base);
  legend->setBorderPen(QPen(theme().border));
  axisRect()->insetLayout()->setInsetAlignment(0, Qt::AlignTop | Qt::AlignRight);
}

}  // namespace ws::app
