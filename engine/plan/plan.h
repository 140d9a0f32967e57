// A training step as data: ops in execution order over typed buffers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/run_spec.h"

namespace ws {

enum class BufferId : int32_t { None = -1 };
enum class ParamId : int32_t { None = -1 };
inline size_t index(BufferId id) { return static_cast<size_t>(id); }
inline size_t index(ParamId id) { return static_cast<size_t>(id); }

enum class DType : uint8_t { F32, F16, Bf16, I32 };
int64_t size_of(DType type);

enum class Role : uint8_t {
  Batch,      // features, labels or targets of the batch; written by LoadBatch
  Temp,       // lives within a step: activations, their gradients, parameter gradients
  Parameter,  // outlives the step: master weights
  Shadow,     // outlives the step: 16-bit copy of a parameter
  State,      // outlives the step: optimizer moments
  Metric,     // outlives the step: sums that the host reads later
};

struct Buffer {
  std::string name;  // "h1", "dW2"
  Role role = Role::Temp;
  DType type = DType::F32;
  int64_t rows = 0, cols = 0;
  ParamId param = ParamId::None;  // the parameter that this buffer holds, shadows, or is a moment of
  int slot = 0;                   // State: 0 first moment, 1 second moment. Batch: 0 features, 1 targets
  int64_t offset = -1;            // byte offset in the arena, set by place_memory
  bool decays = false;            // Parameter: weight decay pulls it to zero; biases do not decay
  int64_t elements() const { return rows * cols; }
  int64_t bytes() const { return elements() * size_of(type); }
};

enum class Phase : uint8_t { Input, Forward, Loss, Backward, Update, Evaluate };

// What each op reads and writes; shapes as (rows, cols).
enum class OpKind : uint8_t {
  LoadBatch,            // → x (n, in), y (n, 1) or (n, out)
  MatMul,               // a, b [, bias] [, saved] → c [, saved] [, bias gradient]: see Epilogue
  BroadcastBias,        // b (1, out) → c (n, out)
  Add,                  // a, b → c
  Activate,             // z → h
  ActivateGrad,         // dh, saved → dz
  Softmax,              // z → p
  CrossEntropy,         // p, y → metrics
  SoftmaxGrad,          // p, y → dz, scaled by 1/n and the loss scale
  SquaredError,         // z, y → metrics
  SquaredErrorGrad,     // z, y → dz
  ColumnSum,            // dz → db (1, out)
  CheckFinite,          // gradients... → verdict in the loss-scale state
  Update,               // w, dw, shadow?, states... → the same, one parameter
  BiasActivate,         // fused: z, b → h [, pre-activation, when the gradient needs it]
  SoftmaxCrossEntropy,  // fused: z, y → dz, metrics
  SquaredErrorFused,    // fused: z, y → dz, metrics
  UpdateAll,            // fused: every parameter at once
  LinearStep,           // fused: x, y, w, b → dw, db, metrics
  OutputLayer,          // fused: h, w, y [, bias, saved] → dz, metrics [, dz before, gradients]: see output_parts
  GradientUpdate,       // fused: (a, dz, w, states... [, b, states...])... → the same: see gradient_items
  LinearUpdate,         // fused: x, y, w, states..., b, states... → metrics, w, b, states...
  AllReduce,            // gradients... → the same, averaged over the ranks by their shares of the step
  Alloc,                // out: the buffers that begin to live here
  Free,                 // in: the buffers that end here
  Sync,                 // the host waits for the device
};

// What happens inside the matrix product after the sum, on fusion level `epilogue`.
enum class Epilogue : uint8_t {
  None,
  Bias,          // in: a, b, bias      → out: c
  BiasActivate,  // in: a, b [, bias]   → out: h [, pre-activation]
  ActivateGrad,  // in: a, b, saved     → out: dz
  BiasGrad,      // in: a = xᵀ, b = dz  → out: dW, db (column sums of b)
};

struct Op {
  OpKind kind = OpKind::Sync;
  Phase phase = Phase::Forward;
  int layer = -1;    // index of the op's layer; -1: no layer
  std::string name;  // short label for the timeline: "fc1", "dW1", "bias relu"
  std::vector<BufferId> in, out;
  bool transpose_a = false, transpose_b = false;  // MatMul: c = op(a)·op(b), all row-major
  Epilogue epilogue = Epilogue::None;
  Activation activation = Activation::None;
  std::string note;  // why the op has this form: "from rule bias+activation"
};

struct Plan {
  std::string id;  // hash of what runs; executors use it as the key of their graphs
  std::vector<Buffer> buffers;
  std::vector<Op> ops;
  std::vector<std::string> layer_names;
  int64_t batch = 0;  // rows of a step that this plan's rank handles
  int64_t step_rows = 0;  // rows of a step over all ranks
  int ranks = 1;
  int64_t arena_bytes = 0;
  RunSpec spec;                  // the spec of this plan; executors read model, train and exec from it
  std::vector<std::string> log;  // one line per pass: what it did

  const Buffer& buffer(BufferId which) const { return buffers[index(which)]; }
  Buffer& buffer(BufferId which) { return buffers[index(which)]; }
  BufferId find(const std::string& buffer_name) const;  // None if absent
  BufferId features() const;                            // the batch buffers; None if absent
  BufferId targets() const;
  // This rank's share of the step's rows.
  double share() const { return static_cast<double>(batch) / static_cast<double>(step_rows); }
};

// The rows [first, first + count) of a step that one rank handles.
struct RankRows {
  int64_t first = 0, count = 0;
};
inline RankRows rows_of_rank(int64_t rows, int rank, int ranks) {
  const int64_t first = rows * rank / ranks;
  return {first, rows * (rank + 1) / ranks - first};
}

int64_t flops(const Plan& plan, const Op& op);
int64_t bytes(const Plan& plan, const Op& op);         // bytes if every operand is read or written once
std::string describe(const Plan& plan, const Op& op);  // "dW1 = xᵀ·dz1"
std::string print(const Plan& plan);                   // a table for people
void validate(const Plan& plan);  // throws Failure that names the op: use before write, wrong shape or lifetime
std::string plan_hash(const Plan& plan);

std::string_view to_string(OpKind);
std::string_view to_string(Phase);
std::string_view to_string(Role);
std::string_view to_string(DType);
std::string_view to_string(Epilogue);

// The loss op writes two sums over the step's rows into the metrics buffer: loss and correct rows.

// Gelu's gradient reads the pre-activation; the other gradients read the output of the activation.
inline bool needs_preactivation(Activation a) { return a == Activation::Gelu; }
bool is_bookkeeping(OpKind kind);  // Alloc, Free, Sync: no arithmetic
// What an Update or UpdateAll does to one parameter.
struct UpdateItem {
  ParamId param = ParamId::None;
  BufferId master = BufferId::None, gradient = BufferId::None, shadow = BufferId::None;
  BufferId moment[2] = {BufferId::None, BufferId::None};
};
std::vector<UpdateItem> update_items(const Plan& plan, const Op& op);  // also for LinearUpdate

// One layer of a GradientUpdate: aᵀ·dz updates w, and the column sums of dz update the bias if there is one.
struct GradientItem {
  BufferId a = BufferId::None, dz = BufferId::None;
  UpdateItem weight, bias;
};
std::vector<GradientItem> gradient_items(const Plan& plan, const Op& op);

struct OutputParts {
  BufferId h = BufferId::None, w = BufferId::None, y = BufferId::None, bias = BufferId::None, saved = BufferId::None;
  BufferId dz = BufferId::None, metrics = BufferId::None, dz_before = BufferId::None;
  BufferId dw = BufferId::None, db = BufferId::None, db_before = BufferId::None;  // large batches only
};
OutputParts output_parts(const Op& op);

bool lives_in_step(const Buffer& buffer);  // True for Temp buffers, which place_memory places.

}  // namespace ws
