// What one head attends to: a row for each symbol of a sentence, and in it the share that it takes from each symbol before.
#pragma once
#include <QStringList>
#include <QWidget>
#include <span>
#include <vector>

namespace ws::app {

class AttentionView : public QWidget {
  Q_OBJECT
 public:
  explicit AttentionView(QWidget* parent = nullptr);
  void setMap(QStringList symbols, std::vector<float> shares);  // (symbols, symbols), row by row; empty: nothing
  QString sentenceAt(QPointF at) const;  // "“e” at 9 looks at “b” at 8: 83 %"; empty outside of the map
  QSize sizeHint() const override { return {340, 340}; }
  QSize minimumSizeHint() const override { return {160, 160}; }

 signals:
  void hovered(const QString& sentence);

 protected:
  void paintEvent(QPaintEvent*) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  QRectF map() const;
  void paintLetters(QPainter& painter, const QRectF& box, double cell) const;

  QStringList symbols_;
  std::vector<float> shares_;
  int row_ = -1;  // under the pointer
};

// The same map without letters, for a choice among heads.
QImage attention_image(std::span<const float> shares, int symbols);

}  // namespace ws::app
