#include "tests/app/support/painted_text.h"

#include <QPaintDevice>
#include <QPaintEngine>
#include <QPainter>
#include <QWidget>
#include <algorithm>

#include "app/charts/plot.h"

namespace {

// A painter's device that keeps the texts and forgets what else is drawn, but for grounds that hide texts under them.
class TextSpy : public QPaintDevice, private QPaintEngine {
 public:
  explicit TextSpy(const QSize& size) : QPaintEngine(QPaintEngine::AllFeatures), size_(size) {}
  QPaintEngine* paintEngine() const override { return const_cast<TextSpy*>(this); }
  std::vector<PaintedText> texts;

 private:
  bool begin(QPaintDevice*) override { return true; }
  bool end() override { return true; }
  void updateState(const QPaintEngineState&) override {}
  Type type() const override { return User; }
  void drawPixmap(const QRectF&, const QPixmap&, const QRectF&) override {}
  void drawTiledPixmap(const QRectF&, const QPixmap&, const QPointF&) override {}
  void drawImage(const QRectF&, const QImage&, const QRectF&, Qt::ImageConversionFlags) override {}
  void drawPolygon(const QPointF*, int, PolygonDrawMode) override {}
  void drawPolygon(const QPoint*, int, PolygonDrawMode) override {}
  void drawLines(const QLineF*, int) override {}
  void drawLines(const QLine*, int) override {}
  void drawPoints(const QPointF*, int) override {}
  void drawEllipse(const QRectF&) override {}
  void drawPath(const QPainterPath& path) override {
    if (path.elementCount() <= 17) hide(path.boundingRect());  // a rounded card, not a curve
  }
  void drawRects(const QRectF* rects, int count) override {
    for (int i = 0; i < count; ++i) hide(rects[i]);
  }
  void drawRects(const QRect* rects, int count) override {
    for (int i = 0; i < count; ++i) hide(rects[i]);
  }
  void drawTextItem(const QPointF& at, const QTextItem& item) override {
    const QTransform place = painter()->deviceTransform();
    PaintedText now{item.text(),
                    place.mapRect(QRectF(at.x(), at.y() - item.ascent(), item.width(), item.ascent() + item.descent())),
                    QRectF(QPointF(), size_)};
    if (now.text.trimmed().isEmpty()) return;
    if (painter()->hasClipping()) now.clip &= place.mapRect(painter()->clipBoundingRect());
    if (!now.box.intersects(now.clip)) return;
    if (!texts.empty()) {  // figures are drawn one by one
      PaintedText& last = texts.back();
      const double gap = now.box.left() - last.box.right();
      if (std::abs(last.box.top() - now.box.top()) < 1 && gap > -1 && gap < 2.5) {
        last.text += now.text, last.box |= now.box;
        return;
      }
    }
    texts.push_back(now);
  }
  void hide(const QRectF& under) {
    const QBrush brush = painter()->brush();
    if (brush.style() != Qt::SolidPattern || brush.color().alphaF() * painter()->opacity() < 0.7) return;
    const QRectF box = painter()->deviceTransform().mapRect(under);
    std::erase_if(texts, [&](const PaintedText& t) { return box.contains(t.box.center()); });
  }
  int metric(PaintDeviceMetric metric) const override {
    switch (metric) {
      case PdmWidth:
        return size_.width();
      case PdmHeight:
        return size_.height();
      case PdmWidthMM:
        return size_.width() * 254 / 960;
      case PdmHeightMM:
        return size_.height() * 254 / 960;
      case PdmDpiX:
      case PdmDpiY:
      case PdmPhysicalDpiX:
      case PdmPhysicalDpiY:
        return 96;
      case PdmNumColors:
      case PdmDepth:
        return 32;
      case PdmDevicePixelRatio:
        return 1;
      default:
        return QPaintDevice::metric(metric);
    }
  }
  QSize size_;
};

// Rows of these scroll, so one may end at the edge.
bool scrolls_rows(const QWidget& widget) {
  return widget.inherits("ws::app::TimelineView") || widget.inherits("ws::app::StepView") ||
         widget.inherits("ws::app::FlameView");
}

}  // namespace

std::vector<PaintedText> painted_texts(QWidget& widget) {
  TextSpy spy(widget.size());
  if (auto* plot = qobject_cast<ws::app::Plot*>(&widget)) {  // its axes go into a picture first
    QCPPainter painter(&spy);
    plot->toPainter(&painter, plot->width(), plot->height());
  }
  widget.render(&spy, QPoint(), QRegion(), {});
  return spy.texts;
}

QStringList unreadable(QWidget& widget) {
  QStringList found;
  const std::vector<PaintedText> all = painted_texts(widget);
  const auto core = [](const PaintedText& t) {
    return t.box.adjusted(1, t.box.height() * 0.3, -1, -t.box.height() * 0.3);
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const QRectF& box = all[i].box;
    if (box.left() < all[i].clip.left() - 2 || box.right() > all[i].clip.right() + 2)
      found << QString("“%1” is cut at the side").arg(all[i].text);
    if (const QRectF letters = core(all[i]); !scrolls_rows(widget) && (letters.top() < all[i].clip.top() || letters.bottom() > all[i].clip.bottom()))
      found << QString("“%1” is cut above or below").arg(all[i].text);
    for (size_t k = 0; k < i; ++k)
      if (core(all[i]).intersects(core(all[k])) && (all[i].text != all[k].text || box != all[k].box))
        found << QString("“%1” lies on “%2”").arg(all[i].text, all[k].text);
  }
  return found;
}
