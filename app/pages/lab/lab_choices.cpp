// What is chosen at the left side of the laboratory, as the sweep that it stands for, and back.
#include <QCheckBox>
#include <QLineEdit>
#include <QListWidget>
#include <QSpinBox>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/pages/lab/lab_tab.h"
#include "app/core/lab/shipped_labs.h"
#include "app/widgets/segmented_row.h"
#include "engine/executor/executor.h"

namespace ws::app {
namespace {

constexpr size_t kMostSizes = 200;

// Large powers of two are easier to read as such.
QString size_written(int64_t size) {
  const auto bits = static_cast<uint64_t>(size);
  return size >= 1 << 16 && std::has_single_bit(bits) ? "2^" + QString::number(std::countr_zero(bits))
                                                      : QString::number(size);
}

}  // namespace

lab::Operation LabTab::operation() const {
  return static_cast<lab::Operation>(operations_->currentItem()->data(Qt::UserRole).toInt());
}

// Only what makes sense for the operation and can run here stays to choose.
void LabTab::operationChosen() {
  const lab::Operation wanted = operation();
  const bool product = wanted == lab::Operation::MatMul, gpu = device_info().cuda;
  expression_row_->setVisible(wanted == lab::Operation::Expression);
  depth_row_->setVisible(wanted == lab::Operation::Sine);
  source_row_->setVisible(wanted == lab::Operation::Expression || wanted == lab::Operation::Sine);
  shape_row_->setVisible(product);
  const auto possible = lab::ways_of(wanted);
  for (auto& [way, check] : ways_) {
    const bool fits = std::find(possible.begin(), possible.end(), way) != possible.end(),
               here = !lab::info(way).gpu || gpu;
    check->setVisible(fits);
    check->setEnabled(here);
    check->setChecked(fits && here && way != lab::Way::GpuCold);
  }
  from_->setText(product ? "16" : "2^10");
  to_->setText(product ? (gpu ? "4096" : "1024") : gpu ? "2^26" : "2^22");
}

std::vector<int64_t> LabTab::chosenSizes() const {
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

lab::LabSpec LabTab::spec() const {
  lab::LabSpec spec;
  spec.operation = operation();
  spec.name = lab::to_string(spec.operation);
  spec.expression = expression_->text().toStdString();
  spec.depth = depth_->value();
  if (spec.operation == lab::Operation::MatMul) spec.m = m_->value(), spec.k = k_->value();
  spec.repeats = repeats_->value();
  spec.warm_up = warm_up_->value();
  spec.seconds_per_point = seconds_->value();
  spec.longest_call_s = longest_->value();
  spec.seed = static_cast<uint64_t>(seed_->value());
  spec.cold_cache = cold_cache_->isChecked();
  if (spec.operation == lab::Operation::Expression) lab::Expression::parse(spec.expression);
  spec.sizes = chosenSizes();
  for (const auto& [way, check] : ways_)
    if (check->isVisibleTo(this) && check->isChecked()) spec.ways.push_back(way);
  if (spec.ways.empty()) throw Failure("ways: tick at least one");
  return spec;
}

void LabTab::setSpec(const lab::LabSpec& spec) {
  ready();
  for (int row = 0; row < operations_->count(); ++row)
    if (operations_->item(row)->data(Qt::UserRole).toInt() == static_cast<int>(spec.operation))
      operations_->setCurrentRow(row);
  expression_->setText(QString::fromStdString(spec.expression));
  depth_->setValue(spec.depth);
  m_->setValue(static_cast<int>(spec.m));
  k_->setValue(static_cast<int>(spec.k));
  repeats_->setValue(spec.repeats);
  warm_up_->setValue(spec.warm_up);
  seconds_->setValue(spec.seconds_per_point);
  longest_->setValue(spec.longest_call_s);
  seed_->setValue(static_cast<double>(spec.seed));
  cold_cache_->setChecked(spec.cold_cache);
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

void LabTab::loadPreset(const QString& path) {
  page_.clear();
  if (!path.isEmpty()) {
    try {
      const nlohmann::json object = read_lab_file(path.toStdString());
      setSpec(lab::lab_spec_from_json(object));
      page_ = QString::fromStdString(lab_page(object));
    } catch (const std::exception& failure) {
      say(QString::fromUtf8(failure.what()));
    }
  }
  showStory();
}

}  // namespace ws::app
