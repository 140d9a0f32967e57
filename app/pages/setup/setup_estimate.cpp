#include "app/pages/setup/setup_estimate.h"

#include "app/core/runs/data_shape.h"
#include "app/core/runs/run_name.h"
#include "app/text/qt_text.h"
#include "app/workspace/choices.h"
#include "app/text/units.h"
#include "engine/passes/compile.h"
#include "engine/plan/model.h"

namespace ws::app {
namespace {

QString layer_chain(const RunSpec& spec, const DataShape& shape, bool with_activation) {
  if (spec.model.kind == ModelKind::Linear) return QStringLiteral("y = wx + b");
  if (!spec.model.layers.empty()) return QString::fromStdString(spec.model.layers).simplified();
  const QString activation = spec.model.activation == Activation::None || !with_activation
                                 ? QString()
                                 : " " + text(to_string(spec.model.activation));
  QString line = shape.features() ? QString::number(shape.features()) : QStringLiteral("inputs");
  for (int64_t width : spec.model.hidden) line += QString::fromUtf8(" – ") + QString::number(width) + activation;
  return line + QString::fromUtf8(" – ") + (shape.outputs ? QString::number(shape.outputs) : QStringLiteral("outputs"));
}

}  // namespace

SetupEstimate::SetupEstimate(const RunSpec& spec) {
  const DataShape shape = data_shape(spec.data);
  const int64_t batch = spec.train.batch == 0 ? shape.train : spec.train.batch;
  rows = shape.known() ? QObject::tr("%1 train · %2 test").arg(count_text(shape.train), count_text(shape.test))
                       : QObject::tr("rows known once loaded");
  data = QObject::tr("%1 · batch %2")
             .arg(QString::fromStdString(data_label(spec.data)), spec.train.batch == 0 ? QObject::tr("all") : count_text(batch));
  chain = layer_chain(spec, shape, true);
  short_chain = layer_chain(spec, shape, false);
  training =
      (spec.train.epochs == 1 ? QObject::tr("%1, lr %2 · %3 epoch") : QObject::tr("%1, lr %2 · %3 epochs"))
          .arg(text(to_string(spec.train.optimizer)), QString::number(spec.train.lr), count_text(spec.train.epochs));
  if (!shape.known()) return;
  if (batch > 0) steps = QObject::tr("%1 steps").arg(count_text((shape.train + batch - 1) / batch * spec.train.epochs));
  try {
    const PlanEstimate e = estimate(spec, shape.input, shape.outputs, shape.train);
    parameters = QObject::tr("%1 parameters").arg(count_text(e.parameters));
    cost = QObject::tr("%1 FLOP per step").arg(significant_text(static_cast<double>(e.flops_per_step)));
  } catch (const Failure& problem) {
    cost = QString::fromUtf8(problem.what());
  }
}

}  // namespace ws::app
