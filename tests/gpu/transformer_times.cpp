// What the kernels of a transformer cost, one kind at a time and as a whole training step in one CUDA graph, apart from
// any executor, and what a step of the trainer's plan costs. Prints one line a case: microseconds, median of seven.
//   transformer_times [part of a case's name]
#include <cstdio>
#include <deque>
#include <string>

#include "engine/cuda/kernels/attention_launch.h"
#include "engine/cuda/kernels/blas.h"
#include "engine/cuda/kernels/small_gemm.h"
#include "tests/gpu/graph_time.h"
#include "tests/gpu/timed_case.h"
#include "tests/support/small_data.h"

namespace ws::cuda::test {
namespace {

struct Shape {
  std::string name;
  int64_t layers, width, heads, time, batch, symbols;
  Precision precision;
  int64_t rows() const { return batch * time; }
  Heads head() const { return {time, heads, width / heads}; }
};

// Device matrices with random contents; none is zero.
class Memory {
 public:
  Memory() : numbers_(random_matrix(1, 1 << 20, DType::F32, 1, 0.05f)) {}
  Tensor matrix(int64_t rows, int64_t cols, DType type, float value = 0) {
    blocks_.push_back(DeviceBlock<char>::device(static_cast<size_t>(rows * cols * size_of(type))));
    const Tensor out{blocks_.back().data(), type, rows, cols};
    value == 0 ? fill(out) : fill_with(out, value);
    return out;
  }
  Tensor symbols(int64_t rows, int64_t count) {
    kept_.push_back(random_labels(rows, count, 3));
    return kept_.back().t;
  }

 private:
  void fill(const Tensor& out) {
    for (int64_t done = 0; done < out.elements();) {
      const int64_t n = std::min<int64_t>(out.elements() - done, numbers_.t.cols);
      Tensor from = numbers_.t, to = out;
      from.cols = to.cols = n, to.rows = 1;
      to.data = static_cast<char*>(out.data) + done * size_of(out.type);
      if (out.type == DType::F32)
        CUDA_CHECK(cudaMemcpy(to.data, from.data, static_cast<size_t>(4 * n), cudaMemcpyDeviceToDevice));
      else
        convert({}, from, to);
      done += n;
    }
  }
  void fill_with(const Tensor& out, float value) {
    Matrix m(out.rows, out.cols, out.type);
    std::ranges::fill(m.v, value);
    m.upload();
    CUDA_CHECK(cudaMemcpy(out.data, m.t.data, m.memory.bytes(), cudaMemcpyDeviceToDevice));
  }
  Matrix numbers_;
  std::deque<DeviceBlock<char>> blocks_;
  std::deque<Matrix> kept_;
};

// A parameter: master, 16-bit shadow, moments and gradient.
struct Weight {
  Tensor master, used, m, v, gradient;
};

struct Linear {
  Weight w, b;
};

struct Block {
  Weight gain1, shift1, gain2, shift2;
  Linear qkv, proj, fc, out;
  Tensor n1, mean1, inverse1, mixed, attended, lse, added, h1, n2, mean2, inverse2, before, bent, made, h2;
  Tensor dh2, dh1, dmixed, dbent;
};

// A training step of a GPT, with the products' epilogues that the deepest fusion level has.
class Gpt {
 public:
  explicit Gpt(const Shape& shape) : s(shape) {
    type = type_of(s.precision);
    const int64_t n = s.rows(), d = s.width;
    symbols = memory.symbols(n, s.symbols), targets = memory.symbols(n, s.symbols);
    symbols.rows = s.batch, symbols.cols = s.time;
    table = weight(s.symbols, d), positions = weight(s.time, d), gain = weight(1, d, 1), shift = weight(1, d);
    head = linear(d, s.symbols);
    h0 = matrix(n, d), last = matrix(n, d), logits = matrix(n, s.symbols), dlogits = matrix(n, s.symbols);
    mean = memory.matrix(n, 1, DType::F32), inverse = memory.matrix(n, 1, DType::F32, 1);
    dx = matrix(n, d), dn = matrix(n, d);
    for (int64_t l = 0; l < s.layers; ++l) blocks.push_back(block());
  }

  Block block() {
    const int64_t n = s.rows(), d = s.width;
    Block b{weight(1, d, 1),  weight(1, d), weight(1, d, 1),  weight(1, d),
            linear(d, 3 * d), linear(d, d), linear(d, 4 * d), linear(4 * d, d)};
    b.n1 = matrix(n, d), b.mixed = matrix(n, 3 * d), b.attended = matrix(n, d), b.added = matrix(n, d);
    b.h1 = matrix(n, d), b.n2 = matrix(n, d), b.before = matrix(n, 4 * d), b.bent = matrix(n, 4 * d);
    b.made = matrix(n, d), b.h2 = matrix(n, d);
    b.dh2 = matrix(n, d), b.dh1 = matrix(n, d), b.dmixed = matrix(n, 3 * d), b.dbent = matrix(n, 4 * d);
    b.lse = memory.matrix(s.batch * s.heads, s.time, DType::F32);
    for (Tensor* t : {&b.mean1, &b.mean2}) *t = memory.matrix(n, 1, DType::F32);
    for (Tensor* t : {&b.inverse1, &b.inverse2}) *t = memory.matrix(n, 1, DType::F32, 1);
    return b;
  }

  Tensor matrix(int64_t rows, int64_t cols) { return memory.matrix(rows, cols, type); }
  Weight weight(int64_t rows, int64_t cols, float value = 0) {
    Weight w;
    w.master = memory.matrix(rows, cols, DType::F32, value);
    w.used = type == DType::F32 ? w.master : memory.matrix(rows, cols, type, value);
    w.m = memory.matrix(rows, cols, DType::F32), w.v = memory.matrix(rows, cols, DType::F32, 1);
    w.gradient = memory.matrix(rows, cols, DType::F32);
    ParamRef ref{static_cast<float*>(w.master.data),     w.gradient,
                 type == DType::F32 ? Tensor{} : w.used, static_cast<float*>(w.m.data),
                 static_cast<float*>(w.v.data),          rows * cols};
    ref.decays = rows > 1;
    all.push_back(ref);
    gradients.push_back(w.gradient);
    return w;
  }
  Linear linear(int64_t in, int64_t out) { return {weight(in, out), weight(1, out)}; }

  Product product(const Tensor& a, const Tensor& b, const Tensor& c, Epilogue epilogue = Epilogue::None) const {
    Product p;
    p.a = a, p.b = b, p.c = c, p.epilogue = epilogue, p.precision = s.precision;
    return p;
  }
  Product forward(const Tensor& x, const Linear& l, const Tensor& z) const {
    Product p = product(x, l.w.used, z, Epilogue::Bias);
    p.bias = l.b.used;
    p.b_is_settled = true;
    return p;
  }
  Product bent(const Tensor& x, const Linear& l, const Tensor& before, const Tensor& h) const {
    Product p = forward(x, l, h);
    p.epilogue = Epilogue::BiasActivate, p.activation = Activation::Gelu, p.saved = before;
    return p;
  }
  Product weight_gradient(const Tensor& x, const Tensor& dz, const Linear& l) const {
    Product p = product(x, dz, l.w.gradient, Epilogue::BiasGrad);
    p.transpose_a = true, p.bias_grad = l.b.gradient;
    return p;
  }
  // Whoever made dz also sums its columns, if the weight gradients do not run together.
  Product weight_gradient_alone(const Tensor& x, const Tensor& dz, const Linear& l) const {
    Product p = weight_gradient(x, dz, l);
    if (!together()) p.epilogue = Epilogue::None, p.bias_grad = {};
    return p;
  }
  Product data_gradient(const Tensor& dz, const Linear& l, const Tensor& to) const {
    Product p = product(dz, l.w.used, to);
    p.transpose_b = true, p.b_is_settled = true;
    return p;
  }
  Product bent_gradient(const Tensor& dz, const Linear& l, const Tensor& before, const Tensor& to) const {
    Product p = data_gradient(dz, l, to);
    p.epilogue = Epilogue::ActivateGrad, p.activation = Activation::Gelu, p.saved = before;
    return p;
  }
  void run(Queue q, const Product& p) { matmul(q, blas, bench.scratch(), Matmul::Library, p); }

  // `made`: what the block before adds to `kept`; x is their sum.
  void run_forward(Queue q, Block& b, const Tensor& kept, const Tensor& made, const Tensor& x) {
    layer_norm(q, {made ? made : x, b.gain1.master, b.shift1.master, b.n1, b.mean1, b.inverse1, made ? kept : Tensor{},
                   made ? x : Tensor{}});
    run(q, forward(b.n1, b.qkv, b.mixed));
    attention(q, s.precision, s.head(), b.mixed, b.attended, b.lse);
    run(q, forward(b.attended, b.proj, b.added));
    layer_norm(q, {b.added, b.gain2.master, b.shift2.master, b.n2, b.mean2, b.inverse2, x, b.h1});
    run(q, bent(b.n2, b.fc, b.before, b.bent));
    run(q, forward(b.bent, b.out, b.made));
  }
  NormGrad norm(const Tensor& x, const Weight& gain_, const Weight& shift_, const Tensor& mean_, const Tensor& inverse_,
                const Tensor& more, const Tensor& to, const Tensor& dbias = {}) const {
    return {dn, x, gain_.master, mean_, inverse_, more, to, gain_.gradient, shift_.gradient, dbias};
  }
  Tensor bias_gradient(const Linear& l) const { return together() ? Tensor{} : l.b.gradient; }
  // The weight gradients of small networks run together in the end; their operands have memory of their own then.
  bool together() const { return s.width <= 256; }
  void run_weight_gradient(Queue q, const Product& p) {
    if (together())
      later.push_back({p.a, p.b, p.c, p.bias_grad});
    else
      run(q, p);
  }
  // The gradient of h2 is in b.dh2, and the gradient of x will be in `to`; `dbias` is of the layer that made x.
  void run_backward(Queue q, Block& b, const Tensor& x, const Tensor& to, const Tensor& dbias) {
    run_weight_gradient(q, weight_gradient_alone(b.bent, b.dh2, b.out));
    run(q, bent_gradient(b.dh2, b.out, b.before, b.dbent));
    run_weight_gradient(q, weight_gradient(b.n2, b.dbent, b.fc));
    run(q, data_gradient(b.dbent, b.fc, dn));
    layer_norm_grad(q, bench.scratch(),
                    norm(b.h1, b.gain2, b.shift2, b.mean2, b.inverse2, b.dh2, b.dh1, bias_gradient(b.proj)));
    run_weight_gradient(q, weight_gradient_alone(b.attended, b.dh1, b.proj));
    run(q, data_gradient(b.dh1, b.proj, dn));
    attention_grad(q, s.precision, s.head(), dn, b.attended, b.mixed, b.lse, b.dmixed,
                   {bias_gradient(b.qkv), bench.scratch()});
    run_weight_gradient(q, weight_gradient_alone(b.n1, b.dmixed, b.qkv));
    run(q, data_gradient(b.dmixed, b.qkv, dn));
    layer_norm_grad(q, bench.scratch(), norm(x, b.gain1, b.shift1, b.mean1, b.inverse1, b.dh1, to, dbias));
  }
  const Tensor& input(size_t l) const { return l == 0 ? h0 : blocks[l - 1].h2; }
  void run_update(Queue q, int i) {
    update_all(q, {Optimizer::AdamW, 0, 0.9f, 0.99f, 1e-8f, 0.1f, bench.at(i % 8), nullptr}, all);
  }
  void step(Queue q, int i, bool clips) {
    embed(q, symbols, table.used, positions.used, h0);
    later.clear();
    for (size_t l = 0; l < blocks.size(); ++l)
      run_forward(q, blocks[l], l == 0 ? Tensor{} : blocks[l - 1].h1, l == 0 ? Tensor{} : blocks[l - 1].made, input(l));
    Block& top = blocks.back();
    layer_norm(q, {top.made, gain.master, shift.master, last, mean, inverse, top.h1, top.h2});
    run(q, forward(last, head, logits));
    softmax_cross_entropy(q, bench.scratch(), logits, targets, nullptr, dlogits, bench.at(i % 8));
    run_weight_gradient(q, weight_gradient(last, dlogits, head));
    run(q, data_gradient(dlogits, head, dn));
    layer_norm_grad(q, bench.scratch(), norm(top.h2, gain, shift, mean, inverse, {}, top.dh2, bias_gradient(top.out)));
    for (size_t l = blocks.size(); l-- > 0;) {
      Block* const below = l == 0 ? nullptr : &blocks[l - 1];
      run_backward(q, blocks[l], input(l), below ? below->dh2 : dx, below ? bias_gradient(below->out) : Tensor{});
    }
    if (together()) weight_gradients(q, s.precision, later);
    embed_grad(q, bench.scratch(), symbols, dx, table.gradient, positions.gradient);
    if (clips) clip_gradients(q, bench.scratch(), gradients, 1.f, nullptr);
    run_update(q, i);
  }

  Shape s;
  DType type = DType::F32;
  Bench bench;
  Blas blas;
  Memory memory;
  std::vector<ParamRef> all;
  std::vector<Tensor> gradients;
  std::deque<Block> blocks;
  Weight table, positions, gain, shift;
  Linear head;
  Tensor symbols, targets, h0, last, logits, dlogits, mean, inverse, dx, dn;
  std::vector<WeightGradient> later;
};

void print(const std::string& what, double plain, double overlapped) {
  std::printf("  %-44s %8.2f  overlapped %8.2f\n", what.c_str(), plain, overlapped);
  std::fflush(stdout);
}

template <class Call>
void time_part(const std::string& what, int count, Call call) {
  const double plain = graph_time(count, false, call);
  print(what, plain, graph_time(count, true, call));
}

void time_product(Gpt& g, const std::string& what, const Product& p) {
  blas_prepare(g.blas, p);
  const double library = graph_time(20, true, [&](Queue q, int) { blas_product(q, g.blas, g.bench.scratch(), p); });
  const double own = graph_time(20, true, [&](Queue q, int) { small_gemm(q, p); });
  const bool fits = !p.transpose_a && size_of(p.a.type) == 2 && runs_warpgroups();
  const double groups = fits ? graph_time(20, true, [&](Queue q, int) { gemm_by_warpgroups(q, p); }) : 0;
  std::printf("  %-44s %8.2f own %8.2f on warpgroups %8.2f  now: %s\n", (what + " library").c_str(), library, own,
              groups, describe(Matmul::Library, p).c_str());
  std::fflush(stdout);
}

void time_products(Gpt& g) {
  Block& b = g.blocks[0];
  time_product(g, "qkv", g.forward(b.n1, b.qkv, b.mixed));
  time_product(g, "projection", g.forward(b.attended, b.proj, b.added));
  time_product(g, "fc gelu", g.bent(b.n2, b.fc, b.before, b.bent));
  time_product(g, "fc out", g.forward(b.bent, b.out, b.made));
  time_product(g, "logits", g.forward(g.last, g.head, g.logits));
  time_product(g, "dW fc out", g.weight_gradient(b.bent, b.dh2, b.out));
  time_product(g, "dW fc", g.weight_gradient(b.n2, b.dbent, b.fc));
  time_product(g, "dW projection", g.weight_gradient(b.attended, b.dh1, b.proj));
  time_product(g, "dW qkv", g.weight_gradient(b.n1, b.dmixed, b.qkv));
  time_product(g, "dW logits", g.weight_gradient(g.last, g.dlogits, g.head));
  time_product(g, "d gelu", g.bent_gradient(b.dh2, b.out, b.before, b.dbent));
  time_product(g, "d fc", g.data_gradient(b.dbent, b.fc, g.dn));
  time_product(g, "d projection", g.data_gradient(b.dh1, b.proj, g.dn));
  time_product(g, "d qkv", g.data_gradient(b.dmixed, b.qkv, g.dn));
  time_product(g, "d logits", g.data_gradient(g.dlogits, g.head, g.dn));
}

void time_parts(Gpt& g) {
  Block& b = g.blocks[0];
  const Scratch scratch = g.bench.scratch();
  time_part("attention", 20,
            [&](Queue q, int) { attention(q, g.s.precision, g.s.head(), b.mixed, b.attended, b.lse); });
  time_part("attention gradient", 20, [&](Queue q, int) {
    attention_grad(q, g.s.precision, g.s.head(), g.dn, b.attended, b.mixed, b.lse, b.dmixed);
  });
  time_part("the same, with a bias gradient", 20, [&](Queue q, int) {
    const BiasGradient bias{b.qkv.b.gradient, scratch, &kept_parts(g.blas)};
    bias.kept->forget();
    attention_grad(q, g.s.precision, g.s.head(), g.dn, b.attended, b.mixed, b.lse, b.dmixed, bias);
  });
  if (g.s.precision == Precision::Bf16) {
    time_part("attention by warps", 20, [&](Queue q, int) {
      attention_by_warps(q, Precision::Bf16, {g.s.head(), b.mixed, b.attended, b.lse, {}, {}});
    });
    time_part("attention gradient by warps", 20, [&](Queue q, int) {
      attention_by_warps(q, Precision::Bf16, {g.s.head(), b.mixed, b.attended, b.lse, g.dn, b.dmixed});
    });
  }
  time_part("layer norm", 20, [&](Queue q, int) {
    layer_norm(q, {g.h0, b.gain1.master, b.shift1.master, b.n1, b.mean1, b.inverse1});
  });
  time_part("residual + layer norm", 20, [&](Queue q, int) {
    layer_norm(q, {b.added, b.gain2.master, b.shift2.master, b.n2, b.mean2, b.inverse2, g.h0, b.h1});
  });
  time_part("layer norm gradient + residual", 20, [&](Queue q, int) {
    layer_norm_grad(q, scratch, g.norm(b.h1, b.gain2, b.shift2, b.mean2, b.inverse2, b.dh2, b.dh1));
  });
  time_part("the same, sums left to the update", 20, [&](Queue q, int) {
    NormGrad n = g.norm(b.h1, b.gain2, b.shift2, b.mean2, b.inverse2, b.dh2, b.dh1);
    n.kept = &kept_parts(g.blas);
    n.kept->forget();
    layer_norm_grad(q, scratch, n);
  });
  time_part("the same, with a bias gradient", 20, [&](Queue q, int) {
    NormGrad n = g.norm(b.h1, b.gain2, b.shift2, b.mean2, b.inverse2, b.dh2, b.dh1, b.proj.b.gradient);
    n.kept = &kept_parts(g.blas);
    n.kept->forget();
    layer_norm_grad(q, scratch, n);
  });
  if (g.together())
    time_part("weight gradients together", 20, [&](Queue q, int) { weight_gradients(q, g.s.precision, g.later); });
  time_part("column sum of dprojection", 20, [&](Queue q, int) { column_sum(q, scratch, b.dh1, b.proj.b.gradient); });
  time_part("column sum of dqkv", 20, [&](Queue q, int) { column_sum(q, scratch, b.dmixed, b.qkv.b.gradient); });
  time_part("column sum of dfc", 20, [&](Queue q, int) { column_sum(q, scratch, b.dbent, b.fc.b.gradient); });
  time_part("add", 20, [&](Queue q, int) { add(q, g.h0, b.added, b.h1); });
  time_part("embed", 20, [&](Queue q, int) { embed(q, g.symbols, g.table.used, g.positions.used, g.h0); });
  time_part("embed gradient", 20,
            [&](Queue q, int) { embed_grad(q, scratch, g.symbols, g.dx, g.table.gradient, g.positions.gradient); });
  time_part("softmax, cross-entropy", 20, [&](Queue q, int) {
    softmax_cross_entropy(q, scratch, g.logits, g.targets, nullptr, g.dlogits, g.bench.at(0));
  });
  time_part("clip", 20, [&](Queue q, int) { clip_gradients(q, scratch, g.gradients, 1.f, nullptr); });
  time_part("adamw", 20, [&](Queue q, int i) { g.run_update(q, i); });
}

// A training step as the trainer runs it.
void time_plan(const Shape& shape, double clip) {
  RunSpec spec = ws::test::network({}, shape.batch, shape.precision);
  spec.model.layers = "embed " + std::to_string(shape.width) + " | " + std::to_string(shape.layers) +
                      " x block(heads " + std::to_string(shape.heads) + ") | layernorm | linear";
  spec.train.optimizer = Optimizer::AdamW;
  spec.train.clip = clip;
  spec.exec.graph_steps = 10;
  const data::Dataset text = ws::test::random_text(20 * shape.batch, shape.time, shape.symbols);
  ws::test::TimedCase timed(spec, 1, text);
  for (int i = 0; i < ws::test::kRepeats; ++i) timed.measure();
  std::printf("  the trainer's step, clip %.0f: %s, %zu ops, loss %.3f to %.3f\n", clip, timed.times().dump().c_str(),
              timed.plan().ops.size(), static_cast<double>(timed.first_loss()), static_cast<double>(timed.last_loss()));
  std::fflush(stdout);
}

void time_gpt(const Shape& shape) {
  Gpt g(shape);
  std::printf("%s\n", shape.name.c_str());
  time_plan(shape, 0);
  time_plan(shape, 1);
  g.step({}, 0, false);  // the library chooses its algorithms
  CUDA_CHECK(cudaDeviceSynchronize());
  const int count = shape.width > 256 ? 4 : 20;
  time_part("whole step", count, [&](Queue q, int i) { g.step(q, i, false); });
  time_part("whole step, clipped", count, [&](Queue q, int i) { g.step(q, i, true); });
  time_parts(g);
  time_products(g);
}

}  // namespace
}  // namespace ws::cuda::test

int main(int argc, char** argv) {
  using namespace ws::cuda::test;
  using ws::Precision;
  if (!have_gpu()) {
    std::puts("no GPU here");
    return 0;
  }
  const std::string only = argc > 1 ? argv[1] : "";
  for (const Shape& shape : {Shape{"gpt 4x128 b32 bf16", 4, 128, 4, 128, 32, 96, Precision::Bf16},
                             Shape{"gpt 6x384 b64 bf16", 6, 384, 6, 256, 64, 96, Precision::Bf16},
                             Shape{"gpt 4x128 b32 tf32", 4, 128, 4, 128, 32, 96, Precision::Tf32},
                             Shape{"gpt 4x128 b32 fp32", 4, 128, 4, 128, 32, 96, Precision::Fp32}})
    if (shape.name.find(only) != std::string::npos) time_gpt(shape);
  return 0;
}
