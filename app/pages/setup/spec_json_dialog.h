// A dialog to read, copy and edit the choices as JSON. It shows errors below while typing.
#pragma once
#include <QDialog>

#include "engine/plan/run_spec.h"

class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace ws::app {

class SpecJsonDialog : public QDialog {
  Q_OBJECT
 public:
  explicit SpecJsonDialog(const RunSpec& spec, QWidget* parent = nullptr);
  const RunSpec& spec() const { return spec_; }
  QPlainTextEdit* editor() const { return editor_; }

 private:
  void check();
  RunSpec spec_;
  QPlainTextEdit* editor_;
  QLabel* verdict_;
  QPushButton* accept_;
};

}  // namespace ws::app
