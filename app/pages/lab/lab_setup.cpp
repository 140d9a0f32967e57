// The left side of the laboratory: what to run, over which sizes, in which ways, how to measure.
#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QVBoxLayout>

#include "app/pages/lab/lab_tab.h"
#include "app/core/lab/shipped_labs.h"
#include "app/widgets/table_style.h"
#include "app/widgets/section.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/theme.h"
#include "engine/executor/executor.h"

namespace ws::app {
namespace {

constexpr lab::Operation kOperations[] = {lab::Operation::MatMul, lab::Operation::Sine,   lab::Operation::Expression,
                                          lab::Operation::Add,    lab::Operation::Reduce, lab::Operation::Softmax,
                                          lab::Operation::Copy};

QString operation_label(lab::Operation operation) {
  switch (operation) {
    case lab::Operation::MatMul:
      return QObject::tr("matrix product");
    case lab::Operation::Sine:
      return QObject::tr("nested sine");
    case lab::Operation::Expression:
      return QObject::tr("your expression");
    case lab::Operation::Add:
      return QObject::tr("add");
    case lab::Operation::Reduce:
      return QObject::tr("sum");
    case lab::Operation::Softmax:
      return QObject::tr("softmax");
    case lab::Operation::Copy:
      return QObject::tr("copy");
  }
  return {};
}

QWidget* labelled(const QString& label, QWidget* field) {
  auto* row = new QWidget;
  auto* line = new QHBoxLayout(row);
  line->setContentsMargins(0, 1, 0, 1);
  line->setSpacing(6);
  auto* name = new QLabel(label, row);
  name->setFixedWidth(76);
  name->setBuddy(field);
  if (field->accessibleName().isEmpty()) field->setAccessibleName(label);
  line->addWidget(name);
  line->addWidget(field, 1);
  return row;
}

// Two fields and what stands between them.
QWidget* both(QWidget* a, const QString& between, QWidget* b) {
  auto* row = new QWidget;
  auto* line = new QHBoxLayout(row);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(6);
  line->addWidget(a, 1);
  line->addWidget(new QLabel(between, row));
  line->addWidget(b, 1);
  return row;
}

}  // namespace

QIcon lab_way_icon(lab::Way way) {
  QPixmap picture(52, 20);
  picture.fill(Qt::transparent);
  picture.setDevicePixelRatio(2);
  QPainter painter(&picture);
  painter.setPen(lab_pen(way, 2.2));
  painter.drawLine(0, 5, 26, 5);
  painter.end();
  return QIcon(picture);
}

QWidget* LabTab::buildSetup() {
  auto* panel = new QWidget(this);
  panel->setObjectName("panel");
  panel->setFixedWidth(300);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  presets_ = new QComboBox(panel);
  presets_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  presets_->addItem(tr("Own choices"));
  for (const ShippedLab& shipped : shipped_labs())
    presets_->addItem(QString::fromStdString(shipped.title), QString::fromStdString(shipped.path));
  connect(presets_, &QComboBox::activated, this, [this] { loadPreset(presets_->currentData().toString()); });
  auto* head = labelled(tr("Experiment"), presets_);
  head->layout()->setContentsMargins(12, 4, 8, 4);
  style_ground(*head, "header");
  column->addWidget(head);
  auto* scroll = new QScrollArea(panel);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* inside = new QWidget;
  inside->setAutoFillBackground(true);
  inside->setBackgroundRole(QPalette::Base);
  auto* sections = new QVBoxLayout(inside);
  sections->setContentsMargins(0, 0, 0, 0);
  sections->setSpacing(0);
  buildOperations(sections);
  buildSizes(sections);
  buildWays(sections);
  buildMeasure(sections);
  sections->addStretch(1);
  scroll->setWidget(inside);
  column->addWidget(scroll, 1);
  column->addWidget(buildFooter());
  return panel;
}

void LabTab::buildOperations(QVBoxLayout* column) {
  auto* section = new Section(tr("Operation"), this);
  operations_ = new QListWidget(section);
  operations_->setAccessibleName(tr("Operation"));
  operations_->setFrameShape(QFrame::NoFrame);
  operations_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  operations_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  for (lab::Operation operation : kOperations) {
    auto* item = new QListWidgetItem(operation_label(operation), operations_);
    item->setData(Qt::UserRole, static_cast<int>(operation));
    item->setToolTip(QString::fromUtf8(lab::explain(operation).data()));
    item->setSizeHint({0, 23});
  }
  operations_->setFixedHeight(23 * static_cast<int>(std::size(kOperations)) + 2);
  expression_ = new QLineEdit("sin(sin(x))*2+y", section);
  depth_ = new QSpinBox(section);
  depth_->setRange(1, 64);
  depth_->setValue(4);
  depth_->setButtonSymbols(QAbstractSpinBox::NoButtons);
  auto* source = new QPushButton(tr("CUDA source…"), section);
  source->setProperty("small", true);
  source->setToolTip(tr("What the one kernel looks like that is compiled from it"));
  connect(source, &QPushButton::clicked, this, &LabTab::showSource);
  expression_row_ = labelled(tr("of x and y"), expression_);
  depth_row_ = labelled(tr("depth"), depth_);
  source_row_ = labelled(tr("one kernel"), source);
  for (QWidget* widget : {static_cast<QWidget*>(operations_), expression_row_, depth_row_, source_row_})
    section->body()->addWidget(widget);
  column->addWidget(section);
}

void LabTab::buildSizes(QVBoxLayout* column) {
  auto* section = new Section(tr("Sizes"), this);
  from_ = new QLineEdit("16", section);
  from_->setAccessibleName(tr("N from"));
  to_ = new QLineEdit("1024", section);
  to_->setAccessibleName(tr("N to"));
  custom_ = new QLineEdit("1000, 2000, 3000", section);
  spacing_ = new SegmentedRow(tr("points"), {{"2", "× 2"}, {"root", "× √2"}, {"custom", tr("custom")}}, section);
  spacing_->setValue("2");
  m_ = new QSpinBox(section);
  m_->setAccessibleName(tr("rows of the result"));
  k_ = new QSpinBox(section);
  k_->setAccessibleName(tr("inner length"));
  for (QSpinBox* side : {m_, k_}) {
    side->setRange(0, 1 << 20);
    side->setSpecialValueText("N");
    side->setButtonSymbols(QAbstractSpinBox::NoButtons);
    side->setToolTip(tr("N: as the size"));
  }
  range_row_ = labelled(tr("N from"), both(from_, tr("to"), to_));
  range_row_->setToolTip(tr("4096, 2^12 or 64M"));
  custom_row_ = labelled(tr("N"), custom_);
  shape_row_ = labelled(tr("m × k × N"), both(m_, "×", k_));
  for (QWidget* row : {range_row_, custom_row_, labelled(tr("points"), spacing_), shape_row_})
    section->body()->addWidget(row);
  column->addWidget(section);
  connect(spacing_, &SegmentedRow::picked, this, &LabTab::spacingChosen);
  spacingChosen();
}

void LabTab::buildWays(QVBoxLayout* column) {
  auto* section = new Section(tr("Ways of running"), this);
  auto* box = new QWidget(section);
  auto* list = new QVBoxLayout(box);
  list->setContentsMargins(0, 2, 0, 4);
  list->setSpacing(4);
  for (const lab::WayInfo& way : lab::ways()) {
    auto* check = new QCheckBox(lab_label(way.way) + (way.pitfall ? tr(" (pitfall)") : QString()), box);
    check->setIcon(lab_way_icon(way.way));
    check->setIconSize({26, 10});
    check->setToolTip(QString::fromUtf8(way.explain.data(), static_cast<int>(way.explain.size())));
    ways_[way.way] = check;
    list->addWidget(check);
  }
  missing_ = new QLabel(box);
  missing_->setWordWrap(true);
  missing_->setFont(ui_font(11));
  missing_->hide();
  list->addWidget(missing_);
  section->body()->addWidget(box);
  column->addWidget(section);
}

void LabTab::buildMeasure(QVBoxLayout* column) {
  auto* section = new Section(tr("Measurement"), this);
  repeats_ = new QSpinBox(section);
  repeats_->setAccessibleName(tr("repeats"));
  repeats_->setRange(3, 10000);
  repeats_->setValue(50);
  warm_up_ = new QSpinBox(section);
  warm_up_->setAccessibleName(tr("warm-up calls"));
  warm_up_->setRange(0, 1000);
  warm_up_->setValue(5);
  for (QSpinBox* count : {repeats_, warm_up_}) count->setButtonSymbols(QAbstractSpinBox::NoButtons);
  clock_ = new SegmentedRow(tr("clock"), {{"host", tr("host")}, {"events", tr("GPU events")}}, section);
  clock_->setValue("host");
  clock_->setToolTip(
      tr("Host: what a caller waits. GPU events: marks on the stream, without the launch; the CPU and what "
         "is not synchronised stay with the host's clock."));
  cold_cache_ = new QCheckBox(tr("cold cache"), section);
  cold_cache_->setToolTip(tr("Something else is written between two calls, so that none finds its inputs in a cache."));
  record_ = new QCheckBox(tr("record every point"), section);
  record_->setChecked(true);
  record_->setToolTip(tr("Three more calls of each point are traced after it was measured; a click opens them."));
  buildLimits();
  section->body()->addWidget(labelled(tr("repeats"), both(repeats_, tr("warm-up"), warm_up_)));
  section->body()->addWidget(labelled(tr("s a point"), both(seconds_, tr("longest"), longest_)));
  section->body()->addWidget(labelled(tr("clock"), clock_));
  section->body()->addWidget(labelled(tr("inputs"), both(cold_cache_, tr("seed"), seed_)));
  section->body()->addWidget(labelled(tr("timeline"), record_));
  column->addWidget(section);
}

void LabTab::buildLimits() {
  const auto number = [this](const QString& name, double most, int decimals, const QString& tip) {
    auto* box = new QDoubleSpinBox(this);
    box->setAccessibleName(name);
    box->setRange(0, most);
    box->setDecimals(decimals);
    box->setButtonSymbols(QAbstractSpinBox::NoButtons);
    box->setMinimumWidth(44);  // not that of its longest number
    box->setToolTip(tip);
    return box;
  };
  const lab::LabSpec usual;
  seconds_ = number(tr("seconds a point"), 3600, 2, tr("A point is repeated no more after this many seconds."));
  longest_ = number(tr("longest call"), 3600, 2, tr("A curve ends where one call takes more seconds than this."));
  seed_ = number(tr("seed"), 9e15, 0, tr("Of the numbers that are computed on; every way gets the same."));
  seconds_->setValue(usual.seconds_per_point);
  longest_->setValue(usual.longest_call_s);
  seed_->setValue(static_cast<double>(usual.seed));
}

QWidget* LabTab::buildFooter() {
  auto* footer = new QWidget(this);
  style_ground(*footer, "footer");
  auto* row = new QHBoxLayout(footer);
  row->setContentsMargins(10, 6, 10, 6);
  state_ = new QLabel(footer);
  state_->setWordWrap(true);
  state_->setFont(ui_font(11));
  state_->setMinimumHeight(44);
  run_ = new QPushButton(tr("Measure"), footer);
  run_->setProperty("primary", true);
  export_ = new QPushButton(tr("Export"), footer);
  export_->setEnabled(false);
  row->addWidget(state_, 1);
  row->addWidget(export_);
  row->addWidget(run_);
  connect(run_, &QPushButton::clicked, this, [this] { job_->running() ? job_->cancel() : run(); });
  connect(export_, &QPushButton::clicked, this, &LabTab::chooseExport);
  return footer;
}

void LabTab::ready() {
  if (ready_) return;
  ready_ = true;
  connect(operations_, &QListWidget::currentRowChanged, this, &LabTab::operationChosen);
  operations_->setCurrentRow(0);
  if (!device_info().cuda) {
    missing_->setText(tr("Not here: %1").arg(QString::fromStdString(device_info().why_not)));
    missing_->show();
  }
  showStory();
}

void LabTab::spacingChosen() {
  const bool custom = spacing_->value() == "custom";
  range_row_->setVisible(!custom);
  custom_row_->setVisible(custom);
}

void LabTab::showSource() {
  try {
    const lab::Expression e = operation() == lab::Operation::Sine
                                  ? lab::Expression::nested_sine(depth_->value())
                                  : lab::Expression::parse(expression_->text().toStdString());
    QDialog dialog(this);
    dialog.setWindowTitle(tr("CUDA source of %1").arg(QString::fromStdString(e.text()).left(60)));
    dialog.resize(820, 560);
    auto* column = new QVBoxLayout(&dialog);
    auto* text = new QPlainTextEdit(QString::fromStdString(e.cuda_source("ws_fused_expression")), &dialog);
    text->setReadOnly(true);
    text->setFont(mono_font(12));
    text->setLineWrapMode(QPlainTextEdit::NoWrap);
    text->setAccessibleName(tr("CUDA source"));
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, &dialog);
    connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
    column->addWidget(text);
    column->addWidget(buttons);
    dialog.exec();
  } catch (const Failure& failure) {
    say(QString::fromUtf8(failure.what()));
  }
}

}  // namespace ws::app
