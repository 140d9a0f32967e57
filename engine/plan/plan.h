// A training step as data: ops in execution order over typed buffers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/preparation.h"
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
  bool decays = false;            // Parameter: weight decay pulls it to zero; biases and gains do not decay
  int64_t elements() const { return rows * cols; }
  int64_t bytes() const { return elements() * size_of(type); }
};

enum class Phase : uint8_t { Input, Forward, Loss, Backward, Update, Evaluate };

// What each op reads and writes; shapes as (rows, cols).
//
// Pictures are NHWC: one row for each pixel of each picture, one column for each channel. Text has one row for each
// symbol. An op may read or write a buffer in another shape with as many elements: picture ops take their shape from
// Op::window, ops on columns take the number of columns from their (1, cols) operand, element-wise ops need none. Only
// MatMul needs exact shapes, so the buffers around a flattening already have the shape of its product.
enum class OpKind : uint8_t {
  LoadBatch,            // → x (n, in), y (n, 1) or (n, out)
  MatMul,               // a, b [, bias] [, saved] → c [, saved] [, bias gradient]: see Epilogue
  BroadcastBias,        // b (1, out) → c (n, out)
  Add,                  // a, b → c
  Activate,             // z → h
  ActivateGrad,         // dh, saved → dz
  Softmax,              // z → p
  CrossEntropy,         // z, y → metrics
  SoftmaxGrad,          // p, y → dz, scaled by 1/loss_rows and the loss scale
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
  WeightGradients,      // fused: (a, dz)... → (dw [, db])..., for several layers: see weight_gradient_items
  LinearUpdate,         // fused: x, y, w, states..., b, states... → metrics, w, b, states...
  AllReduce,            // gradients... → the same, averaged over the ranks by their shares of the step
  Conv,                 // x, w (k, kh·kw·c) [, bias] → z [, pre-activation]: epilogues None, Bias, BiasActivate
  ConvDataGrad,         // dz, w [, saved] → dx: epilogues None, ActivateGrad
  ConvWeightGrad,       // x, dz → dw [, bias gradient]: epilogues None, BiasGrad
  MaxPool,              // x → y
  MaxPoolGrad,          // dy, x, y → dx; the first maximum of a window, row by row, takes the gradient
  AvgPool,              // x → y
  AvgPoolGrad,          // dy → dx
  BatchNorm,            // x, gain, shift, running mean, running variance → y, mean, inverse deviation, running...;
                        // fused: with the activation and the max pool after it, and y is what they leave
  BatchNormApply,       // x, gain, shift, running mean, running variance → y: for evaluations
  BatchNormGrad,        // dy, x, gain, mean, inverse deviation [, shift if fused] → dx, dgain, dshift
  LayerNorm,            // x, gain, shift [, more] → y, mean (rows, 1), inverse deviation (rows, 1) [, x + more]
  LayerNormGrad,        // dy, x, gain, mean, inverse deviation [, more] → dx [+ more], dgain, dshift [, bias gradient]
  Embed,                // symbols (n, time), table (symbols, width) [, positions (time, width)] → h (n·time, width)
  EmbedGrad,            // symbols, dh → dtable [, dpositions]
  Attention,            // qkv (n·time, 3·width) → out (n·time, width), lse (n·heads, time)
  AttentionGrad,        // dout, out, qkv, lse → dqkv [, bias gradient]
  HeadProduct,          // a, b → c: op(a)·op(b) for each head of each text, see HeadParts
  CausalSoftmax,        // scores (n·heads·time, time) → shares of the symbols up to each one, zero behind it
  CausalSoftmaxGrad,    // gradient of the shares, shares → gradient of the scores
  Transpose,            // x → y: each of the window's n matrices of h × w turned to w × h
  Dropout,              // x → y: the same op with a gradient as x is its own gradient
  Prepare,              // x → y: pictures cropped, mirrored or normalised, see Preparation
  ClipGradients,        // gradients... → the same, scaled by min(1, train.clip / norm over all of them)
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

// The geometry of a picture op. A gradient op has the geometry of its forward op.
struct Window {
  int64_t n = 0, h = 0, w = 0, c = 0;                 // pictures; height, width and channels of the input
  int64_t kh = 0, kw = 0, stride = 1, pad = 0;        // the window; padding is zero for Conv, never a maximum or counted
  int64_t oh = 0, ow = 0, k = 0;                      // height, width and channels of the output
  bool operator==(const Window&) const = default;
};

// True for windows of 2 × 2 that tile the picture: a batch norm can take such a max pool into its kernel.
inline bool tiles_by_two(const Window& v) {
  return v.kh == 2 && v.kw == 2 && v.stride == 2 && v.pad == 0 && v.h == 2 * v.oh && v.w == 2 * v.ow;
}

// Causal self-attention: q, k and v stand side by side in a row, and the heads side by side in each of them. Scores are
// scaled by 1/√head_width.
struct Heads {
  int64_t time = 0, heads = 0, head_width = 0;
  bool operator==(const Heads&) const = default;
};

// What a HeadProduct takes of an operand for each head of each text. Query, Key and Value: its columns in a matrix like
// qkv; Output: its columns in a matrix like out. These have (time, head_width), Scores (time, time). Three
// products write the three parts of dqkv.
enum class HeadPart : uint8_t { Query, Key, Value, Output, Scores };
struct HeadParts {
  HeadPart a = HeadPart::Query, b = HeadPart::Key, c = HeadPart::Scores;
  bool scaled = false;  // by 1/√head_width
  bool operator==(const HeadParts&) const = default;
};

// Element i of step s survives if uniform_at(train.seed, dropout_stream(..., s), i) >= rate; it is scaled by
// 1/(1 − rate). A rank counts its own elements, and has streams of its own.
struct DropoutMask {
  float rate = 0;
  uint32_t stream = 0;
  bool operator==(const DropoutMask&) const = default;
};
inline uint64_t dropout_stream(const DropoutMask& mask, int64_t step) {
  return uint64_t{mask.stream} << 32 | static_cast<uint32_t>(step);
}

inline constexpr double kNormEpsilon = 1e-5;     // added to the variance under the root
inline constexpr double kRunningMomentum = 0.1;  // share of the batch in the running mean and (unbiased) variance

// A kernel that a person wrote, in place of the built-in ones.
struct OwnKernelSource {
  std::string file, text;
  explicit operator bool() const { return !text.empty(); }
};

struct Op {
  OpKind kind = OpKind::Sync;
  Phase phase = Phase::Forward;
  int layer = -1;    // index of the op's layer; -1: no layer
  std::string name;  // short label for the timeline: "fc1", "dW1", "bias relu"
  std::vector<BufferId> in, out;
  bool transpose_a = false, transpose_b = false;  // MatMul, HeadProduct: c = op(a)·op(b), all row-major
  Epilogue epilogue = Epilogue::None;
  Activation activation = Activation::None;  // also BatchNorm and its kin: the activation after the norm
  Window window;                             // Conv and pools; BatchNorm: of the max pool after the activation, or empty;
                                             // Prepare: n, h, w and c
  Heads heads;                               // Attention and its parts, Embed: time
  HeadParts parts;                           // HeadProduct
  DropoutMask dropout;
  Preparation preparation;
  OwnKernelSource own;
  std::string note;  // why the op has this form: "from rule bias+activation"
};

struct Plan {
  std::string id;  // hash of what runs; executors use it as the key of their graphs
  std::vector<Buffer> buffers;
  std::vector<Op> ops;
  std::vector<std::string> layer_names, layer_parts;  // "conv3"; "block 2", empty outside of blocks and residuals
  int64_t batch = 0;  // rows of a step that this plan's rank handles
  int64_t step_rows = 0;  // rows of a step over all ranks
  int ranks = 1;
  int64_t predictions = 1;  // predictions for each row of the batch: 1, or one for each symbol of a text
  int64_t arena_bytes = 0;
  RunSpec spec;                  // the spec of this plan; executors read model, train and exec from it
  std::vector<std::string> log;  // one line per pass: what it did

  const Buffer& buffer(BufferId which) const { return buffers[index(which)]; }
  Buffer& buffer(BufferId which) { return buffers[index(which)]; }
  BufferId find(const std::string& buffer_name) const;  // None if absent
  BufferId features() const;                            // the batch buffers; None if absent
  // Rows of the loss: its gradient is the mean over them. The targets of a text are (batch, predictions).
  int64_t loss_rows() const { return batch * predictions; }
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

// The loss op writes two sums over the step's predictions into the metrics buffer: loss and correct predictions. With
// label smoothing s and c classes the target is (1 − s)·onehot + s/c, for the loss as well as for its gradient.
// Evaluations do not smooth.

// Gelu's gradient reads the pre-activation; the other gradients read the output of the activation.
inline bool needs_preactivation(Activation a) { return a == Activation::Gelu; }
bool is_picture_op(OpKind kind);   // reads Op::window
bool is_bookkeeping(OpKind kind);  // Alloc, Free, Sync: no arithmetic
size_t computing_ops(const Plan& plan);  // ops that compute: without the batch and bookkeeping
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

// One layer of a WeightGradients: dw = aᵀ·dz, and db the column sums of dz if the op's epilogue is BiasGrad.
struct WeightGradientItem {
  BufferId a = BufferId::None, dz = BufferId::None, dw = BufferId::None, db = BufferId::None;
};
std::vector<WeightGradientItem> weight_gradient_items(const Op& op);

struct OutputParts {
  BufferId h = BufferId::None, w = BufferId::None, y = BufferId::None, bias = BufferId::None, saved = BufferId::None;
  BufferId dz = BufferId::None, metrics = BufferId::None, dz_before = BufferId::None;
  BufferId dw = BufferId::None, db = BufferId::None, db_before = BufferId::None;  // large batches only
};
OutputParts output_parts(const Op& op);

bool lives_in_step(const Buffer& buffer);  // True for Temp buffers, which place_memory places.

}  // namespace ws
