#include "app/pages/experiments/trial_table.h"

#include <QHeaderView>
#include <cmath>

#include "app/text/units.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

enum Column { kChoice, kTime, kSpread, kGain, kThroughput, kFirstLoss, kLastLoss, kAccuracy, kCalls, kPeak, kRuns };

constexpr int kNumberWidth = 92, kSpreadWidth = 116, kRunsWidth = 50, kChoiceWidth = 216, kLeastChoice = 190;
// The least important columns are hidden first.
constexpr Column kLeastFirst[] = {kRuns, kCalls, kPeak, kLastLoss, kThroughput, kFirstLoss, kGain};

Column column_of(Outcome outcome) {
  constexpr Column kColumns[] = {kTime, kThroughput, kFirstLoss, kLastLoss, kAccuracy, kCalls, kPeak};
  return kColumns[static_cast<size_t>(outcome)];  // in the order of the outcomes
}

QString column_title(int column, bool two_lines) {
  using Q = QObject;
  const QString titles[] = {Q::tr("combination"),  Q::tr("µs per step"),  Q::tr("spread"),    Q::tr("gain"),
                            Q::tr("samples/s"),    Q::tr("first loss"), Q::tr("batch loss, last"), Q::tr("test accuracy, %"),
                            Q::tr("allocator calls"), Q::tr("peak memory"),  Q::tr("runs")};
  QString title = titles[column];
  if (!two_lines) return title;
  const qsizetype middle = title.size() / 2, left = title.lastIndexOf(' ', middle), right = title.indexOf(' ', middle);
  const qsizetype space = left < 0 || (right >= 0 && right - middle < middle - left) ? right : left;
  if (space > 0) title[space] = '\n';
  return title;
}

QTableWidgetItem* cell(const QString& text, bool number) {
  auto* made = new QTableWidgetItem(text);
  if (number) made->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  return made;
}

QString number(const TrialResult& trial, Outcome outcome) {
  const auto m = measured(trial, outcome);
  if (m && outcome == Outcome::Peak) return bytes_text(m->median * (1 << 20));
  return m ? outcome_text(outcome, m->median) : QStringLiteral("–");
}

}  // namespace

TrialTable::TrialTable(QWidget* parent) : QTableWidget(0, kRuns + 1, parent) {
  style_table(*this, tr("Numbers of the experiment"));
  horizontalHeader()->setMinimumSectionSize(24);
}

void TrialTable::setResult(const ExperimentResult& result) {
  double first = 0;
  clearSpans();
  setRowCount(static_cast<int>(result.trials.size()));
  for (int row = 0; row < rowCount(); ++row) {
    const TrialResult& trial = result.trials[static_cast<size_t>(row)];
    if (const auto time = measured(trial, Outcome::StepTime); time && first == 0) first = time->median;
    fillRow(row, trial, first);
  }
  fitColumns();
}

void TrialTable::setOutcome(Outcome outcome) {
  outcome_ = outcome;
  fitColumns();
}

void TrialTable::resizeEvent(QResizeEvent* event) {
  fitColumns();
  QTableWidget::resizeEvent(event);
}

void TrialTable::fillRow(int row, const TrialResult& trial, double first) {
  setItem(row, kChoice, cell(QString::fromStdString(trial.trial.label), false));
  item(row, kChoice)->setToolTip(QString::fromStdString(trial.trial.label));
  const QString state = state_of(trial);
  if (!state.isEmpty()) {
    setItem(row, kTime, cell(state, false));
    item(row, kTime)->setToolTip(state);
    setSpan(row, kTime, 1, kRuns);
    return;
  }
  const auto time = measured(trial, Outcome::StepTime);
  setItem(row, kTime, cell(number(trial, Outcome::StepTime), true));
  const QString spread =
      time && time->runs > 1 ? fixed_text(time->least, 1) + " – " + fixed_text(time->most, 1) : QStringLiteral("–");
  setItem(row, kSpread, cell(spread, true));
  item(row, kTime)->setToolTip(tr("Least to most of %1 runs: %2 µs").arg(trial.runs.size()).arg(spread));
  setItem(row, kGain,
          cell(time && time->median > 0 ? fixed_text(first / time->median, 2) + "×" : QStringLiteral("–"), true));
  for (const Outcome outcome : {Outcome::Throughput, Outcome::FirstLoss, Outcome::FinalLoss, Outcome::Accuracy,
                                Outcome::DriverCalls, Outcome::Peak})
    setItem(row, column_of(outcome), cell(number(trial, outcome), true));
  setItem(row, kRuns, cell(QString::number(trial.runs.size()), true));
  item(row, kChoice)->setToolTip(allNumbers(row));
}

// Returns every number of the row, including hidden columns.
QString TrialTable::allNumbers(int row) const {
  QStringList lines{item(row, kChoice)->text()};
  for (int column = kTime; column <= kRuns; ++column)
    lines << column_title(column, false) + ": " + item(row, column)->text();
  return lines.join('\n');
}

// The table never scrolls sideways. If it is narrow, titles take two lines, columns are as wide as their
// numbers, and spreads move to the tooltips of the times. If that is not enough, the least important columns
// move to the tooltips of the choices.
void TrialTable::fitColumns() {
  constexpr int kForTitles = 160;  // the longest ones need more than a number
  const int space = viewport()->width(), wide_enough = kChoiceWidth + kSpreadWidth + kRunsWidth + (kRuns - 2) * kNumberWidth + kForTitles;
  const bool narrow = space < wide_enough;
  QHeaderView& header = *horizontalHeader();
  header.setFixedHeight(narrow ? 36 : 24);
  header.setTextElideMode(narrow ? Qt::ElideNone : Qt::ElideRight);  // eliding would join the two lines
  int left = space;
  for (int column = 1; column < columnCount(); ++column) {
    setHorizontalHeaderItem(column, new QTableWidgetItem(column_title(column, narrow)));
    setColumnHidden(column, narrow && column == kSpread);
    if (isColumnHidden(column)) continue;
    const int width = narrow              ? widthOfNumbers(column)
                      : column == kSpread ? kSpreadWidth
                      : column == kRuns   ? kRunsWidth
                                          : kNumberWidth;
    setColumnWidth(column, narrow ? width : std::max(width, horizontalHeader()->sectionSizeHint(column) + 6));
    left -= columnWidth(column);
  }
  int hidden = 0;
  for (const int column : kLeastFirst) {
    if (left >= kLeastChoice || column == column_of(outcome_)) continue;
    left += columnWidth(column), ++hidden;
    setColumnHidden(column, true);
  }
  setHorizontalHeaderItem(0, new QTableWidgetItem(column_title(0, narrow)));
  setColumnWidth(0, narrow ? std::max(kLeastChoice, left) : kChoiceWidth);
  const QString note = hidden == 0   ? tr("double-click: open a run")
                       : hidden == 1 ? tr("1 more column in the tooltips of the combinations")
                                     : tr("%1 more columns in the tooltips of the combinations").arg(hidden);
  emit noteChanged(note);
}

int TrialTable::widthOfNumbers(int column) const {
  constexpr int kMargins = 12, kApart = 5;
  int width = horizontalHeader()->sectionSizeHint(column) + 6;  // the size hint lacks a part of its frame
  for (int row = 0; row < rowCount(); ++row)
    if (const auto* shown = item(row, column); shown && columnSpan(row, column) == 1)
      width = std::max(width, static_cast<int>(std::ceil(number_width(ui_font(12), shown->text()))) + kMargins + kApart);
  return width;
}

}  // namespace ws::app
