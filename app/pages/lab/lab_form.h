// The left side of the laboratory: what to run, over which sizes, in which variants, how to measure.
#pragma once
#include <QWidget>
#include <map>
#include <optional>

#include "app/core/lab/shipped_labs.h"
#include "app/pages/lab/lab_scene.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QSpinBox;
class QVBoxLayout;

namespace ws::app {

class SegmentedRow;

class LabForm : public QWidget {
  Q_OBJECT
 public:
  explicit LabForm(QWidget* parent = nullptr);
  lab::LabSpec spec() const;  // throws Failure for a wrong size or too many kernels
  void setSpec(const lab::LabSpec& spec);
  std::vector<int64_t> sizes() const;  // throws Failure for a wrong size
  bool recordsPoints() const;
  bool ownChoices() const;  // no shipped sweep is chosen
  std::optional<ShippedLab> shipped() const;  // the chosen preset, else the first of the chosen operation
  void setGpu(bool there, const QString& why_not);  // of the other machine that measures
  void setThisMachine();                            // this machine measures again
  QString whyNoGpu() const;                         // empty if the machine that measures has one
  void prepare();  // asks the machine what it supports, once

 signals:
  void operationSet(lab::Operation operation);
  void prepared();
  void clockChosen(ws::app::LabClock clock);
  void pageChosen(const QString& text);  // text of a shipped sweep; empty for own choices
  void said(const QString& sentence);

 protected:
  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  QWidget* buildHead();
  void buildOperations(QVBoxLayout* column);
  void buildSizes(QVBoxLayout* column);
  void buildWays(QVBoxLayout* column);
  void buildKernels(QVBoxLayout* column);
  void buildMeasure(QVBoxLayout* column);
  void buildLimits();
  lab::Operation operation() const;
  void operationChosen();
  void setWhyNoGpu(const std::optional<QString>& why);
  void showMissing(int variants);
  void spacingChosen();
  void showKernels();
  QStringList tickedKernels() const;
  void tickKernels(const QStringList& names);
  void writeKernel();
  void readOperation(lab::LabSpec& spec) const;
  void loadPreset(int index);
  void watchEdits(QWidget& fields);

  QListWidget *operations_, *kernels_;
  QLineEdit *from_, *to_, *custom_;
  QSpinBox *depth_, *m_, *k_, *repeats_, *warm_up_;
  QDoubleSpinBox *seconds_, *longest_, *seed_;
  SegmentedRow *spacing_, *clock_;
  QCheckBox *cold_cache_, *record_;
  QWidget *depth_row_, *range_row_, *custom_row_, *shape_row_;
  std::map<lab::Way, QCheckBox*> ways_;
  QLabel* missing_;
  QComboBox* presets_;
  bool prepared_ = false;
  std::optional<QString> why_no_gpu_;  // empty: there is one; nullopt: as this machine says
};

}  // namespace ws::app
