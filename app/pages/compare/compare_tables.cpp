// The tables of the Compare tab: measures, kernels and choices of the runs, against the baseline.
#include <QHeaderView>
#include <QRegularExpression>
#include <QTableWidget>
#include <cmath>

#include "app/pages/compare/bars_view.h"
#include "app/pages/compare/compare_tab.h"
#include "app/pages/compare/compare_table.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "profiling/analysis/kernel_table.h"

namespace ws::app {
namespace {

constexpr int kNameWidth = 150, kRunWidth = 160, kNarrowRun = 72, kMeasureRow = 22, kLeastColumn = 40,
              kVerdictWidth = 108;

// As millions what has more digits than a column has room for.
QString figure_text(double value, int decimals) {
  return std::abs(value) < 1e6 ? fixed_text(value, decimals) : significant_text(value, 4);
}

QString with_sign(double value, int decimals) {
  const QString text = figure_text(value, decimals);
  return value > 0 && text.contains(QRegularExpression("[1-9]")) ? "+" + text : text;
}

QString cell_text(double value, int decimals) {
  return std::isnan(value) ? QStringLiteral("–") : figure_text(value, decimals);
}

QString relative_text(double percent) {
  if (std::isnan(percent)) return QStringLiteral("–");
  if (percent >= 1000) return "×" + significant_text(1 + percent / 100);
  return with_sign(percent, 1) + " %";
}

QColor verdict_colour(Verdict verdict) {
  return verdict == Verdict::Better ? theme().better : verdict == Verdict::Worse ? theme().worse : theme().secondary;
}

QString explained(const MeasureDelta& d, const MeasureValue& m) {
  QString text = QObject::tr("%1 %2").arg(with_sign(d.delta, m.decimals), m.unit);
  if (d.noise > 0) text += QObject::tr(" ± %1 (95 % interval)").arg(fixed_text(d.noise, m.decimals + 1));
  const QString verdict = verdict_text(d.verdict);
  return verdict.isEmpty() ? text : text + ": " + verdict;
}

// Names of measures are never cut.
int widest_name(const QTableWidget& table) {
  const QFontMetrics metrics(ui_font(12));
  int width = kNameWidth;
  for (int row = 0; row < table.rowCount(); ++row)
    if (const auto* name = table.item(row, 0)) width = std::max(width, metrics.horizontalAdvance(name->text()) + 24);
  return width;
}

void add_section(QTableWidget& table, const QString& name) {
  const int row = table.rowCount();
  table.insertRow(row);
  auto* head = table_item(name);
  head->setData(kSectionRole, true);
  table.setItem(row, 0, head);
  table.setSpan(row, 0, 1, table.columnCount());
}

}  // namespace

// A column for each run.
std::vector<std::vector<MeasureValue>> CompareTab::measureColumns() const {
  const std::vector<Run*> runs = ordered();
  const double reached = shared_accuracy({runs.begin(), runs.end()});
  std::vector<std::vector<MeasureValue>> all;
  for (const Run* run : runs) all.push_back(measures_of(*run, sample(run), reached));
  share_units(all);
  return all;
}

void CompareTab::showMeasures() {
  const std::vector<Run*> runs = ordered();
  const bool pair = runs.size() == 2;
  std::vector<std::pair<int, QString>> heads;
  for (const Run* run : runs) heads.emplace_back(run->slot, pair ? QString() : run->title);
  measures_->clearSpans();
  measures_->setRowCount(0);
  measures_->setColumnCount(1 + static_cast<int>(runs.size()) + (pair ? 3 : 0));
  measures_->setHorizontalHeaderItem(0, new QTableWidgetItem(tr("Measure")));
  head_with_runs(*measures_, 1, heads);
  if (pair) {
    const QString a = run_letter(runs[0]->slot), b = run_letter(runs[1]->slot);
    const QString texts[] = {tr("%1 − %2").arg(b, a), tr("Δ %"), tr("verdict")};
    for (int i = 0; i < 3; ++i) measures_->setHorizontalHeaderItem(3 + i, new QTableWidgetItem(texts[i]));
  }
  const auto all = measureColumns();
  QString group;
  for (size_t i = 0; !all.empty() && i < all[0].size(); ++i) {
    std::vector<MeasureValue> values;
    for (const auto& column : all) values.push_back(column[i]);
    if (std::all_of(values.begin(), values.end(), [](const MeasureValue& m) { return std::isnan(m.value); })) continue;
    if (values[0].group != group) add_section(*measures_, group = values[0].group);
    const int row = measures_->rowCount();
    measures_->insertRow(row);
    measures_->setItem(row, 0, table_item(values[0].name + (values[0].unit.isEmpty() ? "" : ", " + values[0].unit)));
    pair ? showPairColumns(row, values) : showRunColumns(row, values);
  }
  auto* header = measures_->horizontalHeader();
  // The titles of the runs have all the room there is; beyond that the table scrolls.
  header->setMinimumSectionSize(pair ? kLeastColumn : kNarrowRun);
  header->setSectionResizeMode(QHeaderView::Stretch);
  header->setSectionResizeMode(0, QHeaderView::Fixed);
  measures_->setColumnWidth(0, widest_name(*measures_));
  if (pair) {  // nor are verdicts
    header->setSectionResizeMode(measures_->columnCount() - 1, QHeaderView::Fixed);
    measures_->setColumnWidth(measures_->columnCount() - 1, kVerdictWidth);
  }
  fitMeasures();
}

// Three runs or more in a narrow table: how far a value is from the baseline's stands below it, not beside it.
void CompareTab::fitMeasures() {
  const bool stacked = runs_.size() > 2 && measures_->columnWidth(measures_->columnCount() - 1) < kRunWidth;
  const int height = stacked ? CompareDelegate::kStackedHeight : kMeasureRow;
  for (int row = 0; row < measures_->rowCount(); ++row) {
    const QTableWidgetItem* name = measures_->item(row, 0);
    measures_->setRowHeight(row, name && name->data(kSectionRole).toBool() ? kMeasureRow : height);
  }
}

void CompareTab::showPairColumns(int row, const std::vector<MeasureValue>& values) {
  const MeasureDelta d = delta_of(values[0], values[1]);
  const bool known = !std::isnan(d.delta), quiet = d.verdict == Verdict::WithinNoise;
  // 0.0 and 0.0 differ by a hundred percent of next to nothing.
  const bool looks_same =
      d.delta != 0 && cell_text(values[0].value, values[0].decimals) == cell_text(values[1].value, values[1].decimals);
  QTableWidgetItem* cells[] = {table_item(cell_text(values[0].value, values[0].decimals), true),
                               table_item(cell_text(values[1].value, values[1].decimals), true),
                               table_item(known ? with_sign(d.delta, values[0].decimals) : "–", true),
                               table_item(known && !looks_same ? relative_text(d.relative) : "–", true),
                               table_item(verdict_mark(d.verdict) + verdict_text(d.verdict))};
  cells[1]->setData(kStrongRole, !quiet);
  for (QTableWidgetItem* each : cells)
    if (known) each->setToolTip(explained(d, values[0]));
  for (int i = 2; i < 4 && quiet; ++i) cells[i]->setData(kColourRole, theme().secondary);
  cells[4]->setData(kColourRole, verdict_colour(d.verdict));
  for (int i = 0; i < 5; ++i) measures_->setItem(row, 1 + i, cells[i]);
}

void CompareTab::showRunColumns(int row, const std::vector<MeasureValue>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    auto* cell = table_item(cell_text(values[i].value, values[i].decimals), true);
    if (i > 0) {
      const MeasureDelta d = delta_of(values[0], values[i]);
      if (!std::isnan(d.delta)) {
        const bool same = d.verdict == Verdict::WithinNoise;
        const QString far = std::isnan(d.relative) ? with_sign(d.delta, values[i].decimals) : relative_text(d.relative);
        cell->setData(kBesideRole, verdict_mark(d.verdict) + (same ? tr("noise") : far));
        cell->setData(kColourRole, verdict_colour(d.verdict));
        cell->setToolTip(explained(d, values[0]));
      }
    }
    measures_->setItem(row, 1 + static_cast<int>(i), cell);
  }
}

void CompareTab::showKernels() {
  const QString a = baseline_ ? run_letter(baseline_->slot) : QString("–"),
                b = candidate_ ? run_letter(candidate_->slot) : QString("–");
  kernels_->setHorizontalHeaderLabels({tr("Kernel"), tr("%1 calls").arg(a), tr("%1 calls").arg(b), tr("%1, µs").arg(a),
                                       tr("%1, µs").arg(b), tr("%1 − %2, µs").arg(b, a)});
  kernels_->setRowCount(static_cast<int>(comparison_.kernels.size()));
  for (int row = 0; row < kernels_->rowCount(); ++row) {
    const prof::KernelDelta& k = comparison_.kernels[static_cast<size_t>(row)];
    QTableWidgetItem* cells[] = {table_item(QString::fromStdString(prof::plain_kernel_name(k.name))),
                                 table_item(fixed_text(k.a_count, 1), true),
                                 table_item(fixed_text(k.b_count, 1), true),
                                 table_item(fixed_text(k.a_us, 2), true),
                                 table_item(fixed_text(k.b_us, 2), true),
                                 table_item(with_sign(k.delta_us(), 2), true)};
    cells[0]->setToolTip(QString::fromStdString(k.name));
    if (std::abs(k.delta_us()) >= 0.005)
      cells[5]->setData(kColourRole, k.delta_us() < 0 ? theme().better : theme().worse);
    for (int column = 0; column < 6; ++column) kernels_->setItem(row, column, cells[column]);
  }
  auto* header = kernels_->horizontalHeader();
  header->setSectionResizeMode(QHeaderView::Interactive);
  header->setSectionResizeMode(0, QHeaderView::Stretch);
  for (int column = 1; column < 6; ++column) kernels_->setColumnWidth(column, column == 5 ? 84 : 64);
}

void CompareTab::showSpec() {
  const std::vector<Run*> runs = ordered();
  const std::vector<ChoiceRow> rows = differing_choices({runs.begin(), runs.end()});
  std::vector<std::pair<int, QString>> heads;
  for (const Run* run : runs) heads.emplace_back(run->slot, run->title);
  spec_->setColumnCount(1 + static_cast<int>(runs.size()));
  spec_->setHorizontalHeaderItem(0, new QTableWidgetItem(tr("Choice")));
  head_with_runs(*spec_, 1, heads);
  spec_->setRowCount(static_cast<int>(rows.size()));
  for (int row = 0; row < spec_->rowCount(); ++row) {
    const ChoiceRow& choice = rows[static_cast<size_t>(row)];
    auto* name = table_item(QString::fromUtf8(field(choice.key).label.data()));
    name->setToolTip(QString::fromStdString(choice.key));
    spec_->setItem(row, 0, name);
    for (size_t i = 0; i < choice.values.size(); ++i) {
      auto* cell = table_item(QString::fromStdString(choice.values[i]));
      cell->setData(kStrongRole, i > 0 && choice.values[i] != choice.values[0]);
      if (i > 0 && choice.values[i] == choice.values[0]) cell->setData(kColourRole, theme().secondary);
      spec_->setItem(row, 1 + static_cast<int>(i), cell);
    }
  }
  auto* header = spec_->horizontalHeader();
  header->setMinimumSectionSize(kNameWidth);
  header->setSectionResizeMode(QHeaderView::Stretch);
  header->setSectionResizeMode(0, QHeaderView::Fixed);
  spec_->setColumnWidth(0, kNameWidth);
}

void CompareTab::showBars() {
  std::vector<BarRun> bars;
  for (const Run* run : ordered())
    bars.push_back({run->slot, run->title, sample(run).parts, peak_bytes(*run), driver_calls(*run)});
  bars_->setRuns(std::move(bars));
}

QByteArray CompareTab::measuresCsv() const {
  const auto quoted = [](QString text) { return '"' + text.replace('"', "\"\"") + '"'; };
  const std::vector<Run*> runs = ordered();
  QString out = "group,measure,unit";
  for (const Run* run : runs) out += ',' + quoted(run->title);
  for (size_t i = 1; i < runs.size(); ++i) out += ',' + quoted(runs[i]->title + " - baseline") + ",noise,verdict";
  out += '\n';
  const auto all = measureColumns();
  const auto number = [](double v) { return std::isnan(v) ? QString() : QString::number(v, 'g', 10); };
  for (size_t row = 0; !all.empty() && row < all[0].size(); ++row) {
    const MeasureValue& first = all[0][row];
    out += quoted(first.group) + ',' + quoted(first.name) + ',' + quoted(first.unit);
    for (const auto& column : all) out += ',' + number(column[row].value);
    for (size_t i = 1; i < all.size(); ++i) {
      const MeasureDelta d = delta_of(first, all[i][row]);
      out += ',' + number(d.delta) + ',' + number(d.noise) + ',' + quoted(verdict_text(d.verdict));
    }
    out += '\n';
  }
  return out.toUtf8();
}

}  // namespace ws::app
