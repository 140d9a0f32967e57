#include "engine/cuda/workloads/product.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/runtime/late_libraries.h"
#include "profiling/base/clock.h"

namespace ws::cuda::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kWorkspace = 64 << 20;
constexpr int kOffers = 16, kRounds = 9, kAmong = 8;
constexpr double kTrialSeconds = 1.0, kHopeless = 1.25, kLoading = 0.05, kShort = 1e-4, kLong = 1e-3;
// For longer calls nothing beats the library's first choice, and trials heat the card.
constexpr double kVeryLong = 20e-3;
// Share of the time of the library's own choice below which another one counts as faster. Clocks of a hot card vary by
// this much.
constexpr double kClearly = 0.98;
constexpr std::chrono::milliseconds kRest{300}, kLongRest{3000};

// One handle and one workspace for all products of a sweep. Creating them takes longer than most products.
struct Library {
  cublasLtHandle_t handle = nullptr;
  DeviceBlock<char> workspace = DeviceBlock<char>::filled(kWorkspace);
  DeviceBlock<char> scratch = DeviceBlock<char>::filled(kScratchBytes);
  Blas blas;  // our own kernels need one
  Library() { CUBLAS_CHECK(cublasLtCreate(&handle)); }
  ~Library() {
    if (handle) cublasLtDestroy(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};
std::unique_ptr<Library>& shared_library() {
  static auto* shared = new std::unique_ptr<Library>;  // not destroyed at exit: the driver may be unloaded by then
  return *shared;
}
Library& library() {
  if (!shared_library()) shared_library() = std::make_unique<Library>();
  return *shared_library();
}

cudaDataType_t type_of(DType type) { return type == DType::F16 ? CUDA_R_16F : CUDA_R_32F; }

// Row-major c = a·b is column-major cᵀ = bᵀ·aᵀ: the library's first operand is our b.
struct Descriptors {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;

  explicit Descriptors(const Product& p) {
    const auto compute = p.precision == Precision::Tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&desc, compute, CUDA_R_32F));
    make(first, p.b), make(second, p.a), make(result, p.c);
  }
  ~Descriptors() {
    for (cublasLtMatrixLayout_t layout : {first, second, result})
      if (layout) cublasLtMatrixLayoutDestroy(layout);
    if (desc) cublasLtMatmulDescDestroy(desc);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

 private:
  static void make(cublasLtMatrixLayout_t& layout, const Tensor& t) {
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout, type_of(t.type), static_cast<uint64_t>(t.cols),
                                            static_cast<uint64_t>(t.rows), t.cols));
  }
};

// Returns the library's algorithms, best guess first. Only fixed-order sums, as in the library's own choice.
std::vector<cublasLtMatmulAlgo_t> offers(const Descriptors& d) {
  cublasLtMatmulPreference_t preference = nullptr;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  const size_t workspace = kWorkspace;
  const uint32_t fixed_order = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                       sizeof workspace);
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &fixed_order,
                                       sizeof fixed_order);
  cublasLtMatmulHeuristicResult_t found[kOffers];
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(library().handle, d.desc, d.first, d.second, d.result,
                                                               d.result, preference, kOffers, found, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) algorithms.push_back(found[i].algo);
  return algorithms;
}

}  // namespace

struct FastestProduct::Impl {
  Product product;
  Descriptors descriptors;
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  bool own = false;  // true if an own kernel is worth a trial
  int chosen = 0;    // index into algorithms; -1: our own kernel

  explicit Impl(const Product& p) : product(p), descriptors(p), algorithms(offers(descriptors)) {
    own = engine_of(Matmul::Library, p) != Engine::Library;
    if (!own && algorithms.empty()) throw Failure("cuBLASLt offers no algorithm for this matrix product");
  }

  void launch(cudaStream_t stream, int which) const {
    if (which < 0) {
      Library& lib = library();
      return matmul(Queue(stream), lib.blas, Scratch{lib.scratch.data()}, Matmul::Library, product);
    }
    const float one = 1, zero = 0;
    CUBLAS_CHECK(cublasLtMatmul(library().handle, descriptors.desc, &one, product.b.data, descriptors.first,
                                product.a.data, descriptors.second, &zero, product.c.data, descriptors.result,
                                product.c.data, descriptors.result, &algorithms[static_cast<size_t>(which)],
                                library().workspace.data(), kWorkspace, stream));
  }

  double time(cudaStream_t stream, int which, int calls) const {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) launch(stream, which);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return prof::seconds_since(begin) / calls;
  }

  // Times one call alone and one among several, because a short product must be good at both.
  double score(cudaStream_t stream, int which) const {
    const double alone = time(stream, which, 1);
    return alone > kShort ? alone : (alone + time(stream, which, kAmong)) / 2;
  }

  // Times all remaining candidates in each round, so that a change of clocks affects all of them.
  void choose() {
    struct Runner {
      int which;
      double best;
    };
    std::vector<Runner> race;
    for (int i = own ? -1 : 0; i < static_cast<int>(algorithms.size()); ++i)
      race.push_back({i, std::numeric_limits<double>::infinity()});
    const Stream stream = make_stream();
    // The first call also loads the kernel.
    if (!own && time(stream, 0, 1) > kVeryLong && time(stream, 0, 1) > kVeryLong) return;
    for (Runner& r : race)
      r.best = time(stream, r.which, 1);  // loads the kernels; the slowest do not run again
    const double first = std::ranges::min(race, {}, &Runner::best).best;
    std::erase_if(race, [&](const Runner& r) { return r.best > kHopeless * first + kLoading; });
    for (Runner& r : race) r.best = std::numeric_limits<double>::infinity();
    const auto begin = Clock::now();
    for (int round = 0; round < kRounds && race.size() > 1; ++round) {
      for (Runner& r : race) r.best = std::min(r.best, score(stream, r.which));
      const double leader = std::ranges::min(race, {}, &Runner::best).best;
      std::erase_if(race, [&](const Runner& r) { return r.best > kHopeless * leader; });
      if (round >= 1 && prof::seconds_since(begin) > kTrialSeconds) break;
    }
    const Runner& winner = std::ranges::min(race, {}, &Runner::best);
    const auto guess = std::ranges::find(race, 0, &Runner::which);  // the library's own first choice
    const bool as_good = first > kLong && guess != race.end() && winner.best > kClearly * guess->best;
    chosen = as_good ? 0 : winner.which;
    // The trial has heated the card, and a hot card lowers its clocks. A pause makes the next measurement fair.
    const auto heated = Clock::now() - begin;
    if (first > kShort)
      std::this_thread::sleep_for(std::clamp<Clock::duration>((first > kLong ? 3 : 1) * heated, kRest, kLongRest));
  }
};

FastestProduct::FastestProduct(const Product& product, bool trial) : impl_(std::make_unique<Impl>(product)) {
  impl_->chosen = impl_->own ? -1 : 0;
  if (trial) impl_->choose();
}
FastestProduct::~FastestProduct() = default;

void FastestProduct::release_shared() { shared_library().reset(); }

void FastestProduct::launch(cudaStream_t stream) const { impl_->launch(stream, impl_->chosen); }

std::string FastestProduct::describe() const {
  if (impl_->chosen < 0) return ws::cuda::describe(Matmul::Library, impl_->product);
  return "cuBLASLt, algorithm " + std::to_string(impl_->chosen + 1) + " of " + std::to_string(impl_->algorithms.size());
}

}  // namespace ws::cuda::lab
