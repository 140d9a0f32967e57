// The dialog to record a CUDA or Python program, with the same options as `warpsight record`.
#pragma once
#include <QDialog>
#include <QStringList>

#include "profiling/recording/record_environment.h"

class QCheckBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QVBoxLayout;

namespace ws::app {

class SegmentedRow;

class RecordDialog : public QDialog {
  Q_OBJECT
 public:
  // `machine`: another machine, on which the program will run; empty: it runs here.
  explicit RecordDialog(const QString& machine = {}, QWidget* parent = nullptr);
  QStringList command() const;
  prof::RecordOptions options() const;
  void accept() override;  // also stores the choices
  static constexpr int kOtherMachine = 2;  // result of exec(): the user wants to choose the machine first

 private:
  void buildProgram();
  void buildMachine();
  void buildFolder();
  void buildLevels();
  void buildPython();
  void buildParts();
  void buildEnd(QVBoxLayout& column);
  void followTraceLevel();
  QLabel* hint(const QString& sentence);
  void recall();
  void keep() const;
  QString folderKey() const;
  void check();

  QString machine_;
  QLineEdit *command_, *folder_, *window_;
  SegmentedRow *level_ = nullptr, *python_ = nullptr;
  prof::TraceLevel before_ = prof::TraceLevel::Full;
  QCheckBox *captures_, *counters_, *xray_;
  QFormLayout* form_;
  QLabel *level_hint_ = nullptr, *python_hint_ = nullptr, *verdict_;
  QPushButton* record_;
};

}  // namespace ws::app
