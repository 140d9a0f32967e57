#include "app/pages/lab/lab_way_style.h"

#include <QPainter>
#include <cmath>

#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {

QString lab_size_text(double size) {
  const auto n = static_cast<int64_t>(std::llround(size));
  if (n >= 1 << 20 && n % (1 << 20) == 0) return QString::number(n >> 20) + " M";
  if (n > 16384 && n % 1024 == 0) return QString::number(n >> 10) + " k";
  return count_text(n);
}

QString lab_label(lab::Way way, const lab::LabSpec& spec) { return QString::fromStdString(lab::label_of(spec, way)); }

QColor lab_colour(lab::Way way) {
  const Theme& t = theme();
  // There are eight run colours. Ways that answer the same question share one.
  switch (way) {
    case lab::Way::CpuLoops:
      return t.run[7];
    case lab::Way::CpuLibrary:
      return t.run[5];
    case lab::Way::GpuPageable:
      return t.run[3];
    case lab::Way::GpuPinned:
      return t.run[6];
    case lab::Way::GpuResident:
    case lab::Way::GpuUnsynced:
    case lab::Way::GpuGraph:
      return t.run[1];
    case lab::Way::GpuOpByOp:
    case lab::Way::GpuGraphOps:
    case lab::Way::GpuNaive:
      return t.run[2];
    case lab::Way::GpuOverlap:
    case lab::Way::GpuTiled:
      return t.run[0];
    case lab::Way::GpuTf32:
    case lab::Way::GpuFp16:
      return t.run[4];
    case lab::Way::GpuCold:
      return t.quiet;
    case lab::Way::GpuOwn:
    case lab::Way::GpuOwn2:
    case lab::Way::GpuOwn3:
    case lab::Way::GpuOwn4:
      return t.text;
  }
  return t.text;
}

QString lab_short_label(lab::Way way, const lab::LabSpec& spec) {
  const QString label = lab_label(way, spec);
  return label.startsWith("GPU, ") ? label.mid(5) : label;
}

QPen lab_pen(lab::Way way, double width) {
  QPen pen(lab_colour(way), width);
  if (lab::info(way).pitfall) pen.setDashPattern({6 / width, 4 / width});
  const bool second = way == lab::Way::GpuGraph || way == lab::Way::GpuGraphOps || way == lab::Way::GpuFp16;
  QList<qreal> pattern{10 / width, 2.5 / width};
  for (int dots = second ? 1 : lab::is_own(way) ? static_cast<int>(way) - static_cast<int>(lab::Way::GpuOwn) : 0; dots > 0; --dots)
    pattern << 2 / width << 2.5 / width;
  if (pattern.size() > 2) pen.setDashPattern(pattern);
  return pen;
}

QIcon lab_way_icon(lab::Way way) {
  QPixmap picture(52, 20);
  picture.fill(Qt::transparent);
  picture.setDevicePixelRatio(2);
  QPainter painter(&picture);
  painter.setPen(lab_pen(way, 2.2));
  painter.drawLine(0, 5, 26, 5);
  painter.end();
  return QIcon(picture);
}

}  // namespace ws::app
