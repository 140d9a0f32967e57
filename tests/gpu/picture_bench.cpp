// What the ops of convolutional networks cost inside a CUDA graph: microseconds, median of seven, with the rate of
// arithmetic or of memory. One line a shape.
//   picture_bench [part of a line's name]
#include <cstdio>
#include <string>

#include "tests/gpu/graph_time.h"
#include "tests/gpu/picture_support.h"

namespace ws::cuda::test {
namespace {

constexpr int kCalls = 10;

double flops(const Window& v) {
  return 2.0 * static_cast<double>(v.n * v.oh * v.ow * v.k) * static_cast<double>(v.kh * v.kw * v.c);
}

// Random numbers on the device without a copy of every element on the host.
struct Filled {
  DeviceBlock<char> memory;
  Tensor t;
  Filled(int64_t rows, int64_t cols, DType type, uint32_t seed) {
    memory = DeviceBlock<char>::device(static_cast<size_t>(rows * cols * size_of(type)));
    t = Tensor{memory.data(), type, rows, cols};
    const int64_t some = std::min<int64_t>(rows, (1 << 16) / cols + 1);
    const Matrix numbers = random_matrix(some, cols, type, seed);
    for (int64_t r = 0; r < rows; r += some)
      CUDA_CHECK(cudaMemcpy(memory.data() + r * cols * size_of(type), numbers.t.data,
                            static_cast<size_t>(std::min(some, rows - r) * cols * size_of(type)),
                            cudaMemcpyDeviceToDevice));
  }
};

struct Layer {
  Window v;
  Filled x, w, bias, z, dw, db;
  DeviceBlock<char> memory = DeviceBlock<char>::device(32 << 20);
  Precision precision;
  bool by_warps = false;
  Layer(const Window& window, Precision p)
      : v(window),
        x(v.n * v.h * v.w, v.c, type_of(p), 1),
        w(v.k, v.kh * v.kw * v.c, type_of(p), 2),
        bias(1, v.k, type_of(p), 3),
        z(v.n * v.oh * v.ow, v.k, type_of(p), 4),
        dw(v.k, v.kh * v.kw * v.c, DType::F32, 5),
        db(1, v.k, DType::F32, 6),
        precision(p) {}
  double time(Convolution c) const {
    c.window = v, c.precision = precision, c.by_warps = by_warps;
    const Workspace workspace{memory.data(), static_cast<int64_t>(memory.bytes())};
    return graph_time(kCalls, true, [&](Queue q, int) { convolve(q, workspace, c); });
  }
};

void time_convolution(const std::string& name, const Window& v, Precision p, const std::string& only,
                      bool by_warps = false) {
  const std::string line = name + " " + std::string(to_string(p)) + (by_warps ? " by warps" : "");
  if (line.find(only) == std::string::npos) return;
  Layer at(v, p);
  at.by_warps = by_warps;
  const bool biased = v.c < 64;  // a batch norm follows wider layers instead
  Convolution forward{Convolution::Pass::Forward, v, at.x.t, at.w.t, at.z.t};
  if (biased) forward.epilogue = Epilogue::BiasActivate, forward.activation = Activation::Relu, forward.bias = at.bias.t;
  Convolution back{Convolution::Pass::WeightGrad, v, at.x.t, at.dw.t, at.z.t};
  if (biased) back.epilogue = Epilogue::BiasGrad, back.bias_grad = at.db.t;
  const double us[] = {at.time(forward), at.time({Convolution::Pass::DataGrad, v, at.x.t, at.w.t, at.z.t}),
                       at.time(back)};
  std::printf("%-34s", line.c_str());
  for (const double t : us) std::printf("  %8.2f us %6.1f TFLOP/s", t, 1e-6 * flops(v) / t);
  std::printf("\n");
  std::fflush(stdout);
}

void print_memory(const std::string& line, double bytes, double us) {
  std::printf("%-34s  %8.2f us %6.0f GB/s\n", line.c_str(), us, 1e-3 * bytes / us);
  std::fflush(stdout);
}

void time_pool(int64_t n, int64_t side, int64_t c, const std::string& only) {
  const std::string line = "pool 2, " + std::to_string(n) + "·" + std::to_string(side) + "²·" + std::to_string(c);
  if (line.find(only) == std::string::npos) return;
  const Window v = window(n, side, side, c, c, 2, 2, 2, 0);
  const Filled x(n * side * side, c, DType::Bf16, 1), dx(n * side * side, c, DType::Bf16, 2);
  const Filled y(n * v.oh * v.ow, c, DType::Bf16, 3);
  const double all = 2 * static_cast<double>(x.t.elements()), few = all / 4;
  print_memory(line, all + few, graph_time(kCalls, true, [&](Queue q, int) { max_pool(q, v, x.t, y.t); }));
  print_memory(line + " gradient", 2 * all + few, graph_time(kCalls, true, [&](Queue q, int) {
                 max_pool_grad(q, v, Activation::Relu, y.t, x.t, dx.t);
               }));
}

void time_norm(int64_t rows, int64_t c, const std::string& only) {
  const std::string line = "batch norm relu, " + std::to_string(rows) + "·" + std::to_string(c);
  if (line.find(only) == std::string::npos) return;
  const Bench bench;
  const Filled x(rows, c, DType::Bf16, 1), y(rows, c, DType::Bf16, 2), dy(rows, c, DType::Bf16, 3);
  const Filled dx(rows, c, DType::Bf16, 4), row(8, c, DType::F32, 5);
  const auto at = [&](int64_t i) { return Tensor{static_cast<float*>(row.t.data) + i * c, DType::F32, 1, c}; };
  const BatchNormalization n{x.t, y.t, at(0), at(1), at(2), at(3), at(4), at(5), Activation::Relu};
  const BatchNormGradient g{dy.t, x.t, at(0), at(1), at(4), at(5), dx.t, at(6), at(7), Activation::Relu};
  const double each = 2 * static_cast<double>(x.t.elements());
  print_memory(line, 3 * each, graph_time(kCalls, true, [&](Queue q, int) { batch_norm(q, bench.scratch(), n); }));
  print_memory(line + " gradient", 5 * each,
               graph_time(kCalls, true, [&](Queue q, int) { batch_norm_grad(q, bench.scratch(), g); }));
}

// A convolution and the norm after it, which reads what the convolution made once more, or takes its moments.
void time_with_norm(const std::string& name, const Window& v, const std::string& only) {
  const std::string line = "with norm, " + name;
  if (line.find(only) == std::string::npos) return;
  const Bench bench;
  const Layer layer(v, Precision::Bf16);
  const Filled y(layer.z.t.rows, v.k, DType::Bf16, 7), row(6, v.k, DType::F32, 8);
  const auto at = [&](int64_t i) { return Tensor{static_cast<float*>(row.t.data) + i * v.k, DType::F32, 1, v.k}; };
  const Workspace workspace{layer.memory.data(), static_cast<int64_t>(layer.memory.bytes())};
  Convolution c{Convolution::Pass::Forward, v, layer.x.t, layer.w.t, layer.z.t};
  c.precision = Precision::Bf16;
  BatchNormalization n{layer.z.t, y.t, at(0), at(1), at(2), at(3), at(4), at(5), Activation::Relu};
  const auto time = [&](const Moments& moments) {
    c.moments = n.moments = moments;
    return graph_time(kCalls, true, [&](Queue q, int) {
      convolve(q, workspace, c);
      batch_norm(q, bench.scratch(), n);
    });
  };
  const double reads = time({}), takes = time(moments_of(c, workspace));
  std::printf("%-34s  %8.2f us reading it, %8.2f us with moments\n", line.c_str(), reads, takes);
  std::fflush(stdout);
}

void time_layers(const std::string& only) {
  for (int64_t n : {64, 512})
    for (Precision p : {Precision::Bf16, Precision::Tf32, Precision::Fp32}) {
      const std::string batch = " b" + std::to_string(n);
      time_convolution("28² 1→16" + batch, window(n, 28, 28, 1, 16, 3, 3, 1, 1), p, only);
      time_convolution("14² 16→32" + batch, window(n, 14, 14, 16, 32, 3, 3, 1, 1), p, only);
    }
  const std::pair<const char*, Window> wide[] = {{"32² 64→128 b512", window(512, 32, 32, 64, 128, 3, 3, 1, 1)},
                                                 {"16² 128→128 b512", window(512, 16, 16, 128, 128, 3, 3, 1, 1)},
                                                 {"16² 128→256 b512", window(512, 16, 16, 128, 256, 3, 3, 1, 1)},
                                                 {"8² 256→256 b512", window(512, 8, 8, 256, 256, 3, 3, 1, 1)},
                                                 {"4² 256→256 b512", window(512, 4, 4, 256, 256, 3, 3, 1, 1)}};
  for (Precision p : {Precision::Bf16, Precision::Fp16, Precision::Tf32, Precision::Fp32}) {
    time_convolution("32² 3→64 b512", window(512, 32, 32, 3, 64, 3, 3, 1, 1), p, only);
    for (const auto& [name, v] : wide) time_convolution(name, v, p, only);
  }
  for (const auto& [name, v] : wide) time_convolution(name, v, Precision::Bf16, only, true);
  time_with_norm("32² 3→64 b512", window(512, 32, 32, 3, 64, 3, 3, 1, 1), only);
  for (const auto& [name, v] : wide) time_with_norm(name, v, only);
}

}  // namespace
}  // namespace ws::cuda::test

int main(int argc, char** argv) {
  using namespace ws::cuda::test;
  if (!have_gpu()) {
    std::puts("no GPU here");
    return 0;
  }
  const std::string only = argc > 1 ? argv[1] : "";
  std::printf("%-34s  %-29s  %-29s  %s\n", "convolution 3x3", "forward", "data gradient", "weight gradient");
  time_layers(only);
  for (int64_t n : {64, 512})
    for (auto [side, c] : {std::pair{28, 16}, std::pair{14, 32}, std::pair{32, 128}}) time_pool(n, side, c, only);
  for (auto [rows, c] : {std::pair{524288, 64}, std::pair{524288, 128}, std::pair{131072, 256}, std::pair{8192, 256},
                         std::pair{50176, 16}})
    time_norm(rows, c, only);
  return 0;
}
