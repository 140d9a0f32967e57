#include "app/pages/lab/lab_export.h"

#include <QObject>
#include <QPainter>

#include "app/pages/lab/lab_chart.h"
#include "app/pages/lab/lab_sentences.h"

namespace ws::app {
namespace {

QString caption(const lab::LabResult& result) {
  QString what = QString::fromStdString(std::string(to_string(result.spec.operation)));
  if (result.spec.operation == lab::Operation::Sine) what += QObject::tr(", depth %1").arg(result.spec.depth);
  return QObject::tr("%1 · %2 · median of up to %3 calls, band: P5 to P95 · dashed: pitfalls and overlays")
      .arg(what, lab_machine(result))
      .arg(result.spec.repeats);
}

}  // namespace

ChartPicture lab_picture(const LabChart& chart, const lab::LabResult& result) {
  return {.name = QObject::tr("lab %1").arg(QString::fromStdString(std::string(to_string(result.spec.operation)))),
          .caption = caption(result),
          .size = {1100, 620},
          .paint = [&chart](QPainter& painter, const QRectF& area) { chart.render(painter, area); },
          .csv = [result] { return QByteArray::fromStdString(lab::to_csv(result)); }};
}

}  // namespace ws::app
