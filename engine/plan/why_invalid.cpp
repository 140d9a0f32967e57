// Decides which choices exclude each other, and explains it in one sentence.
#include "engine/plan/model.h"

namespace ws {
namespace {

using Reason = std::optional<Refusal>;

Reason needs_gpu(const RunSpec& s) {
  if (s.exec.device == Device::Cuda) return Refusal{"exec.device", "cuda: no NVIDIA GPU can be used here."};
  if (s.exec.launch == Launch::Graph) return Refusal{"exec.launch", "graph: a CUDA graph needs a GPU."};
  if (s.exec.launch == Launch::Persistent) return Refusal{"exec.launch", "persistent: a kernel for many steps needs a GPU."};
  if (s.exec.allocator == Allocator::StreamOrdered) return Refusal{"exec.allocator", "stream-ordered: cudaMallocAsync needs a GPU."};
  if (s.exec.loader != Loader::Resident)
    return Refusal{"exec.loader", std::string(to_string(s.exec.loader)) + ": the CPU reads batches where they are, nothing is copied."};
  if (s.exec.accumulate == Accumulate::Fp16) return Refusal{"exec.accumulate", "fp16: the CPU sums in fp32."};
  if (!s.exec.kernels.empty()) return Refusal{"exec.kernels", "own kernels: a CUDA kernel needs a GPU."};
  return {};
}

// Only the executor knows if the network fits, because that needs the data. It reports this when it binds the plan.
Reason persistent_conflict(const ExecSpec& e) {
  if (e.allocator != Allocator::Arena)
    return Refusal{"exec.allocator", std::string(to_string(e.allocator)) + ": a persistent kernel calls no allocator; choose allocator arena."};
  if (e.sync != SyncPolicy::OnRead)
    return Refusal{"exec.sync", std::string(to_string(e.sync)) + ": the host cannot wait inside a persistent kernel; choose sync on-read."};
  if (e.fusion != Fusion::Epilogue)
    return Refusal{"exec.fusion", std::string(to_string(e.fusion)) + ": a persistent kernel fuses all ops; choose fusion epilogue."};
  if (e.loader != Loader::Resident)
    return Refusal{"exec.loader", std::string(to_string(e.loader)) + ": a persistent kernel reads rows on the GPU; choose loader resident."};
  if (e.accumulate == Accumulate::Fp16) return Refusal{"exec.accumulate", "fp16: a persistent kernel sums in fp32."};
  if (!e.kernels.empty()) return Refusal{"exec.kernels", "own kernels: a persistent kernel runs no other kernel; choose launch eager or graph."};
  if (e.gpus != 1) return Refusal{"exec.gpus", (e.gpus == 0 ? "all" : std::to_string(e.gpus)) + " GPUs: a persistent kernel runs on one."};
  return {};
}

Reason persistent_conflict(const TrainSpec& t) {
  if (t.optimizer == Optimizer::AdamW) return Refusal{"train.optimizer", "adamw: a persistent kernel updates with sgd, momentum or adam."};
  if (t.optimizer == Optimizer::Momentum && t.nesterov) return Refusal{"train.nesterov", "nesterov: a persistent kernel has plain momentum only."};
  if (t.label_smoothing > 0) return Refusal{"train.label_smoothing", "smoothing: a persistent kernel does not smooth the targets."};
  if (t.clip > 0) return Refusal{"train.clip", "clip: a persistent kernel does not store the gradients that have a joint norm."};
  return {};
}

// Choices of execution that only some networks have.
Reason form_conflict(const RunSpec& s) {
  if (s.exec.attention == AttentionForm::Plain && !has_layer(s.model, kAttendingLayers))
    return Refusal{"exec.attention", "plain: this network has no attention; choose fused, or a network with blocks."};
  if (s.exec.layout == PictureLayout::Nchw && !has_layer(s.model, kPictureLayers))
    return Refusal{"exec.layout", "nchw: this network has no convolution or pool; choose nhwc."};
  return {};
}

Reason layers_conflict(const RunSpec& s) {
  if (s.model.layers.empty()) return form_conflict(s);
  if (s.model.kind == ModelKind::Linear) return Refusal{"model.layers", "network: a line has no list of layers; choose kind mlp."};
  try {
    parse_layers(s.model.layers);
  } catch (const LayersError& problem) {
    return Refusal{"model.layers", "network: " + std::string(problem.what()) + "."};
  }
  if (const auto reason = form_conflict(s)) return reason;
  if (s.exec.launch == Launch::Persistent)
    return Refusal{"exec.launch", "persistent: one kernel trains the networks of hidden layers; choose launch graph for a list of layers."};
  return {};
}

Reason launch_conflict(const RunSpec& s) {
  const ExecSpec& e = s.exec;
  if (e.launch == Launch::Persistent) {
    if (const auto reason = persistent_conflict(e)) return reason;
    if (s.data.crop > 0 || s.data.flip || s.data.normalise)
      return Refusal{"exec.launch", "persistent: its kernel reads the pictures as they are; choose launch graph to crop, flip or normalise them."};
    return persistent_conflict(s.train);
  }
  if (e.launch != Launch::Graph) return {};
  if (e.allocator == Allocator::Direct) return Refusal{"exec.allocator", "direct: a graph cannot capture cudaMalloc."};
  if (e.sync == SyncPolicy::EveryOp) return Refusal{"exec.sync", "every-op: the host cannot wait inside a graph."};
  return {};
}

Reason product_conflict(const ExecSpec& e) {
  if (e.accumulate == Accumulate::Fp16 && e.precision != Precision::Fp16)
    return Refusal{"exec.accumulate", "fp16: half-precision sums need precision fp16."};
  if (e.matmul == Matmul::Library) return {};
  if (e.fusion == Fusion::Epilogue)
    return Refusal{"exec.matmul", std::string(to_string(e.matmul)) +
           ": the learner's products have no epilogue; choose fusion off or pointwise."};
  if (e.accumulate == Accumulate::Fp16)
    return Refusal{"exec.matmul", std::string(to_string(e.matmul)) + ": the learner's products sum in fp32."};
  return {};
}

Reason model_conflict(const RunSpec& s) {
  if (s.model.kind == ModelKind::Linear && s.model.loss == LossKind::CrossEntropy)
    return Refusal{"model.loss", "cross-entropy: a line predicts a number; choose mean-squared."};
  if (s.model.kind == ModelKind::Linear && (s.exec.precision == Precision::Bf16 || s.exec.precision == Precision::Fp16))
    return Refusal{"exec.precision", std::string(to_string(s.exec.precision)) +
           ": a line has no matrix product; choose fp32 or tf32."};
  if (s.model.loss == LossKind::MeanSquared && s.train.label_smoothing > 0)
    return Refusal{"train.label_smoothing", "smoothing: only classes have a target to smooth; choose 0."};
  if (s.train.clip > 0 && s.exec.gpus != 1 && s.exec.comm == Comm::Overlap)
    return Refusal{"exec.comm", "overlap: the norm of all gradients needs all transfers; choose all-reduce bucket or layers."};
  if (s.exec.gpus > 1 && s.train.batch > 0 && s.train.batch < s.exec.gpus)
    return Refusal{"exec.gpus", std::to_string(s.exec.gpus) + " GPUs: a batch of " + std::to_string(s.train.batch) +
           " rows cannot be shared by so many ranks; choose a greater batch."};
  return {};
}

Reason data_conflict(const data::DataSpec& d) {
  const data::Source source = data::source_of(d.name);
  if (source != data::Source::None && d.path.empty())
    return Refusal{"data.path", d.name + ": name the " + (source == data::Source::File ? "file." : "folder.")};
  const int64_t side = data::side_of_pictures(d);
  if (side > 0 || !data::holds_pictures(d.name))
    if (auto reason = why_not_prepared(d, side > 0 ? LayerShape::picture(side, side, 1) : LayerShape())) return reason;
  if (d.name == "csv" && d.label_column.empty()) return Refusal{"data.label_column", "csv: name the column to predict."};
  return {};
}

void replace(RunSpec& spec, std::string_view key, std::string_view value, std::vector<std::string>& notes) {
  const std::string before = field_text(spec, key);
  if (before == value) return;
  set_field(spec, key, value);
  notes.push_back("No GPU: " + std::string(field(key).label) + " " + std::string(value.empty() ? "none" : value) + " instead of " + before +
                  ".");
}

}  // namespace

std::optional<Refusal> why_invalid(const RunSpec& spec, bool cuda) {
  const bool on_cpu = spec.exec.device == Device::Cpu || !cuda;
  if (auto reason = layers_conflict(spec)) return reason;
  if (auto reason = launch_conflict(spec)) return reason;
  if (on_cpu)
    if (auto reason = needs_gpu(spec)) return reason;
  // Seen on two H200: a call that allocates memory waits for kernels of all GPUs that map each other's memory. An
  // average waits for the rank that is inside this call.
  if (!on_cpu && spec.exec.gpus != 1 && spec.exec.allocator != Allocator::Arena)
    return Refusal{"exec.allocator", std::string(to_string(spec.exec.allocator)) +
                                         ": ranks that allocate within a step can block each other; choose allocator arena or one GPU."};
  if (auto reason = product_conflict(spec.exec)) return reason;
  if (auto reason = model_conflict(spec)) return reason;
  return data_conflict(spec.data);
}

std::optional<Refusal> why_not(const RunSpec& spec, std::string_view key, std::string_view value, bool cuda) {
  RunSpec other = spec;
  set_field(other, key, value);
  return why_invalid(other, cuda);
}

RunSpec fit_to_machine(RunSpec spec, bool cuda, std::vector<std::string>& notes) {
  if (cuda || spec.exec.device != Device::Auto) return spec;
  if (spec.exec.launch != Launch::Eager && spec.exec.launch != Launch::Auto) replace(spec, "exec.launch", "eager", notes);
  if (spec.exec.allocator == Allocator::StreamOrdered) replace(spec, "exec.allocator", "caching", notes);
  replace(spec, "exec.loader", "resident", notes);
  replace(spec, "exec.accumulate", "fp32", notes);
  replace(spec, "exec.kernels", "", notes);
  return spec;
}

}  // namespace ws
