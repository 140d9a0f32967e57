// The hidden layers as rows: each has a width, its number of parameters, and buttons to move, double and remove it.
#pragma once
#include <QWidget>
#include <vector>

#include "engine/plan/run_spec.h"

class QGridLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QToolButton;

namespace ws::app {

class LayerEditor : public QWidget {
  Q_OBJECT
 public:
  explicit LayerEditor(QWidget* parent = nullptr);
  void setSpec(const RunSpec& spec);
  void showWrong(const QString& why);  // stays until the next change; empty if all is well
  QString wrong() const;
  size_t layers() const { return widths_.size(); }
  QLineEdit* width(size_t layer) const { return rows_[layer].width; }
  static QString text(const std::vector<int64_t>& widths);  // "128,64"

 signals:
  void edited(const QString& widths);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;  // Alt with the arrow keys moves a layer

 private:
  struct Row {
    QLabel* number = nullptr;
    QLineEdit* width = nullptr;
    QLabel* parameters = nullptr;
    std::vector<QToolButton*> buttons;  // up, down, double, remove
  };
  Row makeRow(size_t layer);
  void fitRows();
  void refreshRow(size_t layer, int64_t inputs, bool bias);
  void refreshOutputs(const RunSpec& spec, int64_t inputs, int64_t outputs);
  void commit(size_t layer);
  void act(size_t layer, int what);
  void change(std::vector<int64_t> widths, size_t focus);

  std::vector<int64_t> widths_;
  std::vector<Row> rows_;
  QGridLayout* grid_;
  QLabel *outputs_name_, *outputs_, *outputs_parameters_, *wrong_;
  QPushButton* add_;
};

}  // namespace ws::app
