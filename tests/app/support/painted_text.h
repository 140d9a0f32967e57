// What a widget paints by itself, as texts with their places: letters that a test of widgets and labels does not see.
#pragma once
#include <QRectF>
#include <QString>
#include <QStringList>
#include <vector>

class QWidget;

struct PaintedText {
  QString text;
  QRectF box, clip;  // in the widget; clip: what of it could be seen at all
};

std::vector<PaintedText> painted_texts(QWidget& widget);
// Letters that lie on each other, or that end at an edge.
QStringList unreadable(QWidget& widget);
