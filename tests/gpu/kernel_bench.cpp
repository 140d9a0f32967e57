// What fused training steps cost when their kernels follow each other in one CUDA graph, apart from any executor; and
// own products beside cuBLASLt's. Prints one line a case: microseconds, median of seven.
#include <cstdio>
#include <string>

#include "engine/cuda/kernels/blas.h"
#include "engine/cuda/kernels/small_gemm.h"
#include "tests/gpu/graph_time.h"

namespace ws::cuda::test {
namespace {

// A network with everything on the device; its step is what the deepest fusion level runs.
struct Net {
  std::vector<int64_t> widths;
  int64_t batch;
  Precision precision;
  bool bias;
  Bench bench;
  Blas blas;
  Matrix x, y;
  std::vector<Matrix> w, shadow, b, b_shadow, h, dz;

  Net(std::vector<int64_t> sizes, int64_t rows, Precision p, bool with_bias)
      : widths(std::move(sizes)), batch(rows), precision(p), bias(with_bias) {
    const DType type = type_of(p);
    x = random_matrix(batch * 8, widths[0], type, 1);
    y = random_labels(batch * 8, widths.back(), 2);
    y.t.rows = x.t.rows = batch;
    y.t.clock = x.t.clock = bench.clock.data();
    for (size_t l = 0; l + 1 < widths.size(); ++l) {
      w.push_back(random_matrix(widths[l], widths[l + 1], DType::F32, 3, 0.03f));
      shadow.push_back(random_matrix(widths[l], widths[l + 1], type, 3, 0.03f));
      b.push_back(random_matrix(1, widths[l + 1], DType::F32, 4, 0.01f));
      b_shadow.push_back(random_matrix(1, widths[l + 1], type, 4, 0.01f));
      h.push_back(Matrix(batch, widths[l + 1], type));
      dz.push_back(Matrix(batch, widths[l + 1], type));
    }
  }
  const Tensor& weights(size_t l) const {
    return precision == Precision::Fp32 || precision == Precision::Tf32 ? w[l].t : shadow[l].t;
  }
  size_t layers() const { return w.size(); }
  Tensor input(size_t l, int i) const {
    if (l > 0) return h[l - 1].t;
    Tensor t = x.t;
    t.view_offset = i % 8;
    return t;
  }
  Product forward(size_t l, int i) const {
    return {input(l, i),
            weights(l),
            h[l].t,
            false,
            false,
            Epilogue::BiasActivate,
            Activation::Relu,
            bias ? b_shadow[l].t : Tensor{},
            {},
            {},
            precision,
            Accumulate::Fp32,
            l > 0};
  }
  Product backward(size_t l) const {
    return {
        dz[l].t, weights(l), dz[l - 1].t,      false, true, Epilogue::ActivateGrad, Activation::Relu, {}, h[l - 1].t,
        {},      precision,  Accumulate::Fp32, true};
  }
  void last(Queue q, int i) const {
    const size_t l = layers() - 1;
    Tensor labels = y.t;
    labels.view_offset = i % 8;
    OutputLayer layer{input(l, i), weights(l), bias ? b[l].t : Tensor{}, labels, LossKind::CrossEntropy, dz[l].t};
    if (l > 0) layer.dz_before = dz[l - 1].t, layer.saved = h[l - 1].t, layer.activation = Activation::Relu;
    layer.at = bench.at(i % 8);
    layer.join_later = true;
    output_layer(q, bench.scratch(), layer);
  }
  LayerUpdate update_of(size_t l, int i) const {
    const auto ref = [&](const Matrix& master, const Matrix& half) {
      ParamRef r;
      r.w = static_cast<float*>(master.t.data);
      if (half.t.type != DType::F32) r.shadow = half.t;
      r.n = master.t.elements();
      return r;
    };
    return {input(l, i), dz[l].t, ref(w[l], shadow[l]), bias ? ref(b[l], b_shadow[l]) : ParamRef{}};
  }
  void update(Queue q, int i) const {
    std::vector<LayerUpdate> all;
    for (size_t l = 0; l < layers(); ++l) all.push_back(update_of(l, i));
    grad_update(q, {Optimizer::Sgd, 0, 0, 0, 0, 0, bench.at(i % 8), nullptr}, precision, all,
                {bench.scratch(), static_cast<int>(batch)});
  }
  void step(Queue q, int i) {
    for (size_t l = 0; l + 1 < layers(); ++l) matmul(q, blas, bench.scratch(), Matmul::Library, forward(l, i));
    last(q, i);
    for (size_t l = layers() - 1; l-- > 1;) matmul(q, blas, bench.scratch(), Matmul::Library, backward(l));
    update(q, i);
  }
};

void time_net(const char* name, std::vector<int64_t> widths, int64_t batch, Precision precision, bool bias) {
  Net net(std::move(widths), batch, precision, bias);
  const int count = 40;
  const double plain = graph_time(count, false, [&](Queue q, int i) { net.step(q, i); });
  const double overlapped = graph_time(count, true, [&](Queue q, int i) { net.step(q, i); });
  const double first = graph_time(count, true, [&](Queue q, int i) {
    matmul(q, net.blas, net.bench.scratch(), Matmul::Library, net.forward(0, i));
  });
  const double out = graph_time(count, true, [&](Queue q, int i) { net.last(q, i); });
  const double update = graph_time(count, true, [&](Queue q, int i) { net.update(q, i); });
  double middle = 0, back = 0;
  if (net.layers() > 2) {
    middle = graph_time(count, true, [&](Queue q, int i) {
      matmul(q, net.blas, net.bench.scratch(), Matmul::Library, net.forward(1, i));
    });
    back = graph_time(
        count, true, [&](Queue q, int) { matmul(q, net.blas, net.bench.scratch(), Matmul::Library, net.backward(1)); });
  }
  std::printf("%-34s b%-4lld %-5s step %7.2f  overlapped %7.2f | fc1 %6.2f fc2 %6.2f out %6.2f dx %6.2f update %6.2f\n",
              name, static_cast<long long>(batch), std::string(to_string(precision)).c_str(), plain, overlapped, first,
              middle, out, back, update);
  std::fflush(stdout);
}

void time_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, Precision precision) {
  Bench bench;
  Blas blas;
  const DType type = type_of(precision);
  const Matrix a = random_matrix(ta ? k : m, ta ? m : k, type, 1), b = random_matrix(tb ? n : k, tb ? k : n, type, 2);
  const Matrix c(m, n, ta ? DType::F32 : type);
  const Product p{a.t, b.t, c.t, ta, tb, Epilogue::None, Activation::None, {}, {}, {}, precision};
  blas_prepare(blas, p);
  const double own = graph_time(20, true, [&](Queue q, int) { small_gemm(q, p); });
  const double library = graph_time(20, false, [&](Queue q, int) { blas_product(q, blas, bench.scratch(), p); });
  const char* const orders = ta ? "TN" : tb ? "NT" : "NN";
  std::printf("%5lld x %5lld x %6lld %s %-5s own %8.2f  cuBLASLt %8.2f\n", static_cast<long long>(m),
              static_cast<long long>(n), static_cast<long long>(k), orders,
              std::string(to_string(precision)).c_str(), own, library);
  std::fflush(stdout);
}

void time_line(int64_t points) {
  Bench bench;
  const Matrix x = random_matrix(points, 1, DType::F32, 1), y = random_matrix(points, 1, DType::F32, 2);
  Matrix w = random_matrix(1, 1, DType::F32, 3), b = random_matrix(1, 1, DType::F32, 4);
  const OptimizerRef sgd{Optimizer::Sgd, 0, 0, 0, 0, 0, bench.at(0), nullptr};
  LinearStep step{x.t, y.t, static_cast<float*>(w.t.data), static_cast<float*>(b.t.data)};
  step.optimizer = &sgd;
  const auto run = [&](Queue q, int i) {
    step.at = bench.at(i);
    linear_step(q, bench.scratch(), step);
  };
  const double plain = graph_time(50, false, run);
  const double overlapped = graph_time(50, true, run);
  step.data_is_constant = true;
  const double early = graph_time(50, true, run);
  step.held = keeps_points(x.t);
  step.steps = step.held ? 50 : 1;
  const double held = graph_time(4, false, run) / static_cast<double>(step.steps);
  std::printf("line %9lld points: %7.2f, overlapped %7.2f, data early %7.2f (%.0f GB/s), held %7.2f\n",
              static_cast<long long>(points), plain, overlapped, early, 8e-3 * static_cast<double>(points) / early,
              held);
  std::fflush(stdout);
}

}  // namespace
}  // namespace ws::cuda::test

int main() {
  using namespace ws::cuda::test;
  using ws::Precision;
  if (!have_gpu()) {
    std::puts("no GPU here");
    return 0;
  }
  time_net("4-5-3", {4, 5, 3}, 120, Precision::Fp32, true);
  for (int64_t batch : {64, 128, 512}) time_net("784-128-10", {784, 128, 10}, batch, Precision::Tf32, true);
  for (Precision p : {Precision::Fp32, Precision::Bf16, Precision::Fp16})
    time_net("784-128-10", {784, 128, 10}, 64, p, true);
  time_net("784-784-784-784-784-10 no bias", {784, 784, 784, 784, 784, 10}, 64, Precision::Tf32, false);
  for (int64_t w : {16, 128, 1024, 4096})
    for (Precision p : {Precision::Fp16, Precision::Tf32})
      time_net(("784-" + std::to_string(w) + "x3-10").c_str(), {784, w, w, w, 10}, 32, p, true);
  for (int64_t points : {50000, 500000, 5000000, 50000000}) time_line(points);
  for (Precision p : {Precision::Tf32, Precision::Fp16}) {
    time_product(64, 128, 784, false, false, p);
    time_product(64, 784, 784, false, false, p);
    time_product(64, 784, 784, false, true, p);
    time_product(512, 128, 784, false, false, p);
    time_product(32, 1024, 1024, false, false, p);
    time_product(32, 4096, 4096, false, false, p);
    time_product(32, 4096, 4096, false, true, p);
    time_product(784, 128, 512, true, false, p);
    time_product(784, 784, 64, true, false, p);
    time_product(4096, 4096, 4096, false, false, p);
    time_product(56000, 128, 784, false, false, p);
    time_product(784, 128, 56000, true, false, p);
    time_product(56000, 10, 128, false, false, p);
    time_product(56000, 128, 10, false, true, p);
    time_product(128, 10, 56000, true, false, p);
  }
  return 0;
}
