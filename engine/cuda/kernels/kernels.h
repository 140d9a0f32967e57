// The launchers behind every op of a plan: plain functions that put kernels on a stream, so that an executor is a
// dispatch.
//
// Rules that all of them keep:
//   - nothing is allocated, nothing waits, nothing depends on host values that change from step to step: what changes
//     is read from device memory through StepAt, so a captured graph can be replayed for any step;
//   - sums are made in a fixed order: the same inputs give the same bits;
//   - every row count is right, 16-byte access is used where shapes and addresses allow it.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/plan/plan.h"

#define WS_HOST_DEVICE __host__ __device__

namespace ws::cuda {

// Where to launch. With `overlap`, kernels start while their predecessor on the stream drains (programmatic dependent
// launch); set it for graphs and fused plans.
struct Queue {
  cudaStream_t stream = nullptr;
  bool overlap = false;
  Queue(cudaStream_t s = nullptr, bool o = false) : stream(s), overlap(o) {}
};

// In device memory, one for an executor: where the run stands. Written by set_clock and advance only.
struct StepClock {
  int64_t step = 0;  // of the first step of this graph launch, counted over the run
  int64_t row = 0;   // first row of that step in the epoch's order
};

// Which step a launch belongs to: the clock, and how many steps after it (a graph of k steps has offsets 0..k-1).
struct StepAt {
  const StepClock* clock = nullptr;
  int64_t offset = 0;
  const float* lr = nullptr;  // table; the entry of step s is lr[s % capacity]
  float* metrics = nullptr;   // ring of (loss sum, correct rows, rows): row s % capacity; device or mapped host memory
  int64_t capacity = 1;       // of both
};

// A row-major matrix. With a clock it is a view into the epoch's shuffled rows: its row 0 is row
// clock->row + view_offset · rows of `data`. Own kernels take views, cuBLASLt does not: see takes_views.
struct Tensor {
  void* data = nullptr;
  DType type = DType::F32;
  int64_t rows = 0, cols = 0;
  const StepClock* clock = nullptr;
  int64_t view_offset = 0;
  WS_HOST_DEVICE int64_t elements() const { return rows * cols; }
  WS_HOST_DEVICE explicit operator bool() const { return data != nullptr; }
};

// fp16 loss scaling, in device memory; check_finite moves it on once a step, between the gradients and the update.
struct LossScale {
  float scale = 65536.f;   // for the next loss gradient
  float inverse = 1.f;     // what the gradients of this step are multiplied with in the update
  int32_t good_steps = 0;  // since the scale last changed
  int32_t found_inf = 0;   // the verdict: this step's update is left out
  int32_t skipped = 0;     // steps left out over the run
};
constexpr int32_t kScaleGrowEvery = 2000;  // good steps, then the scale doubles; a bad one halves it

// Memory for two-stage reductions: kScratchBytes, zeroed once; kernels leave the counters zero. One for each stream.
struct Scratch {
  void* data = nullptr;
};
constexpr int64_t kScratchBytes = 4 << 20;

// ---- code ----
bool runs_clusters();  // compute capability 9.0 or newer: clusters of blocks, and launches that overlap
bool made_for(int major, int minor);  // the build has machine code for such a GPU
cudaError_t ask_for_code();           // asks the driver whether a kernel can run; makes a context

// ---- data ----
void set_clock(Queue, StepClock* clock, StepClock value);
void advance(Queue, StepClock* clock, int64_t steps, int64_t rows);  // once after each graph launch or eager step

// out row r = in row order[first + r] (order null: first + r), converted to out's type. With `at`, first is the step's
// row. LoadBatch of the resident loader, and, over all rows, the epoch's shuffle.
void gather_rows(Queue, const Tensor& in, const uint32_t* order, int64_t first, StepAt at, const Tensor& out);
void convert(Queue, const Tensor& in, const Tensor& out);  // float ↔ 16 bit

// ---- matrix products ----
// c = epilogue(op(a) · op(b)). Operands per Epilogue as engine/plan/plan.h says.
struct Product {
  Tensor a, b, c;
  bool transpose_a = false, transpose_b = false;
  Epilogue epilogue = Epilogue::None;
  Activation activation = Activation::None;
  Tensor bias;       // in: Bias, BiasActivate
  Tensor saved;      // BiasActivate: out, the pre-activation, may be empty; ActivateGrad: in
  Tensor bias_grad;  // out: BiasGrad
  Precision precision = Precision::Fp32;
  Accumulate accumulate = Accumulate::Fp32;
  // b was written two launches ago or earlier: it may be read while the launch before still runs.
  bool b_is_settled = false;
};

// cuBLASLt behind a cache: handle, 32 MiB workspace, one chosen algorithm a shape. One for each stream.
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

// How a product is computed: the person's choice, and within Library cuBLASLt or an own kernel by shape.
enum class Engine : uint8_t { Naive, Tiled, Small, Library };
Engine engine_of(Matmul how, const Product& product);
std::string describe(Matmul how, const Product& product);  // "own 32×32 tensor cores", "cuBLASLt"; a plan note
bool takes_views(Matmul how, const Product& product);      // a and b may carry a clock
// Chooses and caches the algorithm, so that capture finds everything ready. Call once at bind for each product.
void prepare(Blas&, Matmul how, const Product& product);
void matmul(Queue, Blas&, Scratch, Matmul how, const Product& product);

// ---- one op, one kernel ----
void broadcast_bias(Queue, const Tensor& bias, const Tensor& out);
void add(Queue, const Tensor& a, const Tensor& b, const Tensor& out);
void activate(Queue, Activation, const Tensor& z, const Tensor& h);
// saved: h for relu, sigmoid and tanh; z for gelu.
void activate_grad(Queue, Activation, const Tensor& dh, const Tensor& saved, const Tensor& dz);
void softmax(Queue, const Tensor& z, const Tensor& p);
void cross_entropy(Queue, Scratch, const Tensor& p, const Tensor& labels, StepAt at);
void softmax_grad(Queue, const Tensor& p, const Tensor& labels, const LossScale* scale, const Tensor& dz);
void squared_error(Queue, Scratch, const Tensor& z, const Tensor& y, StepAt at);
void squared_error_grad(Queue, const Tensor& z, const Tensor& y, const LossScale* scale, const Tensor& dz);
void column_sum(Queue, Scratch, const Tensor& dz, const Tensor& db);
// Looks at every gradient, decides the step and moves the scale on. At most kMaxParameters tensors. Where grad_update
// makes the weight gradients itself, give it the dz instead: a sum of at most a few thousand products of fp16 numbers
// cannot overflow fp32, so a weight gradient is finite exactly when its dz is.
void check_finite(Queue, Scratch, std::span<const Tensor> gradients, LossScale* scale);

// ---- optimizers ----
struct ParamRef {
  float* w = nullptr;
  Tensor grad;                       // empty where the kernel makes it itself
  Tensor shadow;                     // 16-bit copy, empty: none
  float *m = nullptr, *v = nullptr;  // moments, as the optimizer needs
  int64_t n = 0;
  bool decays = true;  // weights do, biases do not
};
constexpr int kMaxParameters = 128;  // of one launch; more are split

struct OptimizerRef {
  Optimizer kind = Optimizer::Sgd;
  float momentum = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  StepAt at;                         // learning rate; step number for Adam
  const LossScale* scale = nullptr;  // fp16: gradients are divided by it, and nothing moves when found_inf is set
};
void update(Queue, const OptimizerRef&, const ParamRef&);
void update_all(Queue, const OptimizerRef&, std::span<const ParamRef>);

// ---- fused ----
void bias_activate(Queue, Activation, const Tensor& z, const Tensor& bias, const Tensor& h, const Tensor& saved);
void softmax_cross_entropy(Queue, Scratch, const Tensor& z, const Tensor& labels, const LossScale* scale,
                           const Tensor& dz, StepAt at);
void squared_error_fused(Queue, Scratch, const Tensor& z, const Tensor& y, const LossScale* scale, const Tensor& dz,
                         StepAt at);

// The last layer in one kernel: z = h·W + b, the loss, dz, and the gradient that enters the layer before it.
struct OutputLayer {
  Tensor h, w, bias;  // (n, in), (in, out), (1, out) or empty
  Tensor y;           // labels (n, 1) or targets (n, out)
  LossKind loss = LossKind::CrossEntropy;
  Tensor dz;                                 // (n, out)
  Tensor dz_before;                          // (n, in) = dz·Wᵀ ∘ f'(saved); empty: not wanted
  Tensor saved;                              // of the layer before
  Activation activation = Activation::None;  // of the layer before
  const LossScale* scale = nullptr;
  StepAt at;
  Tensor dw, db, db_before;  // of more than 1024 rows, in ≤ 128, out ≤ 10; empty: not wanted
  // The metrics stay in the scratch, row by row, until a grad_update joins them: saves a round trip.
  bool join_later = false;
};
void output_layer(Queue, Scratch, const OutputLayer&);

// Weight gradients of several layers, their bias gradients and the optimizer in one kernel: dW is never written.
struct LayerUpdate {
  Tensor a, dz;      // (n, in), (n, out)
  ParamRef w, bias;  // bias.w null: none
};
constexpr int kMaxLayerUpdates = 16;  // of one launch; more are split
// `join`: also writes the metrics that an output layer left in its scratch.
struct JoinLosses {
  Scratch scratch;
  int rows = 0;
};
void grad_update(Queue, const OptimizerRef&, Precision, std::span<const LayerUpdate>, JoinLosses join = {});

// Regression with one output, in one pass over the data; at memory speed with one input. dw (in, 1), db (1, 1).
struct LinearStep {
  Tensor x, y;  // (n, in), (n, 1)
  float *w = nullptr, *b = nullptr;
  float *dw = nullptr, *db = nullptr;       // out; may be null when `optimizer` is given
  const OptimizerRef* optimizer = nullptr;  // given: w and b are moved in the same kernel
  ParamRef w_param, b_param;                // with optimizer: moments
  bool data_is_constant = false;  // nothing before it in the same graph or stream writes x or y: read them early
  StepAt at;
  int64_t steps = 1;  // as many as that, one after the other from `at` on; above 1 with `held` and an optimizer
  bool held = false;  // where keeps_points: read once and kept, which pays with many steps
};
// Few enough points that the multiprocessors can keep them from one step of a launch to the next.
bool keeps_points(const Tensor& x);
void linear_step(Queue, Scratch, const LinearStep&);
// Over several streams, one input: each call sums rows [first, first + x.rows) into slot `chunk` of `partials` (3
// floats a slot)...
void linear_chunk(Queue, Scratch, const LinearStep&, int chunk, float* partials);
// ...and one joins them.
void linear_join(Queue, const LinearStep&, int chunks, const float* partials);

// ---- evaluation ----
// Adds (loss sum, correct rows, rows) of a batch to `sums` (3 doubles, device). z: logits or predictions.
void evaluate_loss(Queue, Scratch, LossKind, const Tensor& z, const Tensor& y, double* sums);

// ---- made on the GPU ----
// The same points as the data set "line".
void fill_line(Queue, float* x, float* y, int64_t points, int64_t first, const data::DataSpec&);

}  // namespace ws::cuda
