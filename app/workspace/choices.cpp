#include "app/workspace/choices.h"

#include <QFileInfo>
#include <algorithm>
#include <utility>

#include "app/core/runs/data_shape.h"
#include "datasets/csv.h"
#include "engine/devices/devices.h"

namespace ws::app {
namespace {

// A line predicts a number, and only pictures are cropped. Loss and model kind follow the data, so that no impossible
// combination remains.
void follow_data(RunSpec& spec, const QString& data) {
  const bool line = data == "line";
  if (line != (spec.model.loss == LossKind::MeanSquared) && data != "csv")
    spec.model.loss = line ? LossKind::MeanSquared : LossKind::CrossEntropy;
  spec.model.kind = line ? ModelKind::Linear : ModelKind::Mlp;
  if (!data::holds_pictures(spec.data.name)) spec.data.crop = 0, spec.data.flip = spec.data.normalise = false;
}

constexpr const char* kTransformer = "embed 64 | 2 x block(heads 4) | layernorm | linear";

// A list of layers that cannot take the new data gives way: to a small transformer for text, otherwise to the hidden layers.
void follow_shape(RunSpec& spec) {
  const DataShape shape = data_shape(spec.data);
  if (!shape.known() && !shape.input.is_text()) return;
  try {
    resolve(layers_of(spec.model), shape.input, std::max<int64_t>(1, shape.outputs));
  } catch (const Failure&) {
    spec.model.layers = shape.input.is_text() ? kTransformer : "";
    spec.model.init = shape.input.is_text() ? Init::Small : Init::Kaiming;
  }
}

}  // namespace

// A table is checked before the training: its file, and the column that it names.
Choices::Verdict Choices::ofTable() const {
  try {
    const std::vector<std::string> columns = data::csv_columns(spec_.data.path);
    if (std::ranges::find(columns, spec_.data.label_column) != columns.end()) return {};
    std::string names;
    for (const std::string& column : columns) names += (names.empty() ? "" : ", ") + column;
    return {"there is no column " + spec_.data.label_column + ". The columns are " + names + ".", "data.label_column", 0, 0};
  } catch (const Failure& problem) {
    return {problem.what(), "data.path", 0, 0};
  }
}

std::vector<std::string> Choices::columns() const {
  if (spec_.data.name != "csv" || spec_.data.path.empty() || !files_here_) return {};
  try {
    return data::csv_columns(spec_.data.path);
  } catch (const Failure&) {
    return {};
  }
}

// The column to predict is guessed: by its name, else the last one.
void Choices::useFile(const QString& path) {
  const bool images = path.contains("ubyte");
  spec_.data.name = images ? "idx" : "csv";
  spec_.data.path = (images ? QFileInfo(path).absolutePath() : path).toStdString();
  follow_data(spec_, QString::fromStdString(spec_.data.name));
  const std::vector<std::string> all = columns();
  spec_.data.label_column = all.empty() ? "" : all.back();
  for (const std::string& column : all)
    if (column == "label" || column == "class" || column == "target" || column == "species") spec_.data.label_column = column;
  emit changed();
}

Choices::Verdict Choices::verdict() const {
  if (const auto why = why_invalid(spec_, cuda_)) return {why->text, why->key, 0, 0};
  if (spec_.data.name == "csv" && files_here_)
    if (const Verdict table = ofTable(); !table.problem.empty()) return table;
  const DataShape shape = data_shape(spec_.data);
  if (!shape.known() && !shape.input.is_text()) return {};
  try {
    const Model model = make_model(spec_.model, shape.input, std::max<int64_t>(1, shape.outputs));
    if (!cuda_known_ || !shape.known()) return {};  // the network is checked already, its size later
    const DataSize size(shape.features(), shape.train, shape.test);
    const FreeMemory free = free_memory_for(spec_);
    if (const auto why = why_it_does_not_fit(spec_, model, size, free)) return {why->text, why->key, 0, 0};
    if (free.on_gpu()) return {{}, {}, device_bytes_needed(spec_, model, size), free.device_bytes, spec_.exec.loader == Loader::Resident};
    return {{}, {}, host_bytes_needed(spec_, model, size, false), free.host_bytes};
  } catch (const Failure& problem) {
    return {problem.what(), spec_.model.layers.empty() ? "model.hidden" : "model.layers", 0, 0};
  }
}

void Choices::setSpec(const RunSpec& spec) {
  preset_ = spec;
  edit(spec);
}

void Choices::replace(const RunSpec& spec) {
  if (spec == spec_) return;
  if (!replaced()) own_ = {spec_, preset_};
  replacement_ = spec;
  setSpec(spec);
}

void Choices::bringBack() {
  if (!replaced()) return;
  const Own own = *std::exchange(own_, std::nullopt);
  preset_ = own.preset;
  edit(own.spec);
}

void Choices::edit(const RunSpec& spec) {
  spec_ = spec;
  emit changed();
}

void Choices::set(const QString& key, const QString& value) {
  try {
    set_field(spec_, key.toStdString(), value.toStdString());
  } catch (const Failure& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
    return;
  }
  if (key == "data.name") {
    follow_data(spec_, value);
    follow_shape(spec_);
  }
  emit changed();
}

bool Choices::usePreset(const QString& name) {
  try {
    spec_ = preset_ = load_spec(name.toStdString());
  } catch (const Failure& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
    return false;
  }
  fit_later_ = !cuda_known_;
  const QStringList notes = cuda_known_ ? fit() : QStringList();
  setSpec(spec_);
  if (!notes.isEmpty()) emit said(notes.join(' '), false);
  return true;
}

std::vector<Preset> presets_by_title() {
  std::vector<Preset> all = presets();
  std::ranges::stable_sort(all, {}, &Preset::title);
  return all;
}

// A lesson or an opened run may carry the name of a preset with other choices.
RunSpec Choices::plainPreset() const {
  const auto named = presets();
  if (std::ranges::find(named, preset_.name, &Preset::name) == named.end()) return preset_;
  std::vector<std::string> ignored;
  return fit_to_machine(load_spec(preset_.name), cuda_, ignored);
}

void Choices::useDefaults() {
  std::vector<std::string> ignored;
  setSpec(fit_to_machine(RunSpec{}, cuda_, ignored));
}

void Choices::setCuda(bool cuda) {
  cuda_ = cuda, cuda_known_ = true;
  const QStringList notes = std::exchange(fit_later_, false) ? fit() : QStringList();
  emit changed();
  if (!notes.isEmpty()) emit said(notes.join(' '), false);
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
