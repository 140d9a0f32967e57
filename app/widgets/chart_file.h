// Any chart as a file: PNG, SVG, PDF by the name's ending, or its numbers as CSV. Pictures are drawn on white, with a
// caption below them; a file is whole or not there.
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
  QString name;     // proposed for the file
  QString caption;  // what it shows, of which run, on which machine
  QSize size{900, 420};
  std::function<void(QPainter&, const QRectF&)> paint;
  std::function<QByteArray()> csv;  // none: the chart has no numbers of its own
};

void write_chart(const ChartPicture& chart, const QString& path, double scale = 2);  // throws Failure
// Asks for the name, the size and the scale. Returns what to say, empty when nothing was chosen; throws Failure.
QString ask_and_write(QWidget* parent, ChartPicture chart);

// Writes under another name first: `write` gets that name and says whether it went well. Throws Failure.
void write_in_place(const QString& path, const std::function<bool(const QString& temporary)>& write);

}  // namespace ws::app
