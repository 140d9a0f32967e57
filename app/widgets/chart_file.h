// Writes any chart to a file: PNG, SVG or PDF by file name extension, or its numbers as CSV. Pictures are on white,
// with a caption below. A file is complete or does not exist.
#pragma once
#include <QByteArray>
#include <QSize>
#include <QString>
#include <functional>

class QPainter;
class QRectF;
class QWidget;

namespace ws::app {

struct ChartPicture {
  QString name;     // proposed file name
  QString caption;  // what it shows, of which run, on which machine
  QSize size{900, 420};
  std::function<void(QPainter&, const QRectF&)> paint;
  std::function<QByteArray()> csv;  // empty if the chart has no numbers of its own
};

void write_chart(const ChartPicture& chart, const QString& path, double scale = 2);  // throws Failure
// Asks for the name, the size and the scale. Returns the message to show, empty if nothing was chosen. Throws Failure.
QString ask_and_write(QWidget* parent, ChartPicture chart);

// Writes to a temporary name first: `write` gets it and returns true on success. Throws Failure.
void write_in_place(const QString& path, const std::function<bool(const QString& temporary)>& write);

}  // namespace ws::app
