// Everything that a user chooses for a run, as a struct of enums and numbers, and one table that describes each field.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/data_spec.h"
#include "profiling/base/failure.h"

namespace ws {

enum class ModelKind { Mlp, Linear };
enum class Activation { None, Relu, Sigmoid, Tanh, Gelu };
enum class LossKind { CrossEntropy, MeanSquared };
enum class Init { Normal, Xavier, Kaiming, Zeros, Small };
enum class Optimizer { Sgd, Momentum, Adam, AdamW };
constexpr bool is_adam(Optimizer optimizer) { return optimizer == Optimizer::Adam || optimizer == Optimizer::AdamW; }
// Number of tensors that the optimizer keeps for each parameter.
constexpr int moments_of(Optimizer optimizer) {
  if (optimizer == Optimizer::Momentum) return 1;
  return is_adam(optimizer) ? 2 : 0;
}
enum class Schedule { Constant, Step, Cosine, Linear };
enum class Device { Auto, Cpu, Cuda };
enum class Allocator { Direct, StreamOrdered, Caching, Arena };
enum class SyncPolicy { EveryOp, EveryStep, OnRead };
enum class Fusion { Off, Pointwise, Epilogue };
enum class AttentionForm { Fused, Plain };
enum class PictureLayout { Nhwc, Nchw };
enum class Launch { Eager, Graph, Persistent, Auto };
enum class Precision { Fp32, Tf32, Bf16, Fp16 };
enum class Accumulate { Fp32, Fp16 };
enum class Matmul { Library, Tiled, Naive };
enum class Loader { Resident, Pinned, Pageable };
enum class Comm { Bucket, Layers, Overlap };
enum class CommBy { Auto, Nccl, Peer };

struct ModelSpec {
  ModelKind kind = ModelKind::Mlp;
  std::vector<int64_t> hidden{128};  // widths of the hidden layers; without meaning if there are `layers`
  std::string layers;                // the network as a list of layers, see layers.h; empty: `hidden` with `activation`
  Activation activation = Activation::Relu;
  bool bias = true;
  LossKind loss = LossKind::CrossEntropy;
  Init init = Init::Kaiming;
  double start_w = 0, start_b = 0;  // linear model: initial slope and intercept
  bool operator==(const ModelSpec&) const = default;
};

struct TrainSpec {
  int64_t epochs = 5;
  int64_t batch = 64;  // 0: the whole training set
  Optimizer optimizer = Optimizer::Momentum;
  double lr = 0.05;
  double momentum = 0.9;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  double label_smoothing = 0;  // share of the target that all classes divide equally
  double clip = 0;             // largest norm of all gradients together; 0: no limit
  Schedule schedule = Schedule::Constant;
  int64_t warmup_steps = 0;
  int64_t step_epochs = 10;  // schedule "step": multiply the learning rate by step_factor after this many epochs
  double step_factor = 0.1;
  bool shuffle = true;
  uint64_t seed = 42;
  double target_accuracy = 0;  // stop at this test accuracy; 0: never
  double time_limit_s = 0;     // 0: no limit
  int64_t eval_every = 1;      // epochs between evaluations; 0: evaluate only at the end
  bool operator==(const TrainSpec&) const = default;
};

struct ExecSpec {
  Device device = Device::Auto;
  Allocator allocator = Allocator::Arena;
  SyncPolicy sync = SyncPolicy::OnRead;
  Fusion fusion = Fusion::Epilogue;
  AttentionForm attention = AttentionForm::Fused;
  PictureLayout layout = PictureLayout::Nhwc;
  Launch launch = Launch::Eager;
  Precision precision = Precision::Fp32;
  Accumulate accumulate = Accumulate::Fp32;
  Matmul matmul = Matmul::Library;
  Loader loader = Loader::Resident;
  int64_t graph_steps = 16;        // maximum number of steps in one CUDA graph
  double pool_threshold_mib = -1;  // stream-ordered: MiB that the pool keeps at a synchronisation; negative: all
  double cache_cap_mib = 0;        // caching: maximum size of the pool; 0: no limit
  int64_t gpus = 1;                // ranks that share each batch; 0: one per GPU of the machine
  Comm comm = Comm::Bucket;
  CommBy comm_by = CommBy::Auto;
  double bucket_mib = 0;  // minimum MiB of gradients averaged together; 0: one layer; ignored if comm is bucket
  std::string kernels;    // "relu1=my.cu; fc1=b.cu": ops that run a kernel of one's own
  bool operator==(const ExecSpec&) const = default;
};

struct RunSpec {
  std::string name;  // name of the preset it started from
  data::DataSpec data;
  ModelSpec model;
  TrainSpec train;
  ExecSpec exec;
  bool operator==(const RunSpec&) const = default;
};

// Thrown for a spec that cannot be read; what() begins with the path of the key.
class SpecError : public Failure {
 public:
  using Failure::Failure;
};

// Thrown for a name that is neither a preset nor a file.
class NoSuchSpec : public Failure {
 public:
  using Failure::Failure;
};

enum class FieldKind { Choice, Integer, Number, Flag, Text, IntegerList };

struct FieldValue {
  std::string_view name;     // "stream-ordered"
  std::string_view explain;  // one sentence: what it does
};

// One field of RunSpec as users see it. The window, the JSON reader, --set and the spec diff all use this table.
struct Field {
  std::string_view key;    // "exec.allocator"
  std::string_view group;  // Data, Model, Training, Execution
  std::string_view label;  // "allocator"
  FieldKind kind;
  std::string_view explain;            // what the field does and what to look at
  std::span<const FieldValue> values;  // for a Choice
  double least = 0, most = 0;          // for a number, inclusive; equal: no limits
  bool above_least = false;            // the value must be greater than `least`
  bool live = false;                   // the field may change during a run
  nlohmann::json (*get)(const RunSpec&);
  void (*set)(RunSpec&, const nlohmann::json&);  // takes a value that is already checked; see set_field
};
std::span<const Field> fields();
const Field& field(std::string_view key);  // throws SpecError

nlohmann::json to_json(const RunSpec& spec);
RunSpec spec_from_json(const nlohmann::json& json);  // a missing key keeps its default; an unknown key is an error
RunSpec parse_spec(std::string_view text);
std::string spec_text(const RunSpec& spec, int indent = -1);                  // JSON that parse_spec() reads
RunSpec load_spec(const std::string& path_or_preset);                         // a file, or the name of a shipped preset
void set_field(RunSpec& spec, std::string_view key, std::string_view value);  // "exec.allocator", "caching"
void set_field(RunSpec& spec, std::string_view key, const nlohmann::json& value);
inline void set_field(RunSpec& spec, std::string_view key, const char* value) {
  set_field(spec, key, std::string_view(value));
}
inline void set_field(RunSpec& spec, std::string_view key, const std::string& value) {
  set_field(spec, key, std::string_view(value));
}
std::string field_text(const RunSpec& spec, std::string_view key);  // the value in the form that --set takes

struct Preset {
  std::string name, title, text;  // text: one sentence
  std::string path;
};
std::vector<Preset> presets();

struct FieldChange {
  std::string key, from, to;
};
std::vector<FieldChange> diff(const RunSpec& from, const RunSpec& to);

// True if the host launches a step before the GPU finished the previous one. The host's marks then do not show GPU
// time.
inline bool host_runs_ahead(const RunSpec& spec) {
  return spec.exec.launch != Launch::Eager || spec.exec.sync == SyncPolicy::OnRead;
}

// Why a combination of choices cannot run.
struct Refusal {
  std::string key;   // of the field to change
  std::string text;  // one sentence; it begins with the value's name where another value would do
  bool operator==(const Refusal&) const = default;
};

// Returns nullopt if this combination can run. `cuda`: a GPU can be used here.
std::optional<Refusal> why_invalid(const RunSpec& spec, bool cuda);
// Returns the reason to disable one other value of one field, or nullopt.
std::optional<Refusal> why_not(const RunSpec& spec, std::string_view key, std::string_view value, bool cuda);
// For Device::Auto without a GPU: replaces every choice that needs a GPU and adds one sentence per replacement to
// `notes`.
RunSpec fit_to_machine(RunSpec spec, bool cuda, std::vector<std::string>& notes);

std::string_view to_string(ModelKind);
std::string_view to_string(Activation);
std::string_view to_string(LossKind);
std::string_view to_string(Init);
std::string_view to_string(Optimizer);
std::string_view to_string(Schedule);
std::string_view to_string(Device);
std::string_view to_string(Allocator);
std::string_view to_string(SyncPolicy);
std::string_view to_string(Fusion);
std::string_view to_string(AttentionForm);
std::string_view to_string(PictureLayout);
std::string_view to_string(Launch);
std::string_view to_string(Precision);
std::string_view to_string(Accumulate);
std::string_view to_string(Matmul);
std::string_view to_string(Loader);
std::string_view to_string(Comm);
std::string_view to_string(CommBy);

}  // namespace ws
