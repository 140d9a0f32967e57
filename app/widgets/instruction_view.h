// The machine instructions of a kernel with their samples: all instructions, or one source line's.
#pragma once
#include <QAbstractTableModel>
#include <QWidget>
#include <vector>

#include "profiling/analysis/stalls.h"

class QLabel;
class QPushButton;
class QTableView;

namespace ws::app {

class InstructionModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Samples, Line, Text, Columns };
  using QAbstractTableModel::QAbstractTableModel;
  void setRows(std::vector<prof::StallRow> rows);
  void showLine(const std::string& file, int line);  // 0: all
  const prof::StallRow& row(int shown) const { return rows_[shown_[static_cast<size_t>(shown)]]; }
  uint64_t mostSamples() const { return most_; }
  size_t all() const { return rows_.size(); }
  int rowCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : static_cast<int>(shown_.size()); }
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : Columns; }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<prof::StallRow> rows_;
  std::vector<size_t> shown_;
  uint64_t most_ = 0;
};

class InstructionView : public QWidget {
  Q_OBJECT
 public:
  explicit InstructionView(QWidget* parent = nullptr);
  // `sentence`: why there are no texts, or no instructions; empty: nothing is missing.
  void setRows(std::vector<prof::StallRow> rows, const QString& sentence);
  void showLine(const std::string& file, int line);  // 0: all
  const InstructionModel& model() const { return model_; }
  QTableView* table() const { return table_; }
  QString title() const;
  QString sentence() const;

 signals:
  void chosen(const QString& file, int line);  // an instruction of this line

 private:
  void showTitle();

  InstructionModel model_;
  std::string file_;
  int line_ = 0;
  QTableView* table_;
  QLabel *title_, *note_;
  QPushButton* all_;
};

}  // namespace ws::app
