// Beside each line of the editor, how many samples were taken there and what its warps waited for.
#pragma once
#include <QWidget>
#include <map>
#include <vector>

#include "profiling/analysis/stalls.h"

class QsciScintilla;

namespace ws::app {

class StallMargin : public QWidget {
  Q_OBJECT
 public:
  explicit StallMargin(QsciScintilla* editor, QWidget* parent = nullptr);
  void setLines(const std::vector<prof::StallRow>& lines);  // hidden without lines
  const std::map<int, prof::StallRow>& lines() const { return lines_; }
  QRect barOf(int line) const;  // of its whole bar; empty if the line is not seen or has no samples
  QString tipOf(int line) const;
  QSize sizeHint() const override { return {kWidth, 100}; }

 protected:
  void paintEvent(QPaintEvent*) override;
  bool event(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  static constexpr int kWidth = 132, kNumber = 44, kBar = 80;
  int lineAt(int y) const;
  QRect rowOf(int line) const;
  void paintLine(QPainter& painter, const prof::StallRow& row) const;

  QsciScintilla* editor_;
  std::map<int, prof::StallRow> lines_;  // by number
  uint64_t most_ = 0;
};

// The five groups with their shares, and how many samples there are. Without samples one sentence says why.
class StallLegend : public QWidget {
  Q_OBJECT
 public:
  explicit StallLegend(QWidget* parent = nullptr);
  void setLines(const std::vector<prof::StallRow>& lines);
  void setSentence(const QString& sentence);
  QString text() const;  // as it is read
  QSize sizeHint() const override { return {300, 24}; }
  QSize minimumSizeHint() const override { return {120, 24}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  QString amount() const;

  prof::StallGroupCounts counts_{};
  uint64_t samples_ = 0, elsewhere_ = 0;
  QString sentence_;
};

}  // namespace ws::app
