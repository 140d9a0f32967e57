// The dialog for a new experiment: which choices to vary around the setup, and over which values.
#pragma once
#include <QDialog>
#include <vector>

#include "app/core/experiments/experiment.h"

class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;
class QVBoxLayout;

namespace ws::app {

class ExperimentDialog : public QDialog {
  Q_OBJECT
 public:
  explicit ExperimentDialog(const RunSpec& base, QWidget* parent = nullptr);
  ExperimentSpec spec() const;  // throws Failure that names the value
  void choose(const std::string& key, const std::vector<std::string>& values);
  void setName(const QString& name);
  bool ready() const;

 private:
  struct Axis {
    std::string key;
    std::vector<QPushButton*> buttons;  // one per value
    QLineEdit* text = nullptr;          // or values as text
  };
  QWidget* buildAxes();
  void addAxis(const Field& field, QVBoxLayout& column);
  std::vector<std::string> valuesOf(const Axis& axis) const;
  void refresh();

  RunSpec base_;
  std::vector<Axis> axes_;
  QLineEdit* name_;
  QSpinBox* repeats_;
  QLabel* count_;
  QPushButton* make_;
};

}  // namespace ws::app
