// The source around a line of a recorded program, with what each line takes of a step in the margin, and the samples of a kernel.
#pragma once
#include <QAbstractTableModel>
#include <QTableView>
#include <map>

#include "profiling/analysis/source_lines.h"
#include "profiling/analysis/stalls.h"

class QLabel;

namespace ws::app {

class InstructionView;
class Run;

class SourceModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Time, Samples, Number, Text, Columns };
  using QAbstractTableModel::QAbstractTableModel;
  // `times`: ns by line; `steps`: how many steps they are of, 0: not known, the times are of the whole run.
  void setSource(std::vector<std::string> lines, std::map<int, int64_t> times, int64_t steps, const std::vector<prof::StallRow>& stalls);
  const prof::StallRow* stallsOf(int row) const;  // nullptr: this line has no samples
  uint64_t mostSamples() const { return most_; }
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : Columns; }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<std::string> lines_;
  std::map<int, int64_t> times_;
  int64_t steps_ = 0;
  std::map<int, prof::StallRow> stalls_;  // by line
  uint64_t most_ = 0;
};

class SourceView : public QWidget {
  Q_OBJECT
 public:
  explicit SourceView(QWidget* parent = nullptr);
  // A note appears if the file is gone or was changed since it was recorded.
  void showLine(const Run& run, const prof::SourcePlace& place, std::map<int, int64_t> times, int64_t steps, const std::vector<prof::StallRow>& stalls = {});
  // The instructions of the shown kernel, linked to its lines. No rows: hidden.
  void setInstructions(std::vector<prof::StallRow> rows, const QString& sentence);
  void showNoSource(const std::string& file);  // of a kernel that has instructions only; `file`: empty: not known
  InstructionView* instructions() const { return instructions_; }
  QTableView* table() const { return table_; }
  QString note() const;

 private:
  SourceModel model_;
  prof::SourcePlace shown_;
  QTableView* table_;
  InstructionView* instructions_;
  QLabel* note_;
};

}  // namespace ws::app
