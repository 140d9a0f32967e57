#include "engine/cuda/kernels/blas.h"

#include <algorithm>
#include <array>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/runtime/late_libraries.h"
#include "profiling/annotate/annotate.h"

namespace ws::cuda {

namespace {
constexpr size_t kWorkspace = 32 << 20, kKeptParts = 16 << 20;
}

struct Blas::Impl {
  cublasLtHandle_t handle = nullptr;
  DeviceBlock<char> workspace;  // and the parts that are kept
  std::optional<KeptParts> kept;
  ~Impl() {
    if (handle) cublasLtDestroy(handle);
  }
};

namespace {

constexpr int kCandidates = 8, kTimedRuns = 5;
constexpr int64_t kLongColumn = 4096;

cudaDataType_t type_of(DType type) {
  switch (type) {
    case DType::F16:
      return CUDA_R_16F;
    case DType::Bf16:
      return CUDA_R_16BF;
    case DType::I32:
      return CUDA_R_32I;
    default:
      return CUDA_R_32F;
  }
}

bool sums_in_fp16(const Product& p) {
  return p.precision == Precision::Fp16 && p.accumulate == Accumulate::Fp16 && p.c.type == DType::F16;
}

cublasComputeType_t compute_of(const Product& p) {
  if (sums_in_fp16(p)) return CUBLAS_COMPUTE_16F;
  return p.precision == Precision::Tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// The library's gelu has the same tanh form as ours. Its extra output and input is the pre-activation.
cublasLtEpilogue_t library_epilogue(Epilogue e, const Product& p) {
  switch (e) {
    case Epilogue::Bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::BiasActivate:
      if (p.activation == Activation::Relu) return CUBLASLT_EPILOGUE_RELU_BIAS;
      if (p.saved) return p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      return p.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Epilogue::ActivateGrad:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::BiasGrad:
      return CUBLASLT_EPILOGUE_BGRADA;
    default:
      return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

// Descriptors that free themselves.
template <class T, const auto& Destroy>
struct Descriptor {
  T value = nullptr;
  ~Descriptor() {
    if (value) Destroy(value);
  }
};
using MatmulDesc = Descriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Descriptor<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Descriptor<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <class V>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, V value) {
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(desc, what, &value, sizeof value));
}

void make_layout(Layout& layout, const Tensor& t) {  // a row-major matrix is the transpose of a column-major one
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout.value, type_of(t.type), t.cols, t.rows, t.cols));
}

// True if the library itself writes or reads the pre-activation.
bool saves_inside(const Product& p, Epilogue inside) {
  return p.saved && (inside == Epilogue::BiasActivate || inside == Epilogue::ActivateGrad);
}

// Computes cᵀ = op(b)ᵀ·op(a)ᵀ in the library's column-major order: its first operand is our b.
struct Call {
  MatmulDesc desc;
  Layout first, second, result;
  Call(const Product& p, Epilogue inside) {
    const auto scale = sums_in_fp16(p) ? CUDA_R_16F : CUDA_R_32F;
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&desc.value, compute_of(p), scale));
    set(desc.value, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(desc.value, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(desc.value, CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(inside, p));
    const Tensor& vector = inside == Epilogue::BiasGrad ? p.bias_grad : p.bias;
    if (inside != Epilogue::None && vector) {
      set(desc.value, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector.data);
      set(desc.value, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type_of(vector.type)));
    }
    if (saves_inside(p, inside)) {
      set(desc.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.saved.data);
      set(desc.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.saved.cols);
      set(desc.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, static_cast<int32_t>(type_of(p.saved.type)));
    }
    make_layout(first, p.b);
    make_layout(second, p.a);
    make_layout(result, p.c);
  }
};

struct Choice {
  cublasLtMatmulAlgo_t algo{};
  Epilogue inside = Epilogue::None;
};

// One choice per shape in the process, so that every executor gives the same bits.
struct Choices {
  std::mutex mutex;
  std::map<std::array<int64_t, 14>, Choice> made;
};
Choices& choices() {
  static Choices all;
  return all;
}

std::array<int64_t, 14> key_of(const Product& p) {
  return {p.a.rows,
          p.a.cols,
          p.b.rows,
          p.b.cols,
          p.transpose_a,
          p.transpose_b,
          static_cast<int64_t>(compute_of(p)),
          static_cast<int64_t>(p.a.type),
          static_cast<int64_t>(p.c.type),
          static_cast<int64_t>(blas_epilogue(p)),
          static_cast<int64_t>(p.bias.type),
          static_cast<int64_t>(p.precision),
          static_cast<int64_t>(p.activation),
          static_cast<bool>(p.saved)};
}

std::optional<Choice> choice_of(const Product& p) {
  std::lock_guard lock(choices().mutex);
  const auto found = choices().made.find(key_of(p));
  return found == choices().made.end() ? std::nullopt : std::optional(found->second);
}

std::vector<cublasLtMatmulHeuristicResult_t> candidates(cublasLtHandle_t handle, const Product& p, Epilogue inside) {
  Call call(p, inside);
  Preference preference;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference.value));
  const size_t workspace = kWorkspace;
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference.value, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace, sizeof workspace));
  const uint32_t fixed_order = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference.value, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                    &fixed_order, sizeof fixed_order));
  std::vector<cublasLtMatmulHeuristicResult_t> found(kCandidates);
  int count = 0;
  const cublasStatus_t status = CUBLAS_ATTEMPT(
      cublasLtMatmulAlgoGetHeuristic(handle, call.desc.value, call.first.value, call.second.value, call.result.value,
                                     call.result.value, preference.value, kCandidates, found.data(), &count));
  found.resize(status == CUBLAS_STATUS_SUCCESS ? count : 0);
  return found;
}

void run(cudaStream_t stream, cublasLtHandle_t handle, char* workspace, const Product& p, const Choice& choice) {
  Call call(p, choice.inside);
  const float one = 1, zero = 0;
  const uint16_t half_one = 0x3c00, half_zero = 0;
  const void* alpha = sums_in_fp16(p) ? static_cast<const void*>(&half_one) : &one;
  const void* beta = sums_in_fp16(p) ? static_cast<const void*>(&half_zero) : &zero;
  CUBLAS_CHECK(cublasLtMatmul(handle, call.desc.value, alpha, p.b.data, call.first.value, p.a.data, call.second.value,
                              beta, p.c.data, call.result.value, p.c.data, call.result.value, &choice.algo, workspace,
                              kWorkspace, stream));
}

// Runs the part of the epilogue that the library did not do.
void finish(Queue queue, Scratch scratch, const Product& p, Epilogue inside) {
  if (inside == p.epilogue) return;
  switch (p.epilogue) {
    case Epilogue::None:
      return;
    case Epilogue::Bias:
      return bias_activate(queue, Activation::None, p.c, p.bias, p.c, Tensor{});
    case Epilogue::BiasActivate:
      return bias_activate(queue, p.activation, p.c, p.bias, p.c, p.saved);
    case Epilogue::ActivateGrad:
      return activate_grad(queue, p.activation, p.c, p.saved, p.c);
    case Epilogue::BiasGrad:
      return column_sum(queue, scratch, p.b, p.bias_grad, p.kept);
  }
}

using TimingEvent = Handle<cudaEvent_t, cudaEventDestroy>;

// Memory to time candidates. It is separate from the run's memory, which earlier launches may still use.
struct Trial {
  DeviceBlock<char> a, b, c, saved, vector, scratch, workspace;
  Product product;
  explicit Trial(const Product& p) : product(p) {
    const auto bytes = [](const Tensor& t) { return static_cast<size_t>(t.elements() * size_of(t.type)); };
    constexpr int kSmallNumbers = 0x11;  // a small number in every type
    a = DeviceBlock<char>::filled(bytes(p.a), kSmallNumbers);
    b = DeviceBlock<char>::filled(bytes(p.b), kSmallNumbers);
    c = DeviceBlock<char>::filled(bytes(p.c));
    saved = DeviceBlock<char>::filled(p.saved ? bytes(p.saved) : 0);
    vector = DeviceBlock<char>::filled(static_cast<size_t>(p.c.cols) * 4);
    scratch = DeviceBlock<char>::filled(kScratchBytes);
    workspace = DeviceBlock<char>::filled(kWorkspace);
    product.a.data = a.data();
    product.b.data = b.data();
    product.c.data = c.data();
    product.saved.data = saved.data();
    product.kept = nullptr;
    if (p.bias) product.bias.data = vector.data();
    if (p.bias_grad) product.bias_grad.data = vector.data();
  }
};

// Holds a stream until it is released, so that the launches behind it are timed without the time to launch them.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) {
    const auto wait = [](void* gate) { static_cast<Gate*>(gate)->released_.wait(); };
    CUDA_CHECK(cudaLaunchHostFunc(stream, wait, this));
    stream_ = stream;
  }
  ~Gate() {  // the stream may still use this object
    release();
    cudaStreamSynchronize(stream_);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void release() {
    if (!std::exchange(is_open_, true)) released_.count_down();
  }

 private:
  std::latch released_{1};
  bool is_open_ = false;
  cudaStream_t stream_ = nullptr;
};

float time_of(cublasLtHandle_t handle, const Trial& trial, const Choice& choice, cudaStream_t stream) {
  TimingEvent begin, end;
  CUDA_CHECK(cudaEventCreate(begin.out()));
  CUDA_CHECK(cudaEventCreate(end.out()));
  const auto once = [&] {
    run(stream, handle, trial.workspace.data(), trial.product, choice);
    finish(stream, {trial.scratch.data()}, trial.product, choice.inside);
  };
  once();
  Gate gate(stream);
  CUDA_CHECK(cudaEventRecord(begin, stream));
  for (int i = 0; i < kTimedRuns; ++i) once();
  CUDA_CHECK(cudaEventRecord(end, stream));
  gate.release();
  CUDA_CHECK(cudaEventSynchronize(end));
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
  return ms;
}

Choice fastest(cublasLtHandle_t handle, const Product& p, const std::vector<Choice>& found) {
  Choice best = found.front();
  if (found.size() == 1) return best;
  static const prof::OpTag tag = prof::register_ops(
      {{"try algorithms", "times the library's algorithms for a product", "", "input", prof::Meaning::Other}});
  const prof::OpScope scope(tag);
  try {
    const Trial trial(p);
    const Stream stream = make_stream();
    float least = 0;
    for (const Choice& choice : found) {
      const float ms = time_of(handle, trial, choice, stream);
      if (&choice == &found.front() || ms < least) least = ms, best = choice;
    }
  } catch (const OutOfMemory&) {
    cudaGetLastError();  // not enough memory for trials: use the library's first choice
  }
  return best;
}

// Tries the epilogue inside the product and also our own kernels after it. An epilogue inside can prevent the library
// from splitting a long sum.
Choice choose(cublasLtHandle_t handle, const Product& p) {
  std::vector<Choice> all;
  for (const Epilogue inside : {blas_epilogue(p), Epilogue::None}) {
    if (!all.empty() && inside == blas_epilogue(p)) break;
    for (const auto& candidate : candidates(handle, p, inside)) all.push_back({candidate.algo, inside});
  }
  if (all.empty())
    throw Failure("cuBLASLt offers no algorithm for this matrix product; choose the tiled matrix product");
  return fastest(handle, p, all);
}

}  // namespace

Blas::Blas() : impl_(std::make_unique<Impl>()) {
  CUBLAS_CHECK(cublasLtCreate(&impl_->handle));
  impl_->workspace = DeviceBlock<char>::filled(kWorkspace + kKeptParts);  // the library reads some of it before it writes
  impl_->kept.emplace(Workspace{impl_->workspace.data() + kWorkspace, kKeptParts});
}
Blas::~Blas() = default;

namespace {

// The library's gelu wants 16-bit numbers and rows of whole 16 bytes.
bool offers_gelu(const Product& p) {
  return p.activation == Activation::Gelu && size_of(p.c.type) == 2 && p.c.cols % 8 == 0 && !sums_in_fp16(p) &&
         (!p.saved || p.saved.type == p.c.type);
}

}  // namespace

Epilogue blas_epilogue(const Product& p) {
  switch (p.epilogue) {
    case Epilogue::Bias:
      return p.bias.type == p.c.type ? Epilogue::Bias : Epilogue::None;
    case Epilogue::BiasActivate: {
      const bool bias_fits = !p.bias || p.bias.type == p.c.type;
      const bool relu = p.activation == Activation::Relu && !p.saved && p.bias;
      return bias_fits && (relu || offers_gelu(p)) ? Epilogue::BiasActivate : Epilogue::None;
    }
    case Epilogue::ActivateGrad:
      return offers_gelu(p) ? Epilogue::ActivateGrad : Epilogue::None;
    case Epilogue::BiasGrad: {  // over many rows the library sums columns on only two blocks: our kernels are faster
      const bool offered = p.bias_grad.type == p.c.type && p.b.rows <= kLongColumn;
      return offered ? Epilogue::BiasGrad : Epilogue::None;
    }
    default:
      return Epilogue::None;
  }
}

Epilogue blas_epilogue_found(const Product& p) {
  const auto choice = choice_of(p);
  return choice ? choice->inside : blas_epilogue(p);
}

void blas_prepare(Blas& blas, const Product& p) {
  if (choice_of(p)) return;
  const Choice choice = choose(blas.impl().handle, p);
  std::lock_guard lock(choices().mutex);
  choices().made.emplace(key_of(p), choice);
}

void blas_forget() {
  std::lock_guard lock(choices().mutex);
  choices().made.clear();
}

Workspace workspace(const Blas& blas) { return {blas.impl().workspace.data(), kWorkspace}; }

KeptParts& kept_parts(const Blas& blas) { return *blas.impl().kept; }

Workspace KeptParts::memory_left() const { return {static_cast<char*>(memory_.data) + used_, memory_.bytes - used_}; }

void KeptParts::keep(const void* gradient, const GradientParts& parts) {
  constexpr int64_t align = 256;
  const int64_t end = reinterpret_cast<const char*>(parts.data + parts.step * parts.count) - static_cast<char*>(memory_.data);
  used_ = std::min(std::max(used_, (end + align - 1) / align * align), memory_.bytes);
  kept_[gradient] = parts;
}

GradientParts KeptParts::of(const void* gradient) const {
  const auto found = kept_.find(gradient);
  return found == kept_.end() ? GradientParts{} : found->second;
}

void blas_product(Queue queue, Blas& blas, Scratch scratch, const Product& p) {
  blas_prepare(blas, p);
  const Choice choice = *choice_of(p);
  run(queue.stream, blas.impl().handle, blas.impl().workspace.data(), p, choice);
  finish(queue, scratch, p, choice.inside);
}

}  // namespace ws::cuda
