#include "app/pages/compare/compare_tables.h"

#include <QComboBox>
#include <QHeaderView>
#include <QRegularExpression>
#include <QTableView>
#include <QTableWidget>
#include <cmath>
#include <numeric>

#include "app/core/comparison/comparison_text.h"
#include "app/pages/compare/compare_samples.h"
#include "app/pages/compare/compare_table.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/base/safe_text.h"

namespace ws::app {
namespace {

constexpr int kNameWidth = 150, kRunWidth = 160, kNarrowRun = 72, kMeasureRow = 22, kLeastColumn = 44,
              kVerdictWidth = 98, kDifference = 3;  // a column for pairs

QString with_sign(double value, int decimals) {
  const QString text = fixed_text(value, decimals);
  return value > 0 && text.contains(QRegularExpression("[1-9]")) ? "+" + text : text;
}

QString cell_text(double value, int decimals) {
  return std::isnan(value) ? QStringLiteral("–") : fixed_text(value, decimals);
}

// A tracing cost within its noise has no number.
QString value_text(const MeasureValue& m) {
  const bool hidden = m.kind == MeasureKind::TracingCost && !m.value.known() && m.value.half_width > 0;
  return hidden ? QString::fromUtf8(kWithinNoise) : cell_text(m.value.value, m.decimals);
}

QString percent_text(double percent) {
  if (std::isnan(percent)) return QStringLiteral("–");
  if (percent >= 1000) return "×" + significant_text(1 + percent / 100);
  return with_sign(percent, 1) + " %";
}

QColor verdict_colour(Verdict verdict) {
  return verdict == Verdict::Better ? theme().better : verdict == Verdict::Worse ? theme().worse : theme().secondary;
}

QString verdict_mark(Verdict verdict) {
  return verdict == Verdict::Better        ? QStringLiteral("✓ ")
         : verdict == Verdict::Worse       ? QStringLiteral("▲ ")
         : is_quiet(verdict)               ? QStringLiteral("◌ ")
                                           : QString();
}

QString explained(const MeasureDelta& d, const MeasureValue& m) {
  QString text = QObject::tr("%1 %2").arg(with_sign(d.delta, m.decimals), QString::fromStdString(m.unit));
  if (d.noise > 0) text += QObject::tr(" (95 % interval: %1 to %2)").arg(with_sign(d.delta - d.noise, m.decimals), with_sign(d.delta + d.noise, m.decimals));
  if (d.verdict == Verdict::Neutral) return text + QObject::tr(": not judged, because more is neither better nor worse, or because the runs do different work");
  return text + ": " + (d.verdict == Verdict::NoiseUnknown ? QString::fromStdString(no_interval_text(d)) : QString::fromUtf8(verdict_text(d)));
}

QString head_of(const MeasureValue& m) {
  return QString::fromStdString(m.unit.empty() ? m.name : m.name + ", " + m.unit);
}

// Names of measures are never elided.
int widest_name(const QTableWidget& table) {
  const QFontMetrics metrics(ui_font(12));
  int width = kNameWidth;
  for (int row = 0; row < table.rowCount(); ++row)
    if (const auto* name = table.item(row, 0)) width = std::max(width, metrics.horizontalAdvance(name->text()) + 24);
  return width;
}

int widest_number(const QTableWidget& table, int column) {
  double width = kLeastColumn;
  for (int row = 0; row < table.rowCount(); ++row)
    if (const auto* cell = table.item(row, column))
      width = std::max(width, number_width(ui_font(12, 600), cell->text()) + 18);
  return static_cast<int>(std::ceil(width));
}

MeasureDelta delta_from_first(const ComparedRuns& compared, size_t run, const MeasureValue& first, const MeasureValue& other) {
  return compared_delta(*compared.figures.front(), *compared.figures[run], first, other);
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

CompareTables::CompareTables(QWidget* parent)
    : PagedPane(tr("Numbers"), parent),
      measures_(new CompareTable(0, 6, this)),
      kernels_(new CompareTable(0, 6, this)),
      choices_(new CompareTable(0, 2, this)),
      waits_(table_view(this, waits_model_, waits_sorter_, tr("Samples of an X-ray by difference"))),
      groups_(new QComboBox(this)) {
  style_table(*measures_, tr("Measures"));
  style_table(*kernels_, tr("Kernels by difference"));
  style_table(*choices_, tr("Settings that differ"));
  for (QTableWidget* table : {measures_, kernels_, choices_}) {
    table->setItemDelegate(new CompareDelegate(table));
    table->horizontalHeader()->setIconSize({15, 15});
  }
  kernels_->setTextElideMode(Qt::ElideMiddle);  // kernels of one template differ at the end of their names
  connect(measures_->horizontalHeader(), &QHeaderView::sectionResized, this, &CompareTables::fitRows);
  for (QTableWidget* table : {measures_, choices_})
    connect(table->horizontalHeader(), &QHeaderView::sectionResized, this, &CompareTables::elideHeads, Qt::QueuedConnection);
  measures_->viewport()->installEventFilter(this);
  addPage(tr("Measures"), measures_);
  addOption(addPage(tr("Kernels by Δ"), kernels_), groups_);
  setOptionVisible(groups_, false);
  groups_->setAccessibleName(tr("What a row stands for"));
  connect(groups_, &QComboBox::currentIndexChanged, this, [this] {
    group_ = groups_->currentData().toInt();
    fillKernels();
  });
  addPage(tr("Settings"), choices_);
  waits_page_ = addPage(tr("X-ray by Δ"), waits_);
  setPageVisible(waits_page_, false);
}

void CompareTables::setRuns(const ComparedRuns& compared) {
  runs_ = compared.runs.size();
  showMeasures(compared);
  showKernels(compared);
  showChoices(compared);
  showWaits(compared);
  elideHeads();
}

void CompareTables::showMeasures(const ComparedRuns& compared) {
  const auto& runs = compared.runs;
  const bool pair = runs.size() == 2;
  std::vector<std::pair<int, QString>> heads;
  for (const Run* run : runs) {
    const QString role = run == compared.baseline ? tr("baseline") : tr("current");
    heads.emplace_back(run->slot, pair ? role : run->title);
  }
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
  const std::vector<Measures> all = compared.measures();
  std::string group;
  for (size_t i = 0; !all.empty() && i < all[0].size(); ++i) {
    std::vector<MeasureValue> values;
    for (const Measures& run : all) values.push_back(run[i]);
    if (std::ranges::none_of(values, [](const MeasureValue& m) { return value_text(m) != QStringLiteral("–"); })) continue;
    if (values[0].group != group) add_section(*measures_, QString::fromStdString(group = values[0].group));
    const int row = measures_->rowCount();
    measures_->insertRow(row);
    measures_->setItem(row, 0, table_item(head_of(values[0])));
    pair ? showPairColumns(compared, row, values[0], values[1]) : showRunColumns(compared, row, values);
  }
  fitColumns();
}

// Run titles get all the available width; beyond that the table scrolls. Names and verdicts are never elided.
void CompareTables::fitColumns() {
  auto* header = measures_->horizontalHeader();
  for (int column = 0; column < measures_->columnCount(); ++column) measures_->setColumnHidden(column, false);
  header->setMinimumSectionSize(runs_ == 2 ? kLeastColumn : kNarrowRun);
  header->setSectionResizeMode(runs_ == 2 ? QHeaderView::Fixed : QHeaderView::Stretch);
  header->setSectionResizeMode(0, QHeaderView::Fixed);
  measures_->setColumnWidth(0, widest_name(*measures_));
  if (runs_ == 2) fitPairColumns();
  fitRows();
}

// Numbers are never elided. If not all columns fit, the difference is hidden first: the tooltip has it.
void CompareTables::fitPairColumns() {
  const int verdict = measures_->columnCount() - 1;
  measures_->setColumnWidth(verdict, kVerdictWidth);
  int left = measures_->viewport()->width() - measures_->columnWidth(0) - kVerdictWidth;
  std::vector<int> needs;
  for (int column = 1; column < verdict; ++column) needs.push_back(widest_number(*measures_, column));
  const bool all = std::accumulate(needs.begin(), needs.end(), 0) <= left;
  measures_->setColumnHidden(kDifference, !all);
  if (!all) needs[kDifference - 1] = 0;
  left -= std::accumulate(needs.begin(), needs.end(), 0);
  const int share = std::max(0, left / (all ? verdict - 1 : verdict - 2));
  for (int column = 1; column < verdict; ++column)
    if (all || column != kDifference) measures_->setColumnWidth(column, needs[static_cast<size_t>(column) - 1] + share);
}

bool CompareTables::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::Resize && runs_ == 2) fitPairColumns();
  return PagedPane::eventFilter(object, event);
}

// In a narrow table with three or more runs, the difference from the baseline is below the value, not beside it.
void CompareTables::fitRows() {
  const bool stacked = runs_ > 2 && measures_->columnWidth(measures_->columnCount() - 1) < kRunWidth;
  const int height = stacked ? CompareDelegate::kStackedHeight : kMeasureRow;
  for (int row = 0; row < measures_->rowCount(); ++row) {
    const QTableWidgetItem* name = measures_->item(row, 0);
    measures_->setRowHeight(row, name && name->data(kSectionRole).toBool() ? kMeasureRow : height);
  }
}

// A header signals a new column width before the column has it.
void CompareTables::elideHeads() {
  elide_run_heads(*measures_, 1, runs_ == 2);
  elide_run_heads(*choices_, 1);
}

void CompareTables::showPairColumns(const ComparedRuns& compared, int row, const MeasureValue& a, const MeasureValue& b) {
  const MeasureDelta d = delta_from_first(compared, 1, a, b);
  const bool quiet = is_quiet(d.verdict);
  const QString of_a = value_text(a), of_b = value_text(b);
  QString verdict = verdict_mark(d.verdict) + verdict_text(d);
  for (const auto& [run, value] : {std::pair{compared.runs[0], of_a}, {compared.runs[1], of_b}})
    if (value == QStringLiteral("–")) verdict = tr("not in %1").arg(run_letter(run->slot));
  // 0.0 and 0.0 can differ by a hundred percent of almost nothing.
  const bool looks_same = d.delta != 0 && of_a == of_b;
  QTableWidgetItem* cells[] = {table_item(of_a, true), table_item(of_b, true),
                               table_item(d.known() ? with_sign(d.delta, a.decimals) : "–", true),
                               table_item(d.known() && !looks_same && !quiet ? percent_text(d.percent) : "–", true),
                               table_item(verdict)};
  cells[1]->setData(kStrongRole, !quiet);
  for (QTableWidgetItem* each : cells)
    if (d.known()) each->setToolTip(explained(d, a));
  for (int i = 2; i < 4 && quiet; ++i) cells[i]->setData(kColourRole, theme().secondary);
  cells[4]->setData(kColourRole, verdict_colour(d.verdict));
  for (int i = 0; i < 5; ++i) measures_->setItem(row, 1 + i, cells[i]);
}

void CompareTables::showRunColumns(const ComparedRuns& compared, int row, const std::vector<MeasureValue>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    auto* cell = table_item(value_text(values[i]), true);
    if (const MeasureDelta d = delta_from_first(compared, i, values[0], values[i]); i > 0 && d.known()) {
      const bool same = is_quiet(d.verdict);
      const QString far = std::isnan(d.percent) ? with_sign(d.delta, values[i].decimals) : percent_text(d.percent);
      cell->setData(kBesideRole, verdict_mark(d.verdict) + (same ? verdict_text(d) : far));
      cell->setData(kColourRole, verdict_colour(d.verdict));
      cell->setToolTip(explained(d, values[0]));
    }
    measures_->setItem(row, 1 + static_cast<int>(i), cell);
  }
}

void CompareTables::showKernels(const ComparedRuns& compared) {
  baseline_ = compared.baseline ? run_letter(compared.baseline->slot) : QString("–");
  candidate_ = compared.candidate ? run_letter(compared.candidate->slot) : QString("–");
  deltas_ = compared.comparison.grouped;
  deltas_[prof::GroupBy::Name] = compared.comparison.kernels;
  offerGroups(compared.comparison);
  fillKernels();
}

// The chosen group is taken again as soon as runs have it.
void CompareTables::offerGroups(const Comparison& comparison) {
  const QSignalBlocker quiet(groups_);
  groups_->clear();
  for (const auto by : {prof::GroupBy::Name, prof::GroupBy::Op, prof::GroupBy::Block, prof::GroupBy::Layer, prof::GroupBy::Line})
    if (by == prof::GroupBy::Name || comparison.grouped.contains(by))
      groups_->addItem(tr("by %1").arg(text(group_word(comparison, by))), static_cast<int>(by));
  groups_->setCurrentIndex(std::max(0, groups_->findData(group_)));
  setOptionVisible(groups_, groups_->count() > 1);
}

void CompareTables::fillKernels() {
  const auto by = static_cast<prof::GroupBy>(groups_->currentData().toInt());
  const std::vector<prof::KernelDelta>& all = deltas_[by];
  const QString &a = baseline_, &b = candidate_;
  const QString group = groups_->currentText().section(' ', 1);  // behind "by"
  kernels_->setHorizontalHeaderLabels({group.left(1).toUpper() + group.mid(1), tr("%1 calls").arg(a), tr("%1 calls").arg(b), tr("%1, µs").arg(a),
                                       tr("%1, µs").arg(b), tr("%1 − %2, µs").arg(b, a)});
  kernels_->setRowCount(static_cast<int>(all.size()));
  for (int row = 0; row < kernels_->rowCount(); ++row) {
    const prof::KernelDelta& k = all[static_cast<size_t>(row)];
    QTableWidgetItem* cells[] = {table_item(QString::fromStdString(by == prof::GroupBy::Name ? prof::plain_kernel_name(k.name) : k.name)),
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

// Lines first, because a person changes lines; kernels without lines follow.
void CompareTables::showWaits(const ComparedRuns& compared) {
  const prof::StallComparison& stalls = compared.comparison.stalls;
  const bool any = compared.runs.size() == 2 && stalls.any();
  setPageVisible(waits_page_, any);
  if (!any) return;
  const bool lines = !stalls.lines.empty();
  Table table = with_columns(prof::stall_delta_table(lines ? stalls.lines : stalls.kernels, lines),
                             {lines ? "line" : "kernel", "a_share", "b_share", "delta", "change", "verdict", "a_reason", "b_reason"});
  const QString &a = baseline_, &b = candidate_;
  const QString names[] = {a, b, tr("%1 − %2").arg(b, a), tr("change"), tr("verdict"), tr("%1 waits most for").arg(a), tr("%1 waits most for").arg(b)};
  for (size_t i = 0; i < std::size(names); ++i) table.columns[i + 1].name = names[i].toStdString();
  waits_model_.setTable(std::move(table));
  fit_columns(*waits_, waits_model_);
}

void CompareTables::showChoices(const ComparedRuns& compared) {
  std::vector<const RunSpec*> specs;
  for (const auto& run : compared.figures) specs.push_back(run->choices());
  const std::vector<ChoiceRow> rows = differing_choices(specs);
  std::vector<std::pair<int, QString>> heads;
  for (const Run* run : compared.runs) heads.emplace_back(run->slot, run->title);
  choices_->setColumnCount(1 + static_cast<int>(compared.runs.size()));
  choices_->setHorizontalHeaderItem(0, new QTableWidgetItem(tr("Setting")));
  head_with_runs(*choices_, 1, heads);
  choices_->setRowCount(static_cast<int>(rows.size()));
  for (int row = 0; row < choices_->rowCount(); ++row) {
    const ChoiceRow& choice = rows[static_cast<size_t>(row)];
    auto* name = table_item(QString::fromUtf8(field(choice.key).label.data()));
    name->setToolTip(QString::fromStdString(choice.key));
    choices_->setItem(row, 0, name);
    for (size_t i = 0; i < choice.values.size(); ++i) {
      auto* cell = table_item(QString::fromStdString(choice_text(choice.values[i])));
      cell->setData(kStrongRole, i > 0 && choice.values[i] != choice.values[0]);
      if (i > 0 && choice.values[i] == choice.values[0]) cell->setData(kColourRole, theme().secondary);
      choices_->setItem(row, 1 + static_cast<int>(i), cell);
    }
  }
  auto* header = choices_->horizontalHeader();
  header->setMinimumSectionSize(kNameWidth);
  header->setSectionResizeMode(QHeaderView::Stretch);
  header->setSectionResizeMode(0, QHeaderView::Fixed);
  choices_->setColumnWidth(0, kNameWidth);
}

QByteArray CompareTables::measuresCsv(const ComparedRuns& compared) {
  const auto quoted = [](const std::string& text) { return QString::fromStdString(csv_cell(text)); };
  const auto number = [](double v) { return std::isnan(v) ? QString() : QString::number(v, 'g', 10); };
  QString out = "group,measure,unit";
  for (const auto& run : compared.figures) out += ',' + quoted(run->name);
  for (size_t i = 1; i < compared.figures.size(); ++i)
    out += ',' + quoted(compared.figures[i]->name + " - baseline") + ",noise,verdict";
  out += '\n';
  const std::vector<Measures> all = compared.measures();
  for (size_t row = 0; !all.empty() && row < all[0].size(); ++row) {
    const MeasureValue& first = all[0][row];
    out += quoted(first.group) + ',' + quoted(first.name) + ',' + quoted(first.unit);
    for (const Measures& run : all) out += ',' + number(run[row].value.value);
    for (size_t i = 1; i < all.size(); ++i) {
      const MeasureDelta d = delta_from_first(compared, i, first, all[i][row]);
      out += ',' + number(d.delta) + ',' + number(d.noise) + ',' + quoted(d.known() ? verdict_text(d) : "");
    }
    out += '\n';
  }
  return out.toUtf8();
}

QByteArray CompareTables::kernelsCsv(const Comparison& comparison) {
  return QByteArray::fromStdString(to_csv(with_columns(delta_rows(comparison.kernels), {"name", "a_count", "b_count", "a_us", "b_us", "delta_us"})));
}

}  // namespace ws::app
