// Shows where the time of a step goes: one bar per run, with the step time at its end, and a table of the parts, which sum
// to it.
#pragma once
#include <QPointer>

#include "app/widgets/pane.h"
#include "app/workspace/run.h"

namespace ws::app {

struct SplitRow {
  prof::Meaning meaning;
  QString name;
  std::vector<double> us;  // per run, rounded so that each column adds up: "other" takes the rest
  prof::PartKind kind = prof::PartKind::OfMeaning;
  double share = 0;        // of the first run's step, not rounded: other pages say the same
};
struct SplitTable {
  std::vector<SplitRow> rows;
  std::vector<double> wall;  // the step time of each run
  bool in_ms = false;        // one unit for the whole table
  bool thousandths = false;  // of ms: the shortest step is below 1 ms
  int decimals() const { return !in_ms ? 1 : thousandths ? 3 : 2; }  // as many as the step time has
  QString text(double time) const;
};
// `merged`: kernels that compute become one row, "kernels".
SplitTable split_table(const std::vector<const StepSplit*>& splits, bool merged);

class SplitPane : public Pane {
  Q_OBJECT
 public:
  explicit SplitPane(QWidget* parent = nullptr);
  void setRuns(const std::vector<Run*>& runs);
  void setCompact(bool compact);
  QSize minimumSizeHint() const override { return {220, 120}; }
  int wantedHeight() const;  // for all rows

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void refresh();
  QString speedText() const;
  QString endText(size_t run) const;  // text at the end of a bar: the step time
  double paintBars(QPainter& painter, double top);
  void paintTable(QPainter& painter, double top);
  void paintHeading(QPainter& painter, double left, double top);
  void paintWaits(QPainter& painter, double top);
  void paintSum(QPainter& painter, double left, double top, double pitch);
  void paintRow(QPainter& painter, const SplitRow& row, double left, double y, double height);
  void paintNumbers(QPainter& painter, const std::vector<double>& us, double share, double left, double y, double height);
  bool differences() const;
  size_t columns() const;  // of numbers
  double columnPitch() const;
  double columnRight(double left, size_t column) const;  // of the table that begins at `left`
  struct Tables {
    size_t count = 1, rows = 0;  // rows of each
    double width = 0;            // of each
  };
  Tables tables() const;
  bool isWide() const;
  double barHeight() const;
  double tableTop() const;
  double tightHeight() const;
  void paintNames(QPainter& painter, double top);
  QString wordAt(QPointF at) const;

  std::vector<QPointer<Run>> runs_;
  SplitTable table_;
  bool compact_ = false, merged_ = false;  // merged: rows of kernels are one
  std::vector<std::pair<QRectF, QString>> words_;  // painted and underlined, with the tip of each
};

}  // namespace ws::app
