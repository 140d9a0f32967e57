// The laboratory: choose an operation, sizes and ways; watch the curves grow; read crossovers and ceilings.
#pragma once
#include <QPointer>
#include <QWidget>
#include <map>
#include <vector>

#include "app/lab/lab_chart.h"
#include "app/lab/lab_job.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;
class QTableWidget;
class QVBoxLayout;

namespace ws::app {

class MainWindow;
class SegmentedRow;
void add_lab(MainWindow& window);

class LabTab : public QWidget {
  Q_OBJECT
 public:
  explicit LabTab(QWidget* parent = nullptr);
  lab::LabSpec spec() const;  // as chosen; throws Failure for an expression that is wrong
  void setSpec(const lab::LabSpec& spec);
  void run();
  const LabJob& job() const { return *job_; }
  LabChart* chart() const { return chart_; }
  bool openResult(const QString& path);  // an earlier sweep, or the PyTorch script's, laid over
  void exportTo(const QString& path);    // png, svg, pdf, csv or json by the name's ending

 private:
  QWidget* buildSetup();
  QWidget* buildFooter();
  void buildOperations(QVBoxLayout* column);
  void buildSizes(QVBoxLayout* column);
  void buildWays(QVBoxLayout* column);
  void buildMeasure(QVBoxLayout* column);
  QWidget* buildCharts();
  void operationChosen();
  void loadPreset(const QString& path);
  void showResult();
  void showCrossovers();
  void showStory();
  void setCursorSize(double size);
  void chooseExport();

  LabJob* job_;
  QListWidget* operations_;
  QLineEdit *from_, *to_, *expression_;
  QSpinBox *depth_, *repeats_;
  QCheckBox* cold_cache_;
  QWidget *expression_row_, *depth_row_;
  std::map<lab::Way, QCheckBox*> ways_;
  QComboBox* presets_;
  QPushButton *run_, *export_;
  QLabel *state_, *title_, *story_title_, *story_;
  LabChart *chart_, *throughput_;
  QTableWidget* crossovers_;
  std::vector<lab::LabResult> overlays_;
  QString page_;  // text of the chosen preset
};

}  // namespace ws::app
