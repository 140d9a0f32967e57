#include "app/compare/compare_tab.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QSplitter>
#include <QTabWidget>
#include <QTableWidget>
#include <QVBoxLayout>
#include <cmath>

#include "app/charts/pane.h"
#include "app/compare/step_view.h"
#include "app/compare/waterfall_view.h"
#include "app/panels/panel_table.h"
#include "app/panels/theme.h"
#include "app/panels/units.h"
#include "app/report/report_export.h"
#include "app/window/main_window.h"

namespace ws::app {
namespace {

QIcon badge_icon(int slot) {
  QPixmap picture(15, 15);
  picture.fill(Qt::transparent);
  QPainter painter(&picture);
  draw_badge(painter, QRectF(0, 0, 15, 15), slot);
  return QIcon(picture);
}

QString with_sign(double value, int decimals) { return (value > 0 ? "+" : "") + fixed_text(value, decimals); }

QString cell_text(double value, int decimals) {
  return std::isnan(value) ? QStringLiteral("–") : fixed_text(value, decimals);
}

QTableWidgetItem* item(const QString& text, bool number = false) {
  auto* made = new QTableWidgetItem(text);
  if (number) made->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  return made;
}

QString colour_span(const QString& text, const QColor& colour) {
  return QString("<span style='color:%1'>%2</span>").arg(colour.name(), text.toHtmlEscaped());
}

}  // namespace

CompareTab::CompareTab(QWidget* parent) : QWidget(parent) {
  picker_ = buildPicker();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(5, 5, 5, 5);
  column->setSpacing(5);
  column->addWidget(buildHeadline());
  auto* steps = new Pane(tr("One step of each"), this);
  steps->setTitle(tr("One step of each"), tr("same time scale · one cursor · the median step"));
  step_ = new StepView(steps);
  steps->setBody(step_);
  auto* all = new QSplitter(Qt::Vertical, this);
  all->setHandleWidth(5);
  all->addWidget(steps);
  all->addWidget(buildTables());
  all->setSizes({330, 360});
  column->addWidget(all, 1);
  due_.setSingleShot(true);
  due_.setInterval(300);
  connect(&due_, &QTimer::timeout, this, &CompareTab::refresh);
  refresh();
}

QWidget* CompareTab::buildPicker() {
  auto* box = new QWidget(this);
  auto* row = new QHBoxLayout(box);
  row->setContentsMargins(0, 0, 0, 0);
  baseline_box_ = new QComboBox(box);
  candidate_box_ = new QComboBox(box);
  baseline_box_->setAccessibleName(tr("Baseline"));
  candidate_box_->setAccessibleName(tr("Candidate"));
  auto* swap = new QPushButton(box);
  swap->setIcon(theme_icon("swap"));
  swap->setAccessibleName(tr("Swap baseline and candidate"));
  swap->setToolTip(swap->accessibleName());
  for (QComboBox* combo : {baseline_box_, candidate_box_}) combo->setMinimumWidth(170);
  row->addWidget(new QLabel(tr("Baseline"), box));
  row->addWidget(baseline_box_);
  row->addWidget(swap);
  row->addWidget(new QLabel(tr("Candidate"), box));
  row->addWidget(candidate_box_);
  connect(swap, &QPushButton::clicked, this, &CompareTab::swapRuns);
  const auto picked = [this] {
    const auto at = [this](QComboBox* combo) {
      return combo->currentIndex() >= 0 ? runs_[static_cast<size_t>(combo->currentIndex())] : nullptr;
    };
    setPair(at(baseline_box_), at(candidate_box_));
  };
  connect(baseline_box_, &QComboBox::activated, this, picked);
  connect(candidate_box_, &QComboBox::activated, this, picked);
  return box;
}

QWidget* CompareTab::buildHeadline() {
  auto* panel = new QWidget(this);
  panel->setObjectName("panel");
  panel->setAttribute(Qt::WA_StyledBackground);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(14, 10, 14, 8);
  auto* top = new QHBoxLayout;
  auto* left = new QVBoxLayout;
  headline_ = new QLabel(panel);
  headline_->setFont(ui_font(21, 600));
  times_ = new QLabel(panel);
  times_->setFont(number_font(12));
  left->addWidget(headline_);
  left->addWidget(times_);
  causes_ = new QLabel(panel);
  causes_->setWordWrap(true);
  auto* report = new QPushButton(tr("Export report"), panel);
  report->setIcon(theme_icon("export"));
  connect(report, &QPushButton::clicked, this, &CompareTab::chooseReport);
  top->addLayout(left);
  top->addSpacing(26);
  top->addWidget(causes_, 1);
  top->addWidget(report, 0, Qt::AlignVCenter);
  column->addLayout(top);
  choices_ = new QLabel(panel);
  choices_->setWordWrap(true);
  choices_->setTextFormat(Qt::RichText);
  warnings_ = new QLabel(panel);
  warnings_->setWordWrap(true);
  warnings_->setTextFormat(Qt::RichText);
  column->addWidget(choices_);
  column->addWidget(warnings_);
  return panel;
}

QWidget* CompareTab::buildTables() {
  auto* falls = new Pane(tr("Where the time went"), this);
  falls->setTitle(tr("Where the difference went"), tr("µs a step · parts sum to the difference"));
  waterfall_ = new WaterfallView(falls);
  falls->setBody(waterfall_);
  auto* numbers = new Pane(tr("Measures"), this);
  numbers->setTitle(tr("Measures"), tr("against the baseline"));
  measures_ = new QTableWidget(0, 6, this);
  style_table(*measures_, tr("Measures"));
  measures_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  kernels_ = new QTableWidget(0, 6, this);
  kernels_->setHorizontalHeaderLabels({tr("Kernel"), tr("baseline, count"), tr("candidate, count"), tr("baseline, µs"),
                                       tr("candidate, µs"), tr("Δ µs")});
  style_table(*kernels_, tr("Kernels by difference"));
  kernels_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  for (QTableWidget* table : {measures_, kernels_}) table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  auto* tabs = new QTabWidget(this);
  tabs->setDocumentMode(true);
  tabs->addTab(measures_, tr("Measures"));
  tabs->addTab(kernels_, tr("Kernels by Δ"));
  numbers->setBody(tabs);
  auto* row = new QSplitter(Qt::Horizontal, this);
  row->setHandleWidth(5);
  row->addWidget(falls);
  row->addWidget(numbers);
  row->setSizes({600, 600});
  return row;
}

void CompareTab::setRuns(const std::vector<Run*>& runs) {
  for (const auto& run : runs_)
    if (run) disconnect(run, nullptr, this, nullptr);
  runs_.assign(runs.begin(), runs.end());
  for (Run* run : runs)
    connect(run, &Run::changed, this, [this] {
      if (!due_.isActive() && isVisible()) due_.start();
    });
  const auto still = [&](const QPointer<Run>& run) {
    return run && std::find(runs.begin(), runs.end(), run.data()) != runs.end();
  };
  // The slower one is what people compare against: it begins as the baseline.
  if (!still(baseline_) || !still(candidate_) || baseline_ == candidate_) {
    baseline_ = runs.size() > 1 ? runs[1] : nullptr;
    candidate_ = runs.empty() ? nullptr : runs[0];
    if (baseline_ && candidate_ && candidate_->usPerStep() > baseline_->usPerStep()) std::swap(baseline_, candidate_);
  }
  fillPickers();
  refresh();
}

void CompareTab::fillPickers() {
  for (auto [combo, chosen] : {std::pair{baseline_box_, baseline_.data()}, {candidate_box_, candidate_.data()}}) {
    combo->clear();
    for (const auto& run : runs_) combo->addItem(badge_icon(run->slot), run->title);
    for (size_t i = 0; i < runs_.size(); ++i)
      if (runs_[i] == chosen) combo->setCurrentIndex(static_cast<int>(i));
    combo->setEnabled(runs_.size() > 1);
  }
}

void CompareTab::setPair(Run* baseline, Run* candidate) {
  baseline_ = baseline;
  candidate_ = candidate;
  fillPickers();
  refresh();
}

void CompareTab::swapRuns() { setPair(candidate_, baseline_); }

void CompareTab::refresh() {
  comparison_ = baseline_ && candidate_ ? compare_runs(*baseline_, *candidate_) : PairComparison{};
  showHeadline();
  showChoices();
  showMeasures();
  showKernels();
  step_->setRuns(baseline_, candidate_, comparison_);
  waterfall_->setComparison(comparison_, baseline_ ? baseline_->slot : 0, candidate_ ? candidate_->slot : 1);
}

void CompareTab::showHeadline() {
  const PairComparison& c = comparison_;
  if (!baseline_ || !candidate_) {
    headline_->setText(tr("Tick two runs to compare them"));
    times_->clear();
    causes_->setText(tr("Train a run, change one choice, train again: both are in the list at the right."));
    return;
  }
  const QString who = QString(run_letter(candidate_->slot));
  const double ratio = c.candidate_us > 0 ? c.baseline_us / c.candidate_us : 0;
  if (!c.beyond_noise)
    headline_->setText(tr("%1 is as fast: within noise").arg(who));
  else
    headline_->setText(ratio >= 1 ? tr("%1 is %2× faster a step").arg(who, significant_text(ratio))
                                  : tr("%1 is %2× slower a step").arg(who, significant_text(1 / ratio)));
  const double delta = c.candidate_us - c.baseline_us;
  times_->setText(
      tr("%1 → %2, %3%4 µs%5")
          .arg(us_text(c.baseline_us), time_axis_text(c.candidate_us), delta > 0 ? "+" : "", fixed_text(delta, 1),
               c.half_width_us > 0 ? tr(" ± %1 (95 % interval)").arg(fixed_text(c.half_width_us, 1)) : QString()));
  QStringList parts;
  const double total = static_cast<double>(c.waterfall.b_ps - c.waterfall.a_ps);
  for (const prof::Cause& cause : c.waterfall.causes) {
    const double share = total != 0 ? static_cast<double>(cause.delta_ps()) / total : 0;
    if (parts.size() < 3 && share > 0.05)
      parts << tr("%1 %2 %")
                   .arg(cause.meaning == prof::Meaning::Launch ? tr("launch gaps")
                                                               : ws::app::meaning_name(cause.meaning))
                   .arg(std::lround(100 * share));
  }
  causes_->setText(parts.isEmpty() ? QString() : tr("Of the difference: %1.").arg(parts.join(", ")));
}

void CompareTab::showChoices() {
  QStringList parts;
  for (const FieldChange& change : comparison_.choices)
    parts << QString("%1 <span style='color:%2'>%3 →</span> <b>%4</b>")
                 .arg(colour_span(QString::fromUtf8(field(change.key).label.data()), theme().secondary),
                      theme().secondary.name(), QString::fromStdString(change.from).toHtmlEscaped(),
                      QString::fromStdString(change.to).toHtmlEscaped());
  const bool both = baseline_ && candidate_;
  choices_->setVisible(both);
  choices_->setText(parts.isEmpty() ? tr("The same choices in both.")
                                    : QString("<b>%1</b> &nbsp; ")
                                              .arg(parts.size() == 1 ? tr("1 choice differs")
                                                                     : tr("%1 choices differ").arg(parts.size())) +
                                          parts.join(" &nbsp;·&nbsp; "));
  warnings_->setVisible(both && !comparison_.warnings.isEmpty());
  warnings_->setText(colour_span("▲ " + comparison_.warnings.join(" · "), theme().worse));
}

void CompareTab::showMeasures() {
  const QString a = baseline_ ? QString(run_letter(baseline_->slot)) : "–",
                b = candidate_ ? QString(run_letter(candidate_->slot)) : "–";
  measures_->setHorizontalHeaderLabels({tr("Measure"), a, b, tr("%1 − %2").arg(b, a), tr("relative"), tr("verdict")});
  measures_->setRowCount(0);
  QString group;
  for (const MeasureRow& m : comparison_.measures) {
    int row = measures_->rowCount();
    if (m.group != group) {
      group = m.group;
      measures_->insertRow(row);
      auto* head = item(group);
      head->setFont(ui_font(12, 600));
      head->setData(kSectionRole, true);
      measures_->setItem(row, 0, head);
      measures_->setSpan(row++, 0, 1, 6);
    }
    measures_->insertRow(row);
    const QString unit = m.unit.isEmpty() ? "" : " " + m.unit;
    const double relative = m.baseline != 0 ? 100 * m.delta() / m.baseline : std::nan("");
    const QString mark = m.verdict == Verdict::Better        ? "✓ "
                         : m.verdict == Verdict::Worse       ? "▲ "
                         : m.verdict == Verdict::WithinNoise ? "◌ "
                                                             : "";
    const bool known = !std::isnan(m.delta());
    QTableWidgetItem* cells[] = {item(m.name + (m.unit.isEmpty() ? "" : ", " + m.unit)),
                                 item(cell_text(m.baseline, m.decimals), true),
                                 item(cell_text(m.candidate, m.decimals), true),
                                 item(known ? with_sign(m.delta(), m.decimals) : "–", true),
                                 item(std::isnan(relative) ? "–" : with_sign(relative, 1) + " %", true),
                                 item(mark + verdict_text(m.verdict))};
    cells[5]->setForeground(m.verdict == Verdict::Better  ? theme().better
                            : m.verdict == Verdict::Worse ? theme().worse
                                                          : theme().secondary);
    for (int column = 0; column < 6; ++column) measures_->setItem(row, column, cells[column]);
  }
}

void CompareTab::showKernels() {
  kernels_->setRowCount(static_cast<int>(comparison_.kernels.size()));
  for (int row = 0; row < kernels_->rowCount(); ++row) {
    const prof::KernelDelta& k = comparison_.kernels[static_cast<size_t>(row)];
    QTableWidgetItem* cells[] = {item(QString::fromStdString(k.name)), item(fixed_text(k.a_count, 1), true),
                                 item(fixed_text(k.b_count, 1), true), item(fixed_text(k.a_us, 2), true),
                                 item(fixed_text(k.b_us, 2), true),    item(with_sign(k.delta_us(), 2), true)};
    cells[0]->setToolTip(cells[0]->text());
    for (int column = 0; column < 6; ++column) kernels_->setItem(row, column, cells[column]);
  }
}

void CompareTab::exportReport(const QString& path) {
  std::vector<const Run*> chosen;
  if (baseline_) chosen.push_back(baseline_);
  if (candidate_) chosen.push_back(candidate_);
  for (const auto& run : runs_)
    if (run && run != baseline_ && run != candidate_) chosen.push_back(run);
  try {
    write_report(chosen, path);
    emit said(tr("Report written: %1").arg(QFileInfo(path).fileName()), false);
  } catch (const Failure& failure) {
    emit said(QString::fromUtf8(failure.what()), true);
  }
}

void CompareTab::chooseReport() {
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Export report"), "report.html", tr("Reports (*.html *.pdf)"));
  if (!path.isEmpty()) exportReport(path);
}

void add_compare(MainWindow& window) {
  auto* tab = new CompareTab(&window);
  window.addTab(
      QObject::tr("Compare"), tab, [tab](const std::vector<Run*>& runs) { tab->setRuns(runs); }, false, tab->picker());
  QObject::connect(tab, &CompareTab::said, &window,
                   [&window](const QString& sentence, bool problem) { window.say(sentence, problem); });
}

}  // namespace ws::app
