// The launchers behind every op of a plan: plain functions that put kernels on a stream.
//
// All of them keep these rules:
//   - They allocate nothing and wait for nothing. Values that change from step to step are read from device memory
//     through StepAt, so a captured graph can be replayed for any step.
//   - They add in a fixed order: the same inputs give the same bits.
//   - They accept every row count, and use 16-byte accesses if shapes and addresses allow it.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "engine/plan/plan.h"

#define WS_HOST_DEVICE __host__ __device__

namespace ws::cuda {

// Where to launch. With `overlap`, a kernel starts while its predecessor on the stream finishes (programmatic dependent
// launch). Set it for graphs and fused plans.
struct Queue {
  cudaStream_t stream = nullptr;
  bool overlap = false;
  Queue(cudaStream_t s = nullptr, bool o = false) : stream(s), overlap(o) {}
};

// The position of the run, in device memory, one per executor. Only set_clock and advance write it.
struct StepClock {
  int64_t step = 0;  // step number, counted over the run, of the first step of this graph launch
  int64_t row = 0;   // first row of that step in the epoch's order
};

// Identifies the step of a launch: the clock plus an offset in steps (a graph of k steps has offsets 0..k-1).
struct StepAt {
  const StepClock* clock = nullptr;
  int64_t offset = 0;
  const float* lr = nullptr;  // table; the entry of step s is lr[s % capacity]
  float* metrics = nullptr;   // ring of (loss sum, correct rows, rows): row s % capacity; device or mapped host memory
  int64_t capacity = 1;       // entries of `lr` and of `metrics`
};

// A row-major matrix. With a clock it is a view into the epoch's shuffled rows: its row 0 is row clock->row +
// view_offset · rows of `data`. Our own kernels accept views, cuBLASLt does not: see takes_views.
struct Tensor {
  void* data = nullptr;
  DType type = DType::F32;
  int64_t rows = 0, cols = 0;
  const StepClock* clock = nullptr;
  int64_t view_offset = 0;
  WS_HOST_DEVICE int64_t elements() const { return rows * cols; }
  WS_HOST_DEVICE explicit operator bool() const { return data != nullptr; }
};

// fp16 loss scaling, in device memory. check_finite updates it once per step, between the gradients and the update.
struct LossScale {
  float scale = 65536.f;   // for the next loss gradient
  float inverse = 1.f;     // factor for this step's gradients in the update
  int32_t good_steps = 0;  // steps since the scale last changed
  int32_t found_inf = 0;   // nonzero: this step's update is skipped
  int32_t skipped = 0;     // skipped steps of the whole run
};
constexpr int32_t kScaleGrowEvery = 2000;  // the scale doubles after this many good steps; a bad step halves it

// Memory for two-stage reductions: kScratchBytes, zeroed once. It begins with the counters, which kernels leave zero; the
// partial sums follow. Each stream has its own.
struct Scratch {
  void* data = nullptr;
};
constexpr int64_t kScratchBytes = 4 << 20;
constexpr int kCounterBytes = 4096;

// ---- code ----
bool runs_clusters();  // compute capability 9.0 or newer: block clusters and overlapping launches
bool runs_warpgroups();  // compute capability 9.0, which has these instructions alone
bool made_for(int major, int minor);  // true if the build contains machine code for this GPU
cudaError_t ask_for_code();           // asks the driver if it can run a kernel; creates a context

// ---- data ----
void set_clock(Queue, StepClock* clock, StepClock value);
void advance(Queue, StepClock* clock, int64_t steps, int64_t rows);  // call once after each graph launch or eager step

// Copies row order[first + r] of `in` to row r of `out` and converts it to out's type (without order: row first + r).
// With `at`, first is the step's row. It is LoadBatch of the resident loader and, over all rows, the epoch's shuffle.
void gather_rows(Queue, const Tensor& in, const uint32_t* order, int64_t first, StepAt at, const Tensor& out);
void convert(Queue, const Tensor& in, const Tensor& out);  // float ↔ 16 bit, float → integer

class KeptParts;

// ---- matrix products ----
// Computes c = epilogue(op(a) · op(b)). Epilogue in engine/plan/plan.h lists the operands.
struct Product {
  Tensor a, b, c;
  bool transpose_a = false, transpose_b = false;
  Epilogue epilogue = Epilogue::None;
  Activation activation = Activation::None;
  Tensor bias;       // in: Bias, BiasActivate
  Tensor saved;      // BiasActivate: output, the pre-activation, may be empty; ActivateGrad: input
  Tensor bias_grad;  // out: BiasGrad
  Precision precision = Precision::Fp32;
  Accumulate accumulate = Accumulate::Fp32;
  // True if b was written at least two launches ago: it may be read while the previous launch still runs.
  bool b_is_settled = false;
  KeptParts* kept = nullptr;  // where parts of bias_grad may stay
};

// cuBLASLt with a cache: handle, 32 MiB workspace, one chosen algorithm per shape. Each stream has its own.
class Blas {
 public:
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// How a product is computed: the user's choice. Within Library, the shape selects cuBLASLt or an own kernel.
enum class Engine : uint8_t { Naive, Tiled, Small, Warpgroups, Library };
Engine engine_of(Matmul how, const Product& product);
std::string describe(Matmul how, const Product& product);  // "own 32×32 tensor cores", "cuBLASLt"; a plan note
bool takes_views(Matmul how, const Product& product);      // true if a and b may carry a clock
// Chooses and caches the algorithm, so that a capture needs no choice. Call once per product at bind.
void prepare(Blas&, Matmul how, const Product& product);
void matmul(Queue, Blas&, Scratch, Matmul how, const Product& product);

// Memory for partial sums that the scratch is too small for. Blas owns it.
struct Workspace {
  void* data = nullptr;
  int64_t bytes = 0;
};
Workspace workspace(const Blas&);

// A gradient whose parts only the update adds up: `count` of them, `step` floats apart. Count 0: it is whole.
struct GradientParts {
  const float* data = nullptr;
  int64_t step = 0;
  int count = 0;
};
// Keeps such parts until the update of the same step. Blas owns the memory.
class KeptParts {
 public:
  explicit KeptParts(Workspace memory) : memory_(memory) {}
  Workspace memory_left() const;  // for the parts of one more operation
  void keep(const void* gradient, const GradientParts& parts);  // that lie in it, instead of a gradient at this address
  GradientParts of(const void* gradient) const;
  void forget() { kept_.clear(); used_ = 0; }

 private:
  Workspace memory_;
  int64_t used_ = 0;
  std::map<const void*, GradientParts> kept_;
};
KeptParts& kept_parts(const Blas&);

// What a norm's statistics need of a matrix: for each `rows` of its rows, in any order and fewer in the end, three rows of
// floats: the column sums of x - pivot and of its square, and the pivot.
struct Moments {
  float* data = nullptr;
  int64_t rows = 0;
  WS_HOST_DEVICE explicit operator bool() const { return data != nullptr; }
};

// ---- pictures ----
// Pictures are NHWC: a tensor of n pictures has n·h·w rows and c columns, or any other shape with as many elements. Only
// x may carry a clock.
struct Convolution {
  enum class Pass : uint8_t { Forward, DataGrad, WeightGrad };
  Pass pass = Pass::Forward;
  Window window;
  Tensor x, w, z;  // (n·h·w, c), (k, kh·kw·c), (n·oh·ow, k): values, or what the pass writes: z, dx or dw
  Epilogue epilogue = Epilogue::None;
  Activation activation = Activation::None;
  Tensor bias;       // in: Bias, BiasActivate
  Tensor saved;      // BiasActivate: output, the pre-activation, may be empty; ActivateGrad: input
  Tensor bias_grad;  // out: BiasGrad
  Precision precision = Precision::Fp32;
  bool w_is_settled = false;  // as Product::b_is_settled
  bool by_warps = false;      // never on the instructions that only Hopper has
  KeptParts* kept = nullptr;  // WeightGrad: where parts of dw and of the bias gradient may stay
  Moments moments;            // Forward: from moments_of, or empty
};
Moments moments_of(const Convolution&, Workspace);  // where its kernel may leave them; empty if it does not, or no place
void convolve(Queue, Workspace, const Convolution&);
std::string describe(const Convolution&);  // a plan note

void max_pool(Queue, const Window&, const Tensor& x, const Tensor& y);
// With an activation, x is its result, and dx is the gradient of its argument.
void max_pool_grad(Queue, const Window&, Activation, const Tensor& dy, const Tensor& x, const Tensor& dx);
void avg_pool(Queue, const Window&, const Tensor& x, const Tensor& y);
void avg_pool_grad(Queue, const Window&, const Tensor& dy, const Tensor& dx);

// ---- pictures on their way into the network ----
// Reads x as a view if it has a clock. `pictures`: n, h, w and c.
void prepare_pictures(Queue, const Preparation&, const Window& pictures, uint64_t seed, StepAt at, const Tensor& x,
                      const Tensor& y);

// ---- layouts ----
// Turns each of the window's n matrices of h × w.
void turn(Queue, const Window&, const Tensor& x, const Tensor& y);

// ---- norms and dropout ----
// With `pool`, a max pool of tiled windows follows the norm and its activation: y has one row for each window, and the
// values between are never in memory.
struct BatchNormalization {
  Tensor x, y;                          // (rows, c)
  Tensor gain, shift;                   // (1, c)
  Tensor running_mean, running_var;     // (1, c), read and written
  Tensor mean, inverse;                 // (1, c), out: of the batch
  Activation activation = Activation::None;
  Window pool;
  Moments moments;  // of x, if the convolution that made it left them
};
void batch_norm(Queue, Scratch, const BatchNormalization&);
void batch_norm_apply(Queue, const BatchNormalization&);  // normalizes with the running statistics, and keeps them

// The norm's result, which the activation's slope and the pool's choice depend on, is computed again from x.
struct BatchNormGradient {
  Tensor dy, x;                      // (rows, c)
  Tensor gain, shift, mean, inverse; // (1, c); shift only with an activation or a pool
  Tensor dx, dgain, dshift;          // out
  Activation activation = Activation::None;
  Window pool;
};
void batch_norm_grad(Queue, Scratch, const BatchNormGradient&);

void dropout(Queue, const DropoutMask&, uint64_t seed, StepAt at, const Tensor& x, const Tensor& y);

// Computes the weight gradients dw = aᵀ·dz of several layers, and db, the column sums of dz if db is given. One launch
// fills the GPU where one layer's product does not. All a and dz have as many rows.
struct WeightGradient {
  Tensor a, dz, dw, db;
};
void weight_gradients(Queue, Precision, std::span<const WeightGradient>);

// ---- one op, one kernel ----
void broadcast_bias(Queue, const Tensor& bias, const Tensor& out);
void add(Queue, const Tensor& a, const Tensor& b, const Tensor& out);
void activate(Queue, Activation, const Tensor& z, const Tensor& h);
// saved: h for relu, sigmoid and tanh; z for gelu.
void activate_grad(Queue, Activation, const Tensor& dh, const Tensor& saved, const Tensor& dz);
void softmax(Queue, const Tensor& z, const Tensor& p);
// The class of each row, in any shape with as many elements as there are rows. The target of a row is
// (1 − smoothing)·onehot + smoothing/classes.
struct Labels {
  Tensor classes;
  float smoothing = 0;
  Labels(const Tensor& t, double s = 0) : classes(t), smoothing(static_cast<float>(s)) {}
};
void cross_entropy(Queue, Scratch, const Tensor& z, const Labels&, StepAt at);
void softmax_grad(Queue, const Tensor& p, const Labels&, const LossScale* scale, const Tensor& dz);
void squared_error(Queue, Scratch, const Tensor& z, const Tensor& y, StepAt at);
void squared_error_grad(Queue, const Tensor& z, const Tensor& y, const LossScale* scale, const Tensor& dz);
void column_sum(Queue, Scratch, const Tensor& dz, const Tensor& db, KeptParts* kept = nullptr);  // as BiasGradient::kept
// The column sums of the gradient that a kernel makes. db: empty if nothing wants them.
struct BiasGradient {
  Tensor db;
  Scratch scratch;
  KeptParts* kept = nullptr;  // where parts of db may stay
};
void join_column_sums(Queue, const GradientParts& parts, const Tensor& db);
// Checks every gradient, decides if the step is valid, and updates the scale. If grad_update computes the weight
// gradients itself, pass the dz instead. A sum of a few thousand products of fp16 numbers cannot overflow fp32, so a
// weight gradient is finite exactly when its dz is.
void check_finite(Queue, Scratch, std::span<const Tensor> gradients, LossScale* scale);

// ---- transformers ----
// Causal self-attention in one kernel: see Heads for the shapes. It keeps no scores: lse (n·heads, time) holds the
// logarithm of each softmax's sum. Heads have at most kMaxHeadWidth columns.
constexpr int64_t kMaxHeadWidth = 128;
void attention(Queue, Precision, const Heads&, const Tensor& qkv, const Tensor& out, const Tensor& lse);
void attention_grad(Queue, Precision, const Heads&, const Tensor& dout, const Tensor& out, const Tensor& qkv,
                    const Tensor& lse, const Tensor& dqkv, const BiasGradient& = {});
// The parts of attention as kernels of their own: see HeadParts. `scores` and `shares` are (n·heads·time, time).
struct HeadMultiplication {
  Heads heads;
  HeadParts parts;
  Tensor a, b, c;
  bool transpose_a = false, transpose_b = false;  // one of them at most
};
void head_product(Queue, Precision, const HeadMultiplication&);
void causal_softmax(Queue, const Tensor& scores, const Tensor& shares);
void causal_softmax_grad(Queue, const Tensor& dshares, const Tensor& shares, const Tensor& dscores);
// With `more`: normalises sum = x + more, which it writes too.
struct Norm {
  Tensor x, gain, shift, y, mean, inverse, more, sum;
};
void layer_norm(Queue, const Norm&);
// `more`: empty, or a gradient of x that is added to dx. `dbias`: empty, or gets the column sums of dx.
struct NormGrad {
  Tensor dy, x, gain, mean, inverse, more, dx, dgain, dshift, dbias;
  KeptParts* kept = nullptr;  // where parts of the column sums may stay
};
void layer_norm_grad(Queue, Scratch, const NormGrad&);
// h = table[symbol] + positions[time], one row for each symbol. Without positions: only the table.
void embed(Queue, const Tensor& symbols, const Tensor& table, const Tensor& positions, const Tensor& h);
void embed_grad(Queue, Scratch, const Tensor& symbols, const Tensor& dh, const Tensor& dtable, const Tensor& dpositions);

// ---- optimizers ----
// Scales all gradients by min(1, limit / norm over all of them). With fp16 they carry the loss scale: pass it.
void clip_gradients(Queue, Scratch, std::span<const Tensor> gradients, float limit, const LossScale* scale);
struct ParamRef {
  float* w = nullptr;
  Tensor grad;                       // empty if the kernel computes it itself
  Tensor shadow;                     // 16-bit copy; empty: none
  float *m = nullptr, *v = nullptr;  // moments that the optimizer needs
  int64_t n = 0;
  bool decays = true;  // true for weights, false for biases
  GradientParts parts;  // of grad, if it is not whole
};
constexpr int kMaxParameters = 128;  // per launch; more need several launches

struct OptimizerRef {
  Optimizer kind = Optimizer::Sgd;
  float momentum = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  StepAt at;                         // learning rate, and the step number for Adam
  const LossScale* scale = nullptr;  // fp16: divides the gradients; found_inf skips the update
  bool nesterov = false;             // Momentum: looks one step ahead
};
void update(Queue, const OptimizerRef&, const ParamRef&);
// `join`: also writes the metrics whose rows a loss left in its scratch.
struct JoinLosses {
  Scratch scratch;
  int rows = 0;
};
constexpr int64_t kMostJoinedRows = 128 << 10;  // the scratch holds no more
void update_all(Queue, const OptimizerRef&, std::span<const ParamRef>, JoinLosses join = {});

// ---- fused ----
void bias_activate(Queue, Activation, const Tensor& z, const Tensor& bias, const Tensor& h, const Tensor& saved);
// `join_later`: as OutputLayer::join_later.
void softmax_cross_entropy(Queue, Scratch, const Tensor& z, const Labels&, const LossScale* scale,
                           const Tensor& dz, StepAt at, bool join_later = false);
void squared_error_fused(Queue, Scratch, const Tensor& z, const Tensor& y, const LossScale* scale, const Tensor& dz,
                         StepAt at);

// The last layer in one kernel: z = h·W + b, the loss, dz, and the gradient for the layer before it.
struct OutputLayer {
  Tensor h, w, bias;  // (n, in), (in, out), (1, out) or empty
  Tensor y;           // labels (n, 1) or targets (n, out)
  LossKind loss = LossKind::CrossEntropy;
  Tensor dz;                                 // (n, out)
  Tensor dz_before;                          // (n, in) = dz·Wᵀ ∘ f'(saved); empty: not needed
  Tensor saved;                              // from the layer before
  Activation activation = Activation::None;  // of the layer before
  const LossScale* scale = nullptr;
  StepAt at;
  Tensor dw, db, db_before;  // only for more than 1024 rows, in ≤ 128, out ≤ 10; empty: not needed
  // Keeps per-row metrics in the scratch until the update adds them up. This saves a round trip.
  bool join_later = false;
  bool w_is_settled = false;  // as Product::b_is_settled
};
void output_layer(Queue, Scratch, const OutputLayer&);

// Computes weight and bias gradients of several layers and runs the optimizer in one kernel. dW is never written.
struct LayerUpdate {
  Tensor a, dz;      // (n, in), (n, out)
  ParamRef w, bias;  // bias.w null: no bias
};
constexpr int kMaxLayerUpdates = 16;  // per launch; more need several launches
void grad_update(Queue, const OptimizerRef&, Precision, std::span<const LayerUpdate>, JoinLosses join = {});

// Regression with one output in one pass over the data. With one input it runs at memory speed. dw (in, 1), db (1, 1).
struct LinearStep {
  Tensor x, y;  // (n, in), (n, 1)
  float *w = nullptr, *b = nullptr;
  float *dw = nullptr, *db = nullptr;       // out; may be null when `optimizer` is given
  const OptimizerRef* optimizer = nullptr;  // if set, the same kernel updates w and b
  ParamRef w_param, b_param;                // moments for the optimizer
  // True if nothing before it in the same graph or stream writes x or y; allows early reads.
  bool data_is_constant = false;
  StepAt at;
  int64_t steps = 1;  // number of consecutive steps from `at` on; more than 1 needs `held` and an optimizer
  bool held = false;  // read the points once and keep them; needs keeps_points, and pays off with many steps
};
// True if the points are few enough that the multiprocessors can keep them between the steps of a launch.
bool keeps_points(const Tensor& x);
void linear_step(Queue, Scratch, const LinearStep&);

// ---- evaluation ----
// Adds (loss sum, correct rows, rows) of a batch to `sums` (3 doubles, device). z: logits or predictions.
void evaluate_loss(Queue, Scratch, LossKind, const Tensor& z, const Tensor& y, double* sums);

// ---- made on the GPU ----
// Makes the points of the data set "line".
void fill_line(Queue, float* x, float* y, int64_t points, int64_t first, const data::DataSpec&);

}  // namespace ws::cuda
