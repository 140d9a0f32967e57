// The key of a timeline or a table: a coloured square and a name for each kind of work that is in it.
#pragma once
#include <QWidget>
#include <set>
#include <vector>

#include "app/workspace/run.h"
#include "profiling/analysis/step_breakdown.h"

namespace ws::app {

class MeaningLegend : public QWidget {
  Q_OBJECT
 public:
  explicit MeaningLegend(QWidget* parent = nullptr);
  QSize sizeHint() const override { return {200, heightForWidth(width())}; }
  QSize minimumSizeHint() const override { return {0, 20}; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  void setRuns(const std::vector<const Run*>& runs);  // names only what their traces have
  void setMeanings(const std::set<prof::Meaning>& meanings);
  void setParts(const std::vector<prof::PartId>& parts);  // of steps, where launch gaps are drawn as idle time
  QStringList names() const;

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  void show(std::vector<size_t> entries);
  std::vector<QPoint> places(int width) const;  // of the squares of shown_

  std::vector<size_t> shown_;
};

}  // namespace ws::app
