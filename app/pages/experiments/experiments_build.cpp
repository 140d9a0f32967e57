// The parts of the Experiments tab and how they stand.
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QSplitter>
#include <QTableWidget>
#include <QVBoxLayout>

#include "app/widgets/pane.h"
#include "app/pages/experiments/experiments_tab.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kLeftWidth = 326;
constexpr int kNumberWidth = 92, kSpreadWidth = 116, kRunsWidth = 50, kChoiceWidth = 216, kLeastChoice = 120;
constexpr int kSpreadColumn = 2, kRunsColumn = 10;
constexpr int kLeastFirst[] = {10, 8, 9, 6, 4, 5, 3};  // columns by how little they are missed

int columnOf(Outcome outcome) {
  constexpr int kColumns[] = {1, 4, 5, 6, 7, 8, 9};  // in the order of the outcomes
  return kColumns[static_cast<size_t>(outcome)];
}

QLabel* paragraph(QWidget* parent, QVBoxLayout* column, const QFont& font) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setFont(font);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  column->addWidget(label);
  return label;
}

}  // namespace

ExperimentsTab::ExperimentsTab(TrainingSession* session, const QString& folder, QWidget* parent)
    : QWidget(parent), session_(session), folder_(folder), job_(new ExperimentJob(this)) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(5, 5, 5, 5);
  row->setSpacing(5);
  QWidget* right = buildRight();
  row->addWidget(buildLeft());
  row->addWidget(right, 1);
  connect(list_, &QListWidget::currentRowChanged, this, &ExperimentsTab::chosen);
  connect(job_, &ExperimentJob::began, this, [this](const QString& label, int repeat, int done, int of) {
    state_->setText(tr("%1 of %2: %3, repeat %4").arg(done + 1).arg(of).arg(label).arg(repeat + 1));
  });
  connect(job_, &ExperimentJob::trained, this, [this] { readResult(), showResult(); });
  connect(job_, &ExperimentJob::ended, this, &ExperimentsTab::ended);
}

QWidget* ExperimentsTab::buildLeft() {
  auto* panel = new QWidget(this);
  style_ground(*panel, "panel");
  panel->setFixedWidth(kLeftWidth);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  list_ = new QListWidget(panel);
  list_->setAccessibleName(tr("Experiments"));
  list_->setMinimumHeight(176);
  list_->setStyleSheet("QListWidget { padding-left: 7px; } QListWidget::item { height: 24px; }");
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  column->addWidget(list_, 2);
  auto* own = new QPushButton(theme_icon("plus"), tr("New experiment…"), panel);
  own->setProperty("small", true);
  connect(own, &QPushButton::clicked, this, &ExperimentsTab::makeNew);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(10, 4, 10, 6);
  row->addWidget(own);
  row->addStretch(1);
  column->addLayout(row);
  auto* page = new QWidget(panel);
  auto* lines = new QVBoxLayout(page);
  lines->setContentsMargins(12, 10, 12, 10);
  lines->setSpacing(8);
  title_ = paragraph(page, lines, ui_font(14, 600));
  text_ = paragraph(page, lines, ui_font(12.5));
  expect_ = paragraph(page, lines, ui_font(12.5));
  measured_ = paragraph(page, lines, ui_font(12.5));
  size_ = paragraph(page, lines, ui_font(11));
  size_->setForegroundRole(QPalette::PlaceholderText);
  lines->addStretch(1);
  auto* scroll = new QScrollArea(panel);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setWidget(page);
  scroll->viewport()->setAutoFillBackground(false);
  page->setAutoFillBackground(false);
  column->addWidget(scroll, 5);
  column->addWidget(buildFooter());
  return panel;
}

QWidget* ExperimentsTab::buildFooter() {
  auto* footer = new QWidget(this);
  style_ground(*footer, "footer");
  auto* column = new QVBoxLayout(footer);
  column->setContentsMargins(10, 8, 10, 8);
  state_ = new QLabel(footer);
  state_->setWordWrap(true);
  state_->setFont(ui_font(11));
  progress_ = new QProgressBar(footer);
  progress_->setTextVisible(false);
  progress_->setAccessibleName(tr("Progress of the experiment"));
  auto* row = new QHBoxLayout;
  repeats_ = new QSpinBox(footer);
  repeats_->setRange(1, 1000);
  repeats_->setMaximumWidth(44);
  repeats_->setButtonSymbols(QAbstractSpinBox::NoButtons);
  repeats_->setAccessibleName(tr("Repeats"));
  export_ = new QPushButton(tr("Export"), footer);
  run_ = new QPushButton(tr("Run"), footer);
  run_->setProperty("primary", true);
  run_->setMinimumWidth(106);  // of its longest text
  row->addWidget(new QLabel(tr("Repeats"), footer));
  row->addWidget(repeats_);
  row->addStretch(1);
  row->addWidget(export_);
  row->addWidget(run_);
  column->addWidget(state_);
  column->addWidget(progress_);
  column->addLayout(row);
  connect(run_, &QPushButton::clicked, this, [this] { running() ? stop() : run(); });
  connect(export_, &QPushButton::clicked, this, &ExperimentsTab::chooseExport);
  connect(repeats_, &QSpinBox::valueChanged, this, [this] { showState(); });
  return footer;
}

QWidget* ExperimentsTab::buildRight() {
  auto* picture = new Pane(tr("Result"), this);
  picture->setTitle(tr("Result"), tr("median of the repeats · line: least to most"));
  picture->legend()->hide();
  chart_ = new ExperimentChart(picture);
  picture->setBody(chart_);
  outcome_ = option_button(tr("What is shown"), picture);
  outcome_->setText(info(Outcome::StepTime).name + ", µs");
  auto* menu = new QMenu(outcome_);
  for (const OutcomeInfo& o : outcomes()) {
    const QString text = o.unit.isEmpty() ? o.name : o.name + ", " + o.unit;
    menu->addAction(text, this, [this, which = o.outcome, text] {
      chart_->setOutcome(which), outcome_->setText(text), fitColumns();
    });
  }
  outcome_->setMenu(menu);
  view_ = option_button(tr("How it is shown"), picture);
  view_->setText(tr("Bars"));
  auto* views = new QMenu(view_);
  for (const auto& [view, text] : {std::pair{ExperimentView::Bars, tr("Bars")},
                                   {ExperimentView::HeatMap, tr("Heat map")},
                                   {ExperimentView::Lines, tr("Against size")},
                                   {ExperimentView::Parallel, tr("Parallel coordinates")}}) {
    QAction* action = views->addAction(
        text, this, [this, which = view, name = text] { chart_->setView(which), view_->setText(name); });
    action->setData(static_cast<int>(view));
  }
  view_->setMenu(views);
  picture->addOption(outcome_);
  picture->addOption(view_);
  auto* numbers = numbers_ = new Pane(tr("Numbers"), this);
  numbers->legend()->hide();
  table_ = new QTableWidget(0, 11, numbers);
  style_table(*table_, tr("Numbers of the experiment"));
  table_->horizontalHeader()->setMinimumSectionSize(24);
  table_->viewport()->installEventFilter(this);
  numbers->setBody(table_);
  connect(table_, &QTableWidget::cellDoubleClicked, this, &ExperimentsTab::openTrial);
  auto* split = new QSplitter(Qt::Vertical, this);
  split->setHandleWidth(5);
  split->addWidget(picture);
  split->addWidget(numbers);
  split->setSizes({480, 320});
  return split;
}

bool ExperimentsTab::eventFilter(QObject* object, QEvent* event) {
  if (object == table_->viewport() && event->type() == QEvent::Resize) fitColumns();
  return QWidget::eventFilter(object, event);
}

// Nothing scrolls sideways: where the columns have no room, titles take two lines, each column is as wide as its
// numbers, and spreads stand in the tooltips of the times. Where that does not help either, what matters least stands
// in the tooltips of the choices alone.
void ExperimentsTab::fitColumns() {
  const int room = table_->viewport()->width(),
            roomy = kChoiceWidth + kSpreadWidth + kRunsWidth + (kRunsColumn - 2) * kNumberWidth;
  const bool narrow = room < roomy;
  QHeaderView& header = *table_->horizontalHeader();
  header.setFixedHeight(narrow ? 36 : 24);
  header.setTextElideMode(narrow ? Qt::ElideNone : Qt::ElideRight);  // eliding takes two lines for one
  int left = room;
  for (int column = 1; column < table_->columnCount(); ++column) {
    table_->setHorizontalHeaderItem(column, new QTableWidgetItem(columnTitle(column, narrow)));
    table_->setColumnHidden(column, narrow && column == kSpreadColumn);
    if (table_->isColumnHidden(column)) continue;
    table_->setColumnWidth(column, narrow                    ? widthOfNumbers(column)
                                   : column == kSpreadColumn ? kSpreadWidth
                                   : column == kRunsColumn   ? kRunsWidth
                                                             : kNumberWidth);
    left -= table_->columnWidth(column);
  }
  int hidden = 0;
  for (const int column : kLeastFirst) {
    if (left >= kLeastChoice || column == columnOf(chart_->outcome())) continue;
    left += table_->columnWidth(column), ++hidden;
    table_->setColumnHidden(column, true);
  }
  table_->setHorizontalHeaderItem(0, new QTableWidgetItem(columnTitle(0, narrow)));
  table_->setColumnWidth(0, narrow ? std::max(kLeastChoice, left) : kChoiceWidth);
  numbers_->setTitle(tr("Numbers"), hidden > 0 ? tr("%1 more in the tooltips of the choices").arg(hidden)
                                               : tr("double-click opens a run of the choice"));
}

QString ExperimentsTab::columnTitle(int column, bool two_lines) {
  const QString titles[] = {tr("choice"),       tr("µs a step"),  tr("spread"),    tr("gain"),
                            tr("samples/s"),    tr("first loss"), tr("last loss"), tr("accuracy, %"),
                            tr("driver calls"), tr("peak, MiB"),  tr("runs")};
  QString title = titles[column];
  if (const auto space = title.lastIndexOf(' '); two_lines && space > 0) title[space] = '\n';
  return title;
}

int ExperimentsTab::widthOfNumbers(int column) const {
  const QFontMetrics plain(ui_font(12));
  int width = table_->horizontalHeader()->sectionSizeHint(column) + 6;  // which leaves out some of its frame
  for (int row = 0; row < table_->rowCount(); ++row)
    if (const auto* item = table_->item(row, column); item && table_->columnSpan(row, column) == 1)
      width = std::max(width, plain.horizontalAdvance(item->text()) + 17);
  return width;
}

}  // namespace ws::app
