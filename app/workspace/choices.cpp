#include "app/workspace/choices.h"

#include <utility>

namespace ws::app {
namespace {

// A line predicts a number: the loss and the shape follow the data, so that no impossible pair stays behind.
void follow_data(RunSpec& spec, const QString& data) {
  const bool line = data == "line";
  if (line != (spec.model.loss == LossKind::MeanSquared) && data != "csv")
    spec.model.loss = line ? LossKind::MeanSquared : LossKind::CrossEntropy;
  spec.model.kind = line ? ModelKind::Linear : ModelKind::Mlp;
}

}  // namespace

void Choices::setSpec(const RunSpec& spec) {
  preset_ = spec;
  edit(spec);
}

void Choices::edit(const RunSpec& spec) {
  spec_ = spec;
  emit changed();
}

void Choices::set(const QString& key, const QString& value) {
  try {
    set_field(spec_, key.toStdString(), value.toStdString());
  } catch (const Failure& problem) {
    emit told(QString::fromUtf8(problem.what()), true);
    return;
  }
  if (key == "data.name") follow_data(spec_, value);
  emit changed();
}

bool Choices::usePreset(const QString& name) {
  try {
    spec_ = preset_ = load_spec(name.toStdString());
  } catch (const Failure& problem) {
    emit told(QString::fromUtf8(problem.what()), true);
    return false;
  }
  fit_later_ = !cuda_known_;
  const QStringList notes = cuda_known_ ? fit() : QStringList();
  setSpec(spec_);
  if (!notes.isEmpty()) emit told(notes.join(' '), false);
  return true;
}

void Choices::useDefaults() {
  std::vector<std::string> ignored;
  setSpec(fit_to_machine(RunSpec{}, cuda_, ignored));
}

void Choices::setCuda(bool cuda) {
  cuda_ = cuda, cuda_known_ = true;
  const QStringList notes = std::exchange(fit_later_, false) ? fit() : QStringList();
  emit changed();
  if (!notes.isEmpty()) emit told(notes.join(' '), false);
}

QStringList Choices::fit() {
  std::vector<std::string> notes, ignored;
  const bool untouched = spec_ == preset_;
  spec_ = fit_to_machine(spec_, cuda_, notes);
  preset_ = untouched ? spec_ : fit_to_machine(preset_, cuda_, ignored);
  QStringList lines;
  for (const std::string& note : notes) lines << QString::fromStdString(note);
  return lines;
}

void Choices::setTraceLevel(prof::TraceLevel level) {
  trace_level_ = level;
  emit traceLevelChanged(level);
}

void Choices::setTraceExtras(const TraceExtras& extras) {
  trace_extras_ = extras;
  emit traceExtrasChanged(extras);
}

}  // namespace ws::app
