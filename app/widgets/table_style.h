// Tables and small parts that the panels share.
#pragma once
#include <QTableView>
#include <QWidget>
#include <vector>

class QLabel;

namespace ws::app {

class Pane;

// Dense rows, no grid, whole rows selected, the keyboard moves by row.
void style_table(QTableView& table, const QString& name);
// Makes the table the body of the pane; what is given stands there in words while the table is hidden.
QLabel* put_table(Pane& pane, QTableView* table);
// The ground and edges that the style sheet gives a "header", a "footer" or a "panel".
void style_ground(QWidget& widget, const QString& part);
// The line over a panel of the right side.
void style_panel_title(QLabel& title);
// In the first column: the colour square of the meaning stored under this role.
constexpr int kMeaningRole = Qt::UserRole + 1;
constexpr int kSectionRole = Qt::UserRole + 2;  // true: the row is a heading over the rows below
constexpr int kSortRole = Qt::UserRole + 3;

// A line of numbers over a page: small name above, figure below.
struct Figure {
  QString name, value, note;
};
class FigureStrip : public QWidget {
  Q_OBJECT
 public:
  explicit FigureStrip(QWidget* parent = nullptr);
  void setFigures(std::vector<Figure> figures);
  const std::vector<Figure>& figures() const { return figures_; }
  QSize sizeHint() const override { return {400, 58}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  std::vector<Figure> figures_;
};

// Bars of a histogram; x and y on log axes where asked.
struct HistogramData {
  double low = 0, high = 1;
  std::vector<double> counts, ghost;  // ghost: outlined behind, same bins
  QString unit, caption, ghost_caption;
  QString low_text, high_text;  // of the ends, where a number and the unit do not say it
  bool log_x = false;
};
HistogramData histogram_of(const std::vector<double>& values, size_t bins, bool log_x);
class HistogramView : public QWidget {
  Q_OBJECT
 public:
  explicit HistogramView(const QString& name, QWidget* parent = nullptr);
  void setData(HistogramData data, const QColor& fill);
  const HistogramData& data() const { return data_; }
  QSize sizeHint() const override { return {240, 110}; }
  QSize minimumSizeHint() const override { return {120, 70}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  HistogramData data_;
  QColor fill_;
};

}  // namespace ws::app
