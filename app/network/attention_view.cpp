#include "app/network/attention_view.h"

#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kLetters = 16, kScale = 26;  // height of the letters above the map, and of the scale below it
const QColor kMiddle(0xF0, 0x96, 0x1E), kEnd(0xFF, 0xF1, 0xC9);

int between(int from, int to, double share) { return static_cast<int>(from + (to - from) * share); }

// From the panel over orange to pale; dark ends are for shares near zero in both themes.
QRgb share_colour(double share) {
  const bool low = share < 0.5;
  const QColor from = low ? theme().base : kMiddle, to = low ? kMiddle : theme().dark() ? kEnd : QColor(0x6E, 0x30, 0x0E);
  const double s = std::clamp(low ? share * 2 : share * 2 - 1, 0.0, 1.0);
  return qRgb(between(from.red(), to.red(), s), between(from.green(), to.green(), s), between(from.blue(), to.blue(), s));
}

QString shown_symbol(const QString& symbol) { return symbol == " " ? QString(QChar(0x2423)) : symbol == "\n" ? QString(QChar(0x21B5)) : symbol; }

}  // namespace

QImage attention_image(std::span<const float> shares, int symbols) {
  QImage image(symbols, symbols, QImage::Format_RGB32);
  for (int row = 0; row < symbols; ++row)
    for (int column = 0; column < symbols; ++column)
      image.setPixel(column, row, share_colour(static_cast<double>(shares[static_cast<size_t>(row * symbols + column)])));
  return image;
}

AttentionView::AttentionView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Attention of one head"));
  setMouseTracking(true);
}

void AttentionView::setMap(QStringList symbols, std::vector<float> shares) {
  symbols_ = std::move(symbols);
  shares_ = std::move(shares);
  update();
}

QRectF AttentionView::map() const {
  const double side = std::max(0.0, std::min(width() - kLetters - 12, height() - kLetters - kScale - 6));
  return {(width() - side - kLetters) / 2 + kLetters, kLetters + 2, side, side};
}

QString AttentionView::sentenceAt(QPointF at) const {
  const QRectF box = map();
  const auto count = static_cast<double>(symbols_.size());
  if (symbols_.isEmpty() || !box.contains(at)) return {};
  const int row = static_cast<int>((at.y() - box.top()) / box.height() * count);
  const int column = static_cast<int>((at.x() - box.left()) / box.width() * count);
  if (column > row || row >= symbols_.size()) return tr("the future is hidden");
  const float share = shares_[static_cast<size_t>(row) * static_cast<size_t>(symbols_.size()) + static_cast<size_t>(column)];
  return tr("“%1” at %2 takes %3 % from “%4” at %5")
      .arg(shown_symbol(symbols_[row]), QString::number(row + 1), fixed_text(100 * static_cast<double>(share), 0),
           shown_symbol(symbols_[column]), QString::number(column + 1));
}

void AttentionView::paintLetters(QPainter& painter, const QRectF& box, double cell) const {
  if (cell < 9) return;  // letters would touch
  painter.setFont(mono_font(std::min(11.5, cell)));
  for (int i = 0; i < symbols_.size(); ++i) {
    painter.setPen(i == row_ ? theme().text : theme().secondary);
    painter.drawText(QRectF(box.left() - kLetters, box.top() + cell * i, kLetters - 3, cell), Qt::AlignCenter, shown_symbol(symbols_[i]));
    painter.drawText(QRectF(box.left() + cell * i, box.top() - kLetters, cell, kLetters), Qt::AlignCenter, shown_symbol(symbols_[i]));
  }
}

void AttentionView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& t = theme();
  const QRectF box = map();
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  if (!symbols_.isEmpty()) {
    painter.drawImage(box, attention_image(shares_, static_cast<int>(symbols_.size())));
    paintLetters(painter, box, box.height() / static_cast<double>(symbols_.size()));
  }
  painter.setPen(t.border);
  painter.drawRect(box);
  if (row_ >= 0 && row_ < symbols_.size()) {
    const double cell = box.height() / static_cast<double>(symbols_.size());
    painter.setPen(QPen(t.text, 1.5));
    painter.drawRect(QRectF(box.left(), box.top() + cell * row_, box.width(), cell));
  }
  QLinearGradient ramp(box.left() + 24, 0, box.right() - 40, 0);
  for (const double stop : {0.0, 0.25, 0.5, 0.75, 1.0}) ramp.setColorAt(stop, share_colour(stop));
  painter.fillRect(QRectF(box.left() + 24, box.bottom() + 10, std::max(0.0, box.width() - 64), 8), ramp);
  painter.setFont(ui_font(11));
  painter.setPen(t.quiet);
  painter.drawText(QRectF(box.left(), box.bottom() + 5, 20, 18), Qt::AlignVCenter, "0");
  painter.drawText(QRectF(box.right() - 38, box.bottom() + 5, 40, 18), Qt::AlignVCenter | Qt::AlignRight, "100 %");
}

void AttentionView::mouseMoveEvent(QMouseEvent* event) {
  const QRectF box = map();
  row_ = symbols_.isEmpty() || !box.contains(event->position())
             ? -1
             : static_cast<int>((event->position().y() - box.top()) / box.height() * static_cast<double>(symbols_.size()));
  emit hovered(sentenceAt(event->position()));
  update();
}

void AttentionView::leaveEvent(QEvent*) {
  row_ = -1;
  emit hovered({});
  update();
}

}  // namespace ws::app
