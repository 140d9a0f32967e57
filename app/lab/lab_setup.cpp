// The left side of the laboratory: what to run, over which sizes, in which ways, how to measure.
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QVBoxLayout>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/lab/lab_presets.h"
#include "app/lab/lab_tab.h"
#include "app/panels/section.h"
#include "app/panels/theme.h"
#include "engine/executor.h"

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
  line->setContentsMargins(10, 2, 10, 2);
  auto* name = new QLabel(label, row);
  name->setFixedWidth(78);
  name->setBuddy(field);
  field->setAccessibleName(label);
  line->addWidget(name);
  line->addWidget(field, 1);
  return row;
}

QIcon line_icon(const QColor& colour, bool dashed) {
  QPixmap picture(26, 10);
  picture.fill(Qt::transparent);
  QPainter painter(&picture);
  QPen pen(colour, 2.2);
  if (dashed) pen.setDashPattern({2.4, 1.6});
  painter.setPen(pen);
  painter.drawLine(0, 5, 26, 5);
  return QIcon(picture);
}

lab::Operation chosen(const QListWidget* list) {
  return static_cast<lab::Operation>(list->currentItem()->data(Qt::UserRole).toInt());
}

}  // namespace

QWidget* LabTab::buildSetup() {
  auto* panel = new QWidget(this);
  panel->setObjectName("panel");
  panel->setFixedWidth(300);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  presets_ = new QComboBox(panel);
  presets_->setAccessibleName(tr("Experiment"));
  presets_->addItem(tr("Own choices"));
  for (const LabPreset& preset : lab_presets()) presets_->addItem(preset.title, preset.path);
  connect(presets_, &QComboBox::activated, this, [this] { loadPreset(presets_->currentData().toString()); });
  auto* head = labelled(tr("Experiment"), presets_);
  head->setObjectName("header");
  head->setAttribute(Qt::WA_StyledBackground);
  column->addWidget(head);
  auto* scroll = new QScrollArea(panel);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* inside = new QWidget;
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
  operations_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  for (lab::Operation operation : kOperations) {
    auto* item = new QListWidgetItem(operation_label(operation), operations_);
    item->setData(Qt::UserRole, static_cast<int>(operation));
    item->setToolTip(QString::fromUtf8(lab::explain(operation).data()));
    item->setSizeHint({0, 24});
  }
  operations_->setFixedHeight(24 * static_cast<int>(std::size(kOperations)) + 2);
  expression_ = new QLineEdit("sin(sin(x))*2+y", section);
  depth_ = new QSpinBox(section);
  depth_->setRange(1, 64);
  depth_->setValue(4);
  expression_row_ = labelled(tr("of x and y"), expression_);
  depth_row_ = labelled(tr("depth"), depth_);
  section->body()->addWidget(operations_);
  section->body()->addWidget(expression_row_);
  section->body()->addWidget(depth_row_);
  column->addWidget(section);
  connect(operations_, &QListWidget::currentRowChanged, this, &LabTab::operationChosen);
}

void LabTab::buildSizes(QVBoxLayout* column) {
  auto* section = new Section(tr("Sizes"), this);
  from_ = new QLineEdit("16", section);
  to_ = new QLineEdit("1024", section);
  section->body()->addWidget(labelled(tr("N from"), from_));
  section->body()->addWidget(labelled(tr("to"), to_));
  column->addWidget(section);
}

void LabTab::buildWays(QVBoxLayout* column) {
  auto* section = new Section(tr("Ways of running"), this);
  auto* box = new QWidget(section);
  auto* list = new QVBoxLayout(box);
  list->setContentsMargins(10, 4, 10, 6);
  list->setSpacing(5);
  for (const lab::WayInfo& way : lab::ways()) {
    auto* check = new QCheckBox(QString::fromUtf8(way.label.data(), static_cast<int>(way.label.size())), box);
    check->setIcon(line_icon(lab_colour(way.way), way.pitfall));
    check->setIconSize({26, 10});
    check->setToolTip(QString::fromUtf8(way.explain.data(), static_cast<int>(way.explain.size())));
    ways_[way.way] = check;
    list->addWidget(check);
  }
  section->body()->addWidget(box);
  column->addWidget(section);
}

void LabTab::buildMeasure(QVBoxLayout* column) {
  auto* section = new Section(tr("Measurement"), this);
  repeats_ = new QSpinBox(section);
  repeats_->setRange(3, 10000);
  repeats_->setValue(50);
  cold_cache_ = new QCheckBox(tr("out of the caches"), section);
  cold_cache_->setToolTip(tr("Something else is written between two calls, so that none finds its inputs in a cache."));
  section->body()->addWidget(labelled(tr("repeats"), repeats_));
  section->body()->addWidget(labelled(tr("inputs"), cold_cache_));
  column->addWidget(section);
}

QWidget* LabTab::buildFooter() {
  auto* footer = new QWidget(this);
  footer->setObjectName("footer");
  footer->setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(footer);
  row->setContentsMargins(10, 6, 10, 6);
  state_ = new QLabel(footer);
  state_->setWordWrap(true);
  state_->setFont(ui_font(11));
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

// Only what makes sense for the operation and can run here stays to choose.
void LabTab::operationChosen() {
  const lab::Operation operation = chosen(operations_);
  expression_row_->setVisible(operation == lab::Operation::Expression);
  depth_row_->setVisible(operation == lab::Operation::Sine);
  const auto possible = lab::ways_of(operation);
  for (auto& [way, check] : ways_) {
    const bool fits = std::find(possible.begin(), possible.end(), way) != possible.end(),
               here = !lab::info(way).gpu || device_info().cuda;
    check->setVisible(fits);
    check->setEnabled(here);
    check->setChecked(fits && here && way != lab::Way::GpuCold);
  }
  const bool product = operation == lab::Operation::MatMul;
  from_->setText(product ? "16" : "1024");
  to_->setText(product ? "1024" : "4194304");
}

lab::LabSpec LabTab::spec() const {
  lab::LabSpec spec;
  spec.operation = chosen(operations_);
  spec.name = lab::to_string(spec.operation);
  spec.expression = expression_->text().toStdString();
  spec.depth = depth_->value();
  spec.repeats = repeats_->value();
  spec.cold_cache = cold_cache_->isChecked();
  if (spec.operation == lab::Operation::Expression) lab::Expression::parse(spec.expression);
  bool from_ok = false, to_ok = false;
  const qlonglong from = from_->text().toLongLong(&from_ok), to = to_->text().toLongLong(&to_ok);
  if (!from_ok || !to_ok || from < 1 || to < from)
    throw Failure("sizes: expected two whole numbers, the second not smaller");
  for (qlonglong n = from; n <= to; n *= 2) spec.sizes.push_back(n);
  for (const auto& [way, check] : ways_)
    if (check->isVisibleTo(this) && check->isChecked()) spec.ways.push_back(way);
  if (spec.ways.empty()) throw Failure("ways: tick at least one");
  return spec;
}

void LabTab::setSpec(const lab::LabSpec& spec) {
  for (int row = 0; row < operations_->count(); ++row)
    if (operations_->item(row)->data(Qt::UserRole).toInt() == static_cast<int>(spec.operation))
      operations_->setCurrentRow(row);
  expression_->setText(QString::fromStdString(spec.expression));
  depth_->setValue(spec.depth);
  repeats_->setValue(spec.repeats);
  cold_cache_->setChecked(spec.cold_cache);
  if (!spec.sizes.empty()) {
    from_->setText(QString::number(spec.sizes.front()));
    to_->setText(QString::number(spec.sizes.back()));
  }
  if (spec.ways.empty()) return;
  for (const auto& [way, check] : ways_)
    check->setChecked(check->isEnabled() && std::find(spec.ways.begin(), spec.ways.end(), way) != spec.ways.end());
}

void LabTab::loadPreset(const QString& path) {
  page_.clear();
  if (!path.isEmpty()) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return state_->setText(tr("%1 cannot be read").arg(path));
    try {
      const auto object = nlohmann::json::parse(file.readAll().toStdString());
      setSpec(lab::lab_spec_from_json(object));
      page_ = QString::fromStdString(object.value("text", ""));
    } catch (const std::exception& failure) {
      state_->setText(QString::fromUtf8(failure.what()));
    }
  }
  showStory();
}

}  // namespace ws::app
