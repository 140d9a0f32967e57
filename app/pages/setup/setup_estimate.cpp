// What the Setup dock says about the choices as a whole: section titles, the live estimate, the footer.
#include <QLabel>
#include <QPushButton>

#include "app/core/runs/data_shape.h"
#include "app/widgets/section.h"
#include "app/pages/setup/setup_panel.h"
#include "app/text/units.h"
#include "app/text/qt_text.h"
#include "app/workspace/choices.h"
#include "engine/plan/model.h"

namespace ws::app {
namespace {

QString data_name(const data::DataSpec& d) {
  if (d.name == "mnist") return "MNIST";
  if (d.name == "fashion-mnist") return "Fashion-MNIST";
  return QString::fromStdString(d.name).left(1).toUpper() + QString::fromStdString(d.name).mid(1);
}

QString chain(const RunSpec& spec, const DataShape& shape, bool with_activation) {
  if (spec.model.kind == ModelKind::Linear) return QStringLiteral("y = wx + b");
  const QString activation = spec.model.activation == Activation::None || !with_activation
                                 ? QString()
                                 : " " + text(to_string(spec.model.activation));
  QString line = shape.features ? QString::number(shape.features) : QStringLiteral("inputs");
  for (int64_t width : spec.model.hidden) line += QString::fromUtf8(" – ") + QString::number(width) + activation;
  return line + QString::fromUtf8(" – ") + (shape.outputs ? QString::number(shape.outputs) : QStringLiteral("outputs"));
}

}  // namespace

void SetupPanel::refreshNotes() {
  const RunSpec& spec = choices_->spec();
  const DataShape shape = data_shape(spec.data);
  const int64_t batch = spec.train.batch == 0 ? shape.train : spec.train.batch;
  const QString rows = shape.known() ? tr("%1 train · %2 test").arg(count_text(shape.train), count_text(shape.test))
                                     : tr("rows known once loaded");
  sections_["Data"]->setNotes(
      rows, tr("%1 · batch %2").arg(data_name(spec.data), spec.train.batch == 0 ? tr("all") : count_text(batch)));
  QString parameters, cost;
  if (shape.known()) {
    try {
      const Estimate e = estimate(spec, shape.features, shape.outputs, shape.train);
      parameters = tr("%1 parameters").arg(count_text(e.parameters));
      cost = tr("%1 FLOP a step · %2 in a step, %3 for parameters and their state, %4 data")
                 .arg(significant_text(static_cast<double>(e.flops_per_step)),
                      bytes_text(static_cast<double>(e.step_bytes)), bytes_text(static_cast<double>(e.parameter_bytes)),
                      bytes_text(static_cast<double>(e.data_bytes)));
    } catch (const Failure& problem) {
      cost = QString::fromUtf8(problem.what());
    }
  }
  chain_->setText(chain(spec, shape, true));
  estimate_->setText(cost);
  estimate_->setVisible(!cost.isEmpty());
  sections_["Model"]->setNotes(parameters, chain(spec, shape, false));
  QString steps;
  if (shape.known() && batch > 0)
    steps = tr("%1 steps").arg(count_text((shape.train + batch - 1) / batch * spec.train.epochs));
  sections_["Training"]->setNotes(steps, tr("%1 %2 · %3 epochs")
                                             .arg(text(to_string(spec.train.optimizer)),
                                                  QString::number(spec.train.lr), count_text(spec.train.epochs)));
  const auto in_execution = [](const std::vector<FieldChange>& changes) {
    return std::count_if(changes.begin(), changes.end(),
                         [](const FieldChange& c) { return field(c.key).group == "Execution"; });
  };
  QString execution = tr("defaults");
  if (other_) {
    const auto count = in_execution(diff(*other_, spec));
    execution = count == 0   ? tr("same as %1").arg(other_letter_)
                : count == 1 ? tr("1 differs from %1").arg(other_letter_)
                             : tr("%1 differ from %2").arg(count).arg(other_letter_);
  } else if (const auto count = in_execution(diff(choices_->preset(), spec)); count > 0) {
    execution = tr("%1 changed").arg(count);
  } else if (!choices_->preset().name.empty()) {
    execution = tr("as the preset");
  }
  sections_["Execution"]->setNotes(execution, execution);
}

void SetupPanel::refreshFooter() {
  const auto waiting = pending();
  apply_->setEnabled(!waiting.empty());
  if (!running_) {
    const auto why = why_invalid(choices_->spec(), choices_->cuda());
    say(why ? QString::fromStdString(*why) : tr("Valid on this machine"), why.has_value());
    return;
  }
  const auto all = diff(*running_, choices_->spec()).size();
  if (!waiting.empty())
    say(tr("Changes apply at the next step"), false);
  else if (all > 0)
    say(tr("Changed for the next run"), false);
  else
    say(tr("As the run that trains now"), false);
}

}  // namespace ws::app
