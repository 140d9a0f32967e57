#include "app/core/runs/data_shape.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "datasets/picture_set.h"
#include "datasets/text_set.h"
#include "engine/devices/devices.h"
#include "engine/plan/model.h"

namespace ws::app {
namespace {

bool is_any(std::string_view key, std::initializer_list<std::string_view> of) {
  return std::find(of.begin(), of.end(), key) != of.end();
}

bool is_text(std::string_view name) { return is_any(name, {"austen", "text", "sentences"}); }
bool synthetic(std::string_view name) { return is_any(name, {"line", "blobs", "spirals", "circles", "xor"}); }

DataShape with_split(DataShape shape, int64_t rows, double share) {
  shape.test = std::llround(static_cast<double>(rows) * share);
  shape.train = rows - shape.test;
  return shape;
}

DataShape limited(DataShape shape, int64_t limit) {
  if (limit > 0 && shape.train > 0) shape.train = std::min(shape.train, limit);
  return shape;
}

bool data_relevant(const data::DataSpec& d, std::string_view key) {
  if (key == "data.path") return data::source_of(d.name) != data::Source::None;
  if (is_any(key, {"data.side", "data.skip_broken"})) return d.name == "pictures";
  if (is_any(key, {"data.crop", "data.flip", "data.normalise"})) return data::holds_pictures(d.name);
  if (key == "data.context") return is_text(d.name);
  if (key == "data.label_column") return d.name == "csv";
  if (key == "data.points") return synthetic(d.name) || is_any(d.name, {"shapes", "sentences"});
  if (key == "data.noise") return synthetic(d.name) || d.name == "shapes";
  if (key == "data.classes") return is_any(d.name, {"blobs", "spirals"});
  if (is_any(key, {"data.slope", "data.intercept"})) return d.name == "line";
  if (key == "data.validation") return !is_any(d.name, {"mnist", "fashion-mnist", "idx", "cifar-10"});
  return true;
}

bool model_relevant(const ModelSpec& m, std::string_view key) {
  if (is_any(key, {"model.start_w", "model.start_b"})) return m.kind == ModelKind::Linear;
  if (is_any(key, {"model.hidden", "model.activation"})) return m.kind == ModelKind::Mlp && m.layers.empty();
  if (is_any(key, {"model.layers", "model.bias"})) return m.kind == ModelKind::Mlp;
  if (key == "model.init") return m.kind == ModelKind::Mlp;
  return true;
}

bool train_relevant(const TrainSpec& t, std::string_view key) {
  if (key == "train.momentum") return t.optimizer == Optimizer::Momentum;
  if (is_any(key, {"train.beta1", "train.beta2", "train.epsilon"})) return is_adam(t.optimizer);
  if (key == "train.nesterov") return t.optimizer == Optimizer::Momentum;
  if (is_any(key, {"train.step_epochs", "train.step_factor"})) return t.schedule == Schedule::Step;
  return true;
}

bool exec_relevant(const ExecSpec& e, std::string_view key) {
  if (key == "exec.pool_threshold_mib") return e.allocator == Allocator::StreamOrdered;
  if (key == "exec.cache_cap_mib") return e.allocator == Allocator::Caching;
  if (key == "exec.graph_steps") return e.launch != Launch::Eager;
  if (key == "exec.accumulate") return e.precision == Precision::Fp16;
  if (key == "exec.comm") return e.gpus != 1;
  if (key == "exec.comm_by") return e.gpus != 1 && e.device != Device::Cpu;
  if (key == "exec.bucket_mib") return e.gpus != 1 && e.comm != Comm::Bucket;
  return true;
}

}  // namespace

DataShape data_shape(const data::DataSpec& d) {
  if (is_any(d.name, {"mnist", "fashion-mnist"})) return limited({LayerShape::picture(28, 28, 1), 10, 60000, 10000}, d.limit);
  if (d.name == "cifar-10") return limited({LayerShape::picture(32, 32, 3), 10, 50000, 10000}, d.limit);
  if (d.name == "shapes")
    return limited(with_split({LayerShape::picture(data::kShapesSide, data::kShapesSide, 3), data::kShapesClasses}, d.points, d.validation),
                   d.limit);
  if (d.name == "austen") {
    const data::TextRows rows = data::rows_of_text(data::kAustenCharacters, d);
    return limited({LayerShape::symbols(d.context), data::kAustenSymbols, rows.train, rows.test}, d.limit);
  }
  if (is_text(d.name)) return {LayerShape::symbols(d.context)};  // how long it is shows once it is loaded
  if (d.name == "iris") return limited(with_split({4, 3}, 150, d.validation), d.limit);
  if (d.name == "line") return limited(with_split({1, 1}, d.points, d.validation), d.limit);
  if (is_any(d.name, {"blobs", "spirals"})) return limited(with_split({2, d.classes}, d.points, d.validation), d.limit);
  if (is_any(d.name, {"circles", "xor"})) return limited(with_split({2, 2}, d.points, d.validation), d.limit);
  return {};
}

std::map<std::string, std::string> blocks_of(const RunSpec& spec) {
  const DataShape shape = data_shape(spec.data);
  if (spec.model.layers.empty() || shape.input.elements() < 1) return {};
  std::map<std::string, std::string> blocks;
  try {
    const Model model = make_model(spec.model, shape.input, std::max<int64_t>(1, shape.outputs));
    for (size_t i = 0; i < model.layer_parts.size(); ++i)
      if (!model.layer_parts[i].empty()) blocks[model.layer_names[i]] = model.layer_parts[i];
  } catch (const Failure&) {
    return {};  // a list that does not fit the data has no blocks
  }
  return blocks;
}

double rows_of_a_step(const RunSpec& spec) {
  const int64_t rows = data_shape(spec.data).train, batch = spec.train.batch;
  const int64_t each = batch <= 0 ? rows : rows > 0 ? std::min(batch, rows) : batch;  // a batch of 0 is the whole set
  return each > 0 ? static_cast<double>(each) : std::nan("");
}

bool relevant(const RunSpec& spec, std::string_view key) {
  if (key.starts_with("data.")) return data_relevant(spec.data, key);
  if (key.starts_with("model.")) return model_relevant(spec.model, key);
  if (key.starts_with("train.")) return train_relevant(spec.train, key);
  if (key == "exec.attention") return spec.exec.attention != AttentionForm::Fused || has_layer(spec.model, kAttendingLayers);
  if (key == "exec.layout") return spec.exec.layout != PictureLayout::Nhwc || has_layer(spec.model, kPictureLayers);
  return exec_relevant(spec.exec, key);
}

std::vector<FieldChange> choices_between(const RunSpec& from, const RunSpec& to) {
  std::vector<FieldChange> changes = diff(from, to);
  std::erase_if(changes, [&](const FieldChange& change) { return !relevant(from, change.key) && !relevant(to, change.key); });
  return changes;
}

bool advanced(std::string_view key) {
  return is_any(key, {"data.limit",         "data.seed",
                      "data.validation",    "model.bias",
                      "model.loss",         "model.kind",
                      "train.beta1",        "train.beta2",
                      "train.epsilon",      "train.weight_decay",
                      "train.nesterov",     "train.label_smoothing",
                      "train.clip",
                      "train.schedule",     "train.warmup_steps",
                      "train.shuffle",      "train.target_accuracy",
                      "train.time_limit_s", "train.eval_every",
                      "exec.device",        "exec.accumulate",
                      "exec.matmul",
                      "exec.gpus",          "exec.comm",
                      "exec.comm_by",       "exec.bucket_mib",
                      "exec.kernels"});
}

std::optional<CompiledPlan> plan_before_loading(const RunSpec& spec) {
  const DataShape shape = data_shape(spec.data);
  if (!shape.known()) return std::nullopt;
  const int64_t batch = spec.train.batch > 0 ? std::min(spec.train.batch, shape.train) : shape.train;
  try {
    return compile(spec, make_model(spec.model, shape.input, shape.outputs), batch);
  } catch (const Failure&) {  // from another version, or the setup page says why the choices cannot run
    return std::nullopt;
  }
}

std::string plan_budget(const RunSpec& spec) {
  const std::optional<CompiledPlan> plan = plan_before_loading(spec);
  if (!plan) return {};
  try {
    return persistent_budget(spec, plan->plan, data_shape(spec.data).train);
  } catch (const Failure&) {
    return {};
  }
}

}  // namespace ws::app
