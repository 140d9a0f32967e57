// A chart as a file: the curves as vectors on white with axes named and runs told apart, or their numbers.
#include <qcustomplot.h>

#include <QMessageBox>
#include <QPicture>

#include "app/charts/curve_pane.h"
#include "app/charts/plot.h"
#include "app/widgets/theme.h"
#include "app/widgets/chart_file.h"

namespace ws::app {
namespace {

constexpr double kHead = 26, kFoot = 20;

QString x_name(XAxis axis) {
  return axis == XAxis::Step    ? QObject::tr("step")
         : axis == XAxis::Epoch ? QObject::tr("epoch")
                                : QObject::tr("training time, s");
}

}  // namespace

void CurvePane::renderTo(QPainter& painter, const QRectF& area) {
  plot_->applyTheme();
  redraw();
  const QRectF box = area.adjusted(0, kHead, 0, -kFoot);
  QPicture lines;
  QCPPainter vectors(&lines);
  vectors.setMode(QCPPainter::pmVectorized);
  plot_->toPainter(&vectors, static_cast<int>(box.width()), static_cast<int>(box.height()));
  vectors.end();
  painter.drawPicture(box.topLeft(), lines);
  painter.setFont(ui_font(12.5, 600));
  painter.setPen(theme().text);
  painter.drawText(QRectF(area.left() + 10, area.top(), 200, kHead), Qt::AlignVCenter, title());
  double x = area.left() + 24 + QFontMetricsF(painter.font()).horizontalAdvance(title());
  painter.setFont(ui_font(12));
  for (const Curve& curve : curves_) {
    if (!curve.run) continue;
    draw_badge(painter, QRectF(x, area.top() + 5.5, 15, 15), curve.run->slot);
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(curve.run->title);
    painter.setPen(theme().text);
    painter.drawText(QRectF(x + 20, area.top(), width + 4, kHead), Qt::AlignVCenter, curve.run->title);
    x += width + 40;
  }
  painter.setPen(theme().secondary);
  painter.drawText(QRectF(area.left(), area.bottom() - kFoot, area.width(), kFoot), Qt::AlignCenter, x_name(x_));
}

QByteArray CurvePane::csv() const {
  QByteArray out = "run," + x_name(x_).section(',', 0, 0).replace(' ', '_').toUtf8() + "," +
                   measure_title(measure_).toLower().replace(' ', '_').toUtf8() + "\n";
  for (const Curve& curve : curves_) {
    if (!curve.run) continue;
    const QByteArray name = '"' + QString(curve.run->title).replace('"', "\"\"").toUtf8() + "\",";
    const MinMaxSeries& series = curve.raw.empty() ? shown(curve) : curve.raw;
    for (size_t i = 0; i < series.size(); ++i)
      out +=
          name + QByteArray::number(series.at(i).x, 'g', 9) + ',' + QByteArray::number(series.at(i).y, 'g', 9) + '\n';
  }
  return out;
}

void CurvePane::exportImage() {
  QStringList captions;
  for (const Curve& curve : curves_)
    if (curve.run) captions << run_caption(*curve.run);
  try {
    ask_and_write(
        this, {title(), captions.join('\n'), QSize(900, 420),
               [this](QPainter& painter, const QRectF& area) { renderTo(painter, area); }, [this] { return csv(); }});
  } catch (const std::exception& problem) {
    QMessageBox::warning(this, tr("Export the chart"), QString::fromUtf8(problem.what()));
  }
  plot_->applyTheme();  // the picture was drawn for paper
  redraw();
}

}  // namespace ws::app
