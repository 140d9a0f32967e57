// A flame graph: the width of a block is time, and a caller stands above the functions it calls. A click makes a
// function as wide as the view. Escape, or a click above the function, goes back.
#pragma once
#include <QColor>
#include <QWidget>
#include <vector>

#include "profiling/analysis/flame_tree.h"

namespace ws::app {

class FlameView : public QWidget {
  Q_OBJECT
 public:
  explicit FlameView(QWidget* parent = nullptr);
  void setTree(prof::FlameTree tree);      // keeps the zoom if the function is still there
  void setDifference(bool on);             // colours show slower or faster than the baseline
  void setRootText(const QString& text);   // what all blocks together are
  void setSharesOfThreads(bool on);        // below the threads, which are the first blocks; otherwise of all
  void setEmptyText(const QString& text);
  void setSearch(const QString& words);    // matching functions are marked
  double matched() const { return matched_; }  // share of the time in matching functions
  void zoomTo(uint32_t node);
  uint32_t zoomed() const { return zoomed_; }
  const prof::FlameTree& tree() const { return tree_; }
  QRectF placeOf(uint32_t node) const;  // empty if too narrow, or outside the zoom
  QString labelOf(uint32_t node) const;  // its name, and where there is space its share and time
  QColor colourOf(uint32_t node) const { return colour(tree_[node]); }
  struct LegendEntry {
    QString text;
    QColor colour;  // not valid: text alone
  };
  std::vector<LegendEntry> legend() const;  // what the colours mean
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {320, 120}; }

 signals:
  void zoomChanged();
  void searched();

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent*) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent*) override;

 private:
  struct Block {
    uint32_t node;
    QRectF box;
  };
  void layOut();
  void layOutInside(uint32_t node, double left, double width);
  void find();
  double weight(const prof::FlameNode& node) const;
  double share(uint32_t index) const;
  int nodeAt(QPointF at) const;  // -1 if there is none
  QColor colour(const prof::FlameNode& node) const;
  QString tip(uint32_t node) const;
  QString label(uint32_t node, double width) const;
  void paintBlock(QPainter& painter, const Block& block) const;
  void paintLegend(QPainter& painter) const;

  prof::FlameTree tree_;
  std::vector<Block> blocks_;
  std::vector<bool> matches_;
  QString words_, empty_, root_ = tr("all threads");
  double matched_ = 0;
  uint32_t zoomed_ = 0;
  int hovered_ = -1;
  bool difference_ = false, of_threads_ = false;
};

}  // namespace ws::app
