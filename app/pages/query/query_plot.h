// The answer of a query as a plot: one column over another, as lines or dots, or as bars beside names.
#pragma once
#include <QString>
#include <map>
#include <vector>

#include "app/charts/plot.h"
#include "profiling/base/table.h"

namespace ws::app {

struct QuerySeries {
  QString name;  // empty if there is only one
  std::vector<double> x, y;
  bool line = false;  // x never goes back: the points are joined
};

struct QueryPicture {
  QString why_empty;           // a sentence if there is nothing to draw
  QString left_out;            // a sentence if not all of the answer is drawn
  int x = -1, y = -1;          // columns; x is -1 for the number of the row
  std::vector<QString> names;  // of the bars; empty: series over numbers
  std::vector<QuerySeries> series;
};

// The columns that a table is best drawn by: bars if it has names and few rows, else the first number as x. x and y are
// columns that the user chose, or -1.
QueryPicture query_picture(const Table& table, int x = -1, int y = -1);

class QueryPlot : public Plot {
  Q_OBJECT
 public:
  explicit QueryPlot(QWidget* parent = nullptr);
  void setRunColours(std::map<QString, int> of_runs) { run_slots_ = std::move(of_runs); }  // by the name of a run in the answer
  void setPicture(QueryPicture picture, const Table& table);
  const QueryPicture& picture() const { return picture_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void draw();
  void drawBars();
  void drawSeries();
  void showKey();  // which colour is which series
  QColor colourOf(size_t series) const;

  QueryPicture picture_;
  QString x_name_, y_name_;
  std::map<QString, int> run_slots_;
};

}  // namespace ws::app
