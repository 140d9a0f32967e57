#include "app/pages/lab/lab_form.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QVBoxLayout>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/core/kernels/kernel_library.h"
#include "app/core/lab/shipped_labs.h"
#include "app/pages/lab/lab_way_style.h"
#include "app/widgets/labels.h"
#include "app/widgets/section.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "engine/devices/devices.h"
#include "engine/own_kernels/kernel_versions.h"
#include "engine/workloads/lab_kernels.h"

namespace ws::app {
namespace {

constexpr lab::Operation kOperations[] = {lab::Operation::MatMul, lab::Operation::Sine,    lab::Operation::Add,
                                          lab::Operation::Reduce, lab::Operation::Softmax, lab::Operation::Copy};

QString operation_label(lab::Operation operation) {
  switch (operation) {
    case lab::Operation::MatMul:
      return QObject::tr("matrix product");
    case lab::Operation::Sine:
      return QObject::tr("nested sine");
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

// Two fields with text between them.
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

constexpr size_t kMostSizes = 200;
constexpr int kListRow = 23;

// Large powers of two are easier to read in this form.
QString size_written(int64_t size) {
  const auto bits = static_cast<uint64_t>(size);
  return size >= 1 << 16 && std::has_single_bit(bits) ? "2^" + QString::number(std::countr_zero(bits))
                                                      : QString::number(size);
}

}  // namespace

LabForm::LabForm(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(buildHead());
  auto* scroll = new QScrollArea(this);
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
  watchEdits(*inside);
  scroll->setWidget(inside);
  column->addWidget(scroll, 1);
}

QWidget* LabForm::buildHead() {
  presets_ = new QComboBox(this);
  presets_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  presets_->addItem(tr("Own settings"));
  for (const ShippedLab& shipped : shipped_labs())
    presets_->addItem(QString::fromStdString(shipped.title), QString::fromStdString(shipped.path));
  connect(presets_, &QComboBox::activated, this, &LabForm::loadPreset);
  auto* head = labelled(tr("Preset"), presets_);
  head->layout()->setContentsMargins(12, 4, 8, 4);
  style_ground(*head, "header");
  return head;
}

// Changed choices are no longer the preset.
void LabForm::watchEdits(QWidget& fields) {
  const auto edited = [this] {
    if (presets_->currentIndex() == 0) return;
    presets_->setCurrentIndex(0);
    emit pageChosen({});
  };
  connect(operations_, &QListWidget::currentRowChanged, this, edited);
  connect(spacing_, &SegmentedRow::picked, this, edited);
  for (QLineEdit* field : {from_, to_, custom_}) connect(field, &QLineEdit::textEdited, this, edited);
  for (QSpinBox* field : fields.findChildren<QSpinBox*>()) connect(field, &QSpinBox::valueChanged, this, edited);
  for (QDoubleSpinBox* field : fields.findChildren<QDoubleSpinBox*>())
    connect(field, &QDoubleSpinBox::valueChanged, this, edited);
  for (const auto& [way, check] : ways_) connect(check, &QCheckBox::toggled, this, edited);
  connect(kernels_, &QListWidget::itemChanged, this, edited);
  connect(cold_cache_, &QCheckBox::toggled, this, edited);
}

bool LabForm::recordsPoints() const { return record_->isChecked(); }

bool LabForm::ownChoices() const { return presets_->currentData().toString().isEmpty(); }

std::optional<ShippedLab> LabForm::shipped() const {
  if (!operations_->currentItem()) return std::nullopt;
  const std::string preset = presets_->currentData().toString().toStdString();
  for (const ShippedLab& one : shipped_labs()) try {
      if (preset.empty() ? lab::lab_spec_from_json(read_lab_file(one.path)).operation == operation() : one.path == preset) return one;
    } catch (const Failure&) {  // such a file is chosen by nobody
    }
  return std::nullopt;
}

void LabForm::prepare() {
  if (std::exchange(prepared_, true)) return;
  connect(operations_, &QListWidget::currentRowChanged, this, &LabForm::operationChosen);
  operations_->setCurrentRow(0);
  emit prepared();
}

void LabForm::setGpu(bool there, const QString& why_not) { setWhyNoGpu(there ? QString() : why_not); }
void LabForm::setThisMachine() { setWhyNoGpu(std::nullopt); }

// Checks that the user made stay, unless other variants can run.
void LabForm::setWhyNoGpu(const std::optional<QString>& why) {
  const bool before = prepared_ && whyNoGpu().isEmpty();
  why_no_gpu_ = why;
  if (!prepared_) return;
  if (whyNoGpu().isEmpty() != before) operationChosen();
}

QString LabForm::whyNoGpu() const {
  if (why_no_gpu_) return *why_no_gpu_;
  return device_info().cuda ? QString() : QString::fromStdString(device_info().why_not);
}

// One line stands for all variants that cannot run here.
void LabForm::showMissing(int variants) {
  missing_->setText(tr("%1 GPU variants need a GPU").arg(variants));
  missing_->setToolTip(whyNoGpu());
  missing_->setVisible(variants > 0);
}

void LabForm::buildOperations(QVBoxLayout* column) {
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
    item->setSizeHint({0, kListRow});
  }
  operations_->setFixedHeight(kListRow * static_cast<int>(std::size(kOperations)) + 2);
  depth_ = new QSpinBox(section);
  depth_->setRange(1, 64);
  depth_->setValue(4);
  depth_->setButtonSymbols(QAbstractSpinBox::NoButtons);
  depth_row_ = labelled(tr("depth"), depth_);
  section->body()->addWidget(operations_);
  section->body()->addWidget(depth_row_);
  column->addWidget(section);
}

void LabForm::buildSizes(QVBoxLayout* column) {
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
  shape_row_ = labelled(tr("m, k"), both(m_, "×", k_));
  for (QWidget* row : {range_row_, custom_row_, labelled(tr("points"), spacing_), shape_row_})
    section->body()->addWidget(row);
  column->addWidget(section);
  connect(spacing_, &SegmentedRow::picked, this, &LabForm::spacingChosen);
  spacingChosen();
}

void LabForm::buildWays(QVBoxLayout* column) {
  auto* section = new Section(tr("Variants"), this);
  auto* box = new QWidget(section);
  auto* list = new QVBoxLayout(box);
  list->setContentsMargins(0, 2, 0, 4);
  list->setSpacing(4);
  for (const lab::WayInfo& way : lab::ways()) {
    if (lab::is_own(way.way)) continue;
    auto* check = new QCheckBox(lab_label(way.way) + (way.pitfall ? tr(" (pitfall)") : QString()), box);
    check->setIcon(lab_way_icon(way.way));
    check->setIconSize({26, 10});
    check->setToolTip(QString::fromUtf8(way.explain.data(), static_cast<int>(way.explain.size())));
    ways_[way.way] = check;
    list->addWidget(check);
  }
  missing_ = label(box, ui_font(11));
  missing_->hide();
  list->addWidget(missing_);
  buildKernels(list);
  section->body()->addWidget(box);
  column->addWidget(section);
}

void LabForm::buildKernels(QVBoxLayout* column) {
  kernels_ = new QListWidget(this);
  kernels_->setAccessibleName(tr("Your kernels"));
  kernels_->setFrameShape(QFrame::NoFrame);
  kernels_->setSelectionMode(QAbstractItemView::NoSelection);
  for (auto set : {&QListWidget::setHorizontalScrollBarPolicy, &QListWidget::setVerticalScrollBarPolicy}) (kernels_->*set)(Qt::ScrollBarAlwaysOff);
  auto* write = small_button(tr("Write your own kernel"), this,
                             tr("Writes a first version of a CUDA kernel for this operation into your kernels. Ticked kernels are further variants."));
  connect(write, &QPushButton::clicked, this, &LabForm::writeKernel);
  column->addWidget(kernels_);
  column->addWidget(write, 0, Qt::AlignLeft);
}

void LabForm::buildMeasure(QVBoxLayout* column) {
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
  connect(clock_, &SegmentedRow::picked, this,
          [this](const QString& clock) { emit clockChosen(clock == "events" ? LabClock::Events : LabClock::Host); });
  clock_->setToolTip(
      tr("Host: the time a caller waits. GPU events: marks on the stream, without the launch. The CPU and variants "
         "without a sync always use the host's clock."));
  cold_cache_ = new QCheckBox(tr("cold cache"), section);
  cold_cache_->setToolTip(tr("Writes other data between two calls, so no call finds its inputs in a cache."));
  record_ = new QCheckBox(tr("record every point"), section);
  record_->setChecked(true);
  record_->setToolTip(tr("Traces three more calls of each point after measuring. A click opens them."));
  buildLimits();
  section->body()->addWidget(labelled(tr("repeats"), both(repeats_, tr("warm-up"), warm_up_)));
  section->body()->addWidget(labelled(tr("per point"), seconds_));
  section->body()->addWidget(labelled(tr("per call"), longest_));
  section->body()->addWidget(labelled(tr("clock"), clock_));
  section->body()->addWidget(labelled(tr("inputs"), both(cold_cache_, tr("seed"), seed_)));
  section->body()->addWidget(labelled(tr("timeline"), record_));
  column->addWidget(section);
}

void LabForm::buildLimits() {
  const auto number = [this](const QString& name, double most, int decimals, const QString& tip) {
    auto* box = new QDoubleSpinBox(this);
    box->setAccessibleName(name);
    box->setRange(0, most);
    box->setDecimals(decimals);
    box->setButtonSymbols(QAbstractSpinBox::NoButtons);
    box->setMinimumWidth(44);  // less than its longest number needs
    box->setToolTip(tip);
    return box;
  };
  const lab::LabSpec usual;
  seconds_ = number(tr("time per point"), 3600, 2, tr("A point is repeated for at most this time."));
  longest_ = number(tr("time per call"), 3600, 2, tr("A curve ends when one call takes longer."));
  for (QDoubleSpinBox* box : {seconds_, longest_}) box->setPrefix(tr("at most ")), box->setSuffix(tr(" s"));
  seed_ = number(tr("seed"), 9e15, 0, tr("Seed of the input values. All variants use the same inputs."));
  seconds_->setValue(usual.seconds_per_point);
  longest_->setValue(usual.longest_call_s);
  seed_->setValue(static_cast<double>(usual.seed));
}

void LabForm::spacingChosen() {
  const bool custom = spacing_->value() == "custom";
  range_row_->setVisible(!custom);
  custom_row_->setVisible(custom);
}

// The kernels of the person's library that fit the operation.
void LabForm::showKernels() {
  const QStringList ticked = tickedKernels();
  const QSignalBlocker quiet(kernels_);
  kernels_->clear();
  const std::string fits = lab::kernel_contract(lab::LabSpec{.operation = operation()}, 1).signature();
  for (const KernelFile& file : kernel_files()) {
    if (file.signature != fits) continue;
    auto* item = new QListWidgetItem(QString::fromStdString(file.name), kernels_);
    item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsUserCheckable);
    item->setToolTip(tr("%1 · checked against the operation before it is timed").arg(QString::fromStdString(file.meaning)));
  }
  tickKernels(ticked);
  kernels_->setFixedHeight(kListRow * kernels_->count() + 2);
  kernels_->setVisible(kernels_->count() > 0);
}

QStringList LabForm::tickedKernels() const {
  QStringList names;
  for (int row = 0; row < kernels_->count(); ++row)
    if (kernels_->item(row)->checkState() == Qt::Checked) names << kernels_->item(row)->text();
  return names;
}

void LabForm::tickKernels(const QStringList& names) {
  for (int row = 0; row < kernels_->count(); ++row)
    kernels_->item(row)->setCheckState(names.contains(kernels_->item(row)->text()) ? Qt::Checked : Qt::Unchecked);
}

void LabForm::writeKernel() {
  try {
    lab::LabSpec spec;
    readOperation(spec);
    const std::string path = kernel_path(new_kernel_name(spec.name));
    write_new_kernel(path, own::first_version(lab::kernel_contract(spec, sizes().front())));
    showKernels();
    tickKernels(tickedKernels() << QFileInfo(QString::fromStdString(path)).fileName());
    emit said(tr("Written: %1. Change it in your editor, then press Measure.").arg(QString::fromStdString(path)));
  } catch (const Failure& failure) {
    emit said(QString::fromUtf8(failure.what()));
  }
}

lab::Operation LabForm::operation() const {
  return static_cast<lab::Operation>(operations_->currentItem()->data(Qt::UserRole).toInt());
}

// Offers only the variants that fit the operation and can run here.
void LabForm::operationChosen() {
  const lab::Operation wanted = operation();
  const bool product = wanted == lab::Operation::MatMul, gpu = whyNoGpu().isEmpty();
  depth_row_->setVisible(wanted == lab::Operation::Sine);
  shape_row_->setVisible(product);
  const auto possible = lab::ways_of(wanted);
  int missing = 0;
  for (auto& [way, check] : ways_) {
    const bool fits = std::find(possible.begin(), possible.end(), way) != possible.end(),
               here = !lab::info(way).gpu || gpu;
    check->setVisible(fits && here);
    check->setEnabled(here);
    missing += fits && !here;
    check->setChecked(fits && here && way != lab::Way::GpuCold);
  }
  showMissing(missing);
  emit operationSet(wanted);
  showKernels();
  from_->setText(product ? "16" : "2^10");
  if (product)
    to_->setText(gpu ? "4096" : "1024");
  else
    to_->setText(gpu ? "2^26" : "2^22");
}

std::vector<int64_t> LabForm::sizes() const {
  std::vector<int64_t> sizes;
  if (spacing_->value() == "custom") {
    for (const QString& part : custom_->text().split(',', Qt::SkipEmptyParts))
      sizes.push_back(lab::size_of_text(part.toStdString()));
    if (sizes.empty()) throw Failure("sizes: name at least one");
  } else {
    const int64_t from = lab::size_of_text(from_->text().toStdString()),
                  to = lab::size_of_text(to_->text().toStdString());
    if (to < from) throw Failure("sizes: the second must not be smaller than the first");
    const double factor = spacing_->value() == "root" ? std::sqrt(2.0) : 2.0;
    for (int i = 0; sizes.empty() || sizes.back() < to; ++i) {
      const auto size = static_cast<int64_t>(std::llround(static_cast<double>(from) * std::pow(factor, i)));
      if (size > to) break;
      if (sizes.empty() || size > sizes.back()) sizes.push_back(size);
    }
  }
  if (sizes.size() > kMostSizes) throw Failure("sizes: more than 200");
  return sizes;
}

void LabForm::readOperation(lab::LabSpec& spec) const {
  spec.operation = operation();
  spec.name = lab::to_string(spec.operation);
  spec.depth = depth_->value();
  if (spec.operation == lab::Operation::MatMul) spec.m = m_->value(), spec.k = k_->value();
}

lab::LabSpec LabForm::spec() const {
  lab::LabSpec spec;
  readOperation(spec);
  spec.repeats = repeats_->value();
  spec.warm_up = warm_up_->value();
  spec.seconds_per_point = seconds_->value();
  spec.longest_call_s = longest_->value();
  spec.seed = static_cast<uint64_t>(seed_->value());
  spec.cold_cache = cold_cache_->isChecked();
  spec.sizes = sizes();
  for (const auto& [way, check] : ways_)
    if (check->isVisibleTo(this) && check->isChecked()) spec.ways.push_back(way);
  for (const QString& name : tickedKernels())
    spec.kernels.push_back({name.toStdString(), own::read_source({{}, kernel_path(name.toStdString()), {}}).text});
  if (spec.kernels.size() > lab::kMostKernels) throw Failure("Tick at most four of your kernels.");
  if (spec.ways.empty()) throw Failure("Tick at least one built-in variant.");
  return spec;
}

void LabForm::setSpec(const lab::LabSpec& spec) {
  prepare();
  presets_->setCurrentIndex(0);
  emit pageChosen({});
  for (int row = 0; row < operations_->count(); ++row)
    if (operations_->item(row)->data(Qt::UserRole).toInt() == static_cast<int>(spec.operation))
      operations_->setCurrentRow(row);
  depth_->setValue(spec.depth);
  m_->setValue(static_cast<int>(spec.m));
  k_->setValue(static_cast<int>(spec.k));
  repeats_->setValue(spec.repeats);
  warm_up_->setValue(spec.warm_up);
  seconds_->setValue(spec.seconds_per_point);
  longest_->setValue(spec.longest_call_s);
  seed_->setValue(static_cast<double>(spec.seed));
  cold_cache_->setChecked(spec.cold_cache);
  QStringList kernels;
  for (const OwnKernelSource& kernel : spec.kernels) kernels << QFileInfo(QString::fromStdString(kernel.file)).fileName();
  tickKernels(kernels);
  bool doubling = true;
  for (size_t i = 1; i < spec.sizes.size(); ++i) doubling = doubling && spec.sizes[i] == 2 * spec.sizes[i - 1];
  QStringList sizes;
  for (int64_t size : spec.sizes) sizes << size_written(size);
  if (!sizes.empty()) {
    from_->setText(sizes.front());
    to_->setText(sizes.back());
    custom_->setText(sizes.join(", "));
    spacing_->setValue(doubling ? "2" : "custom");
    spacingChosen();
  }
  if (spec.ways.empty()) return;
  for (const auto& [way, check] : ways_)
    check->setChecked(check->isEnabled() && std::find(spec.ways.begin(), spec.ways.end(), way) != spec.ways.end());
}

void LabForm::loadPreset(int index) {
  const QString path = presets_->itemData(index).toString();
  if (path.isEmpty()) return emit pageChosen({});
  try {
    const nlohmann::json object = read_lab_file(path.toStdString());
    setSpec(lab::lab_spec_from_json(object));
    presets_->setCurrentIndex(index);
    emit pageChosen(QString::fromStdString(lab_page(object)));
  } catch (const std::exception& failure) {
    presets_->setCurrentIndex(0);
    emit said(QString::fromUtf8(failure.what()));
  }
}

void LabForm::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  prepare();
  showKernels();  // the library may have changed
}

void LabForm::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange)
    for (const auto& [way, check] : ways_) check->setIcon(lab_way_icon(way));
}

}  // namespace ws::app
