// Small pictures side by side, as large as they fit: filters, feature maps, misread pictures, heads.
#pragma once
#include <QImage>
#include <QString>
#include <QWidget>
#include <vector>

class QPainter;

namespace ws::app {

struct Tile {
  QImage image;
  QString label, tip;  // the label stands below; all tiles have one or none
  bool wrong = false;  // a misread picture: its label is in the worse colour
};

// How many columns make `count` squares as large as possible, and their side. `below`: height of a label.
struct TileLayout {
  int columns = 1, shown = 0;
  double side = 0;
};
TileLayout layout_tiles(QSizeF area, int count, double below, double least, double most);

class TileView : public QWidget {
  Q_OBJECT
 public:
  explicit TileView(const QString& name, QWidget* parent = nullptr);
  void setTiles(std::vector<Tile> tiles);
  void setSides(double least, double most) { least_ = least; most_ = most; }
  void setChosen(int tile);  // -1: none. A view with a chosen tile can be clicked.
  void setPickable(bool pickable);
  int chosen() const { return chosen_; }
  const std::vector<Tile>& tiles() const { return tiles_; }
  int shown() const;  // tiles that fit
  QSize sizeHint() const override { return {200, 120}; }
  QSize minimumSizeHint() const override { return {80, 40}; }

 signals:
  void picked(int tile);

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  TileLayout layout() const;
  QRectF place(const TileLayout& by, int tile) const;
  int tileAt(QPointF at) const;  // -1: none
  double labelHeight() const;

  std::vector<Tile> tiles_;
  double least_ = 12, most_ = 120;
  int chosen_ = -1;
  bool pickable_ = false;
};

}  // namespace ws::app
