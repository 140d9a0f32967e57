// The dialog to record any CUDA program, with the same options as `warpscope-cli record`.
#pragma once
#include <QDialog>
#include <QStringList>

#include "profiling/recording/record_program.h"

class QCheckBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QPushButton;

namespace ws::app {

class SegmentedRow;

class RecordDialog : public QDialog {
  Q_OBJECT
 public:
  explicit RecordDialog(QWidget* parent = nullptr);
  QStringList command() const;
  prof::RecordOptions options() const;
  void accept() override;  // also stores the choices

 private:
  void buildLevels();
  QLabel* hint(const QString& sentence);
  void recall();
  void check();

  QLineEdit *command_, *window_;
  SegmentedRow* level_ = nullptr;
  QCheckBox* counters_;
  QFormLayout* form_;
  QLabel *level_hint_ = nullptr, *verdict_;
  QPushButton* record_;
};

}  // namespace ws::app
