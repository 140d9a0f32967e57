// Attention, layer norm and embedding against plain loops in double, for every number type and for shapes that fit
// nothing.
#include "engine/cuda/kernels/blas.h"
#include "tests/gpu/op_support.h"

namespace ws::cuda::test {
namespace {

constexpr Precision kPrecisions[] = {Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16};

DType number_type(Precision p) {
  return p == Precision::Bf16 ? DType::Bf16 : p == Precision::Fp16 ? DType::F16 : DType::F32;
}

double tolerance(Precision p) {
  switch (p) {
    case Precision::Fp32:
      return 5e-6;
    case Precision::Tf32:
      return 1e-3;
    case Precision::Bf16:
      return 8e-3;
    case Precision::Fp16:
      return 1e-3;
  }
  return 0;
}

// ---- attention ----
struct AttentionWant {
  std::vector<double> out, lse, dqkv;
};

// One head of one sequence in double. q, k and v of row t begin at qkv[t · 3·width + part · width + column].
class HeadOracle {
 public:
  HeadOracle(const Heads& h, const Matrix& qkv, const Matrix& dout, int64_t set) : h_(h), qkv_(qkv), dout_(dout) {
    first_ = set / h.heads * h.time;
    column_ = set % h.heads * h.head_width;
    set_ = set;
  }
  void add_to(AttentionWant& want) {
    for (int64_t t = 0; t < h_.time; ++t) query(want, t);
  }

 private:
  int64_t width() const { return h_.heads * h_.head_width; }
  double in(int64_t part, int64_t t, int64_t c) const { return qkv_.at(first_ + t, part * width() + column_ + c); }
  double& gradient(AttentionWant& want, int64_t part, int64_t t, int64_t c) const {
    return want.dqkv[static_cast<size_t>((first_ + t) * 3 * width() + part * width() + column_ + c)];
  }
  double dout(int64_t t, int64_t c) const { return dout_.at(first_ + t, column_ + c); }

  void query(AttentionWant& want, int64_t t) {
    const double scale = 1 / std::sqrt(static_cast<double>(h_.head_width));
    std::vector<double> p(static_cast<size_t>(t + 1)), dp(p.size());
    double sum = 0, dot = 0;
    for (int64_t k = 0; k <= t; ++k) {
      double score = 0, against = 0;
      for (int64_t c = 0; c < h_.head_width; ++c)
        score += in(0, t, c) * in(1, k, c), against += dout(t, c) * in(2, k, c);
      sum += p[static_cast<size_t>(k)] = std::exp(score * scale);
      dp[static_cast<size_t>(k)] = against;
    }
    want.lse[static_cast<size_t>(set_ * h_.time + t)] = std::log(sum);
    for (size_t k = 0; k < p.size(); ++k) p[k] /= sum, dot += p[k] * dp[k];
    for (int64_t k = 0; k <= t; ++k) {
      const double weight = p[static_cast<size_t>(k)], ds = weight * (dp[static_cast<size_t>(k)] - dot) * scale;
      for (int64_t c = 0; c < h_.head_width; ++c) {
        want.out[static_cast<size_t>((first_ + t) * width() + column_ + c)] += weight * in(2, k, c);
        gradient(want, 0, t, c) += ds * in(1, k, c);
        gradient(want, 1, k, c) += ds * in(0, t, c);
        gradient(want, 2, k, c) += weight * dout(t, c);
      }
    }
  }

  const Heads& h_;
  const Matrix &qkv_, &dout_;
  int64_t first_ = 0, column_ = 0, set_ = 0;
};

AttentionWant attention_in_double(const Heads& h, int64_t texts, const Matrix& qkv, const Matrix& dout) {
  AttentionWant want{std::vector<double>(dout.v.size()),
                     std::vector<double>(static_cast<size_t>(texts * h.heads * h.time)),
                     std::vector<double>(qkv.v.size())};
  for (int64_t set = 0; set < texts * h.heads; ++set) HeadOracle(h, qkv, dout, set).add_to(want);
  return want;
}

struct AttentionRun {
  Matrix out, lse, dqkv;
};

AttentionRun run_attention(const Heads& h, Precision precision, int64_t texts, const Matrix& qkv, const Matrix& dout) {
  Bench bench;
  AttentionRun run{Matrix(qkv.t.rows, dout.t.cols, qkv.t.type), Matrix(texts * h.heads, h.time),
                   Matrix(qkv.t.rows, qkv.t.cols, qkv.t.type)};
  attention(bench.queue, precision, h, qkv.t, run.out.t, run.lse.t);
  attention_grad(bench.queue, precision, h, dout.t, run.out.t, qkv.t, run.lse.t, run.dqkv.t);
  return run;
}

void expect_attention(const Heads& h, Precision precision, int64_t texts) {
  const int64_t width = h.heads * h.head_width, rows = texts * h.time;
  const Matrix qkv = random_matrix(rows, 3 * width, number_type(precision), 1),
               dout = random_matrix(rows, width, number_type(precision), 2);
  const AttentionWant want = attention_in_double(h, texts, qkv, dout);
  const AttentionRun run = run_attention(h, precision, texts, qkv, dout),
                     again = run_attention(h, precision, texts, qkv, dout);
  const std::string what = std::string(to_string(precision)) + ", time " + std::to_string(h.time) + ", " +
                           std::to_string(h.heads) + " heads of " + std::to_string(h.head_width);
  expect_near(run.out.download(), want.out, tolerance(precision), "attention " + what);
  expect_near(run.lse.download(), want.lse, std::min(tolerance(precision), 1e-3), "logarithms " + what);
  expect_near(run.dqkv.download(), want.dqkv, 2 * tolerance(precision), "attention gradient " + what);
  EXPECT_EQ(run.out.download(), again.out.download()) << what;
  EXPECT_EQ(run.dqkv.download(), again.dqkv.download()) << what;
}

// The same by the kernels of its parts, in the order of a plan.
AttentionRun run_parts(const Heads& h, Precision precision, int64_t texts, const Matrix& qkv, const Matrix& dout) {
  using enum HeadPart;
  Bench bench;
  const auto square = [&] { return Matrix(texts * h.heads * h.time, h.time, qkv.t.type); };
  Matrix scores = square(), shares = square(), dshares = square(), dscores = square();
  AttentionRun run{Matrix(qkv.t.rows, dout.t.cols, qkv.t.type), Matrix(1, 1), Matrix(qkv.t.rows, qkv.t.cols, qkv.t.type)};
  const auto product = [&](HeadParts parts, const Tensor& a, bool ta, const Tensor& b, bool tb, const Tensor& c) {
    head_product(bench.queue, precision, {h, parts, a, b, c, ta, tb});
  };
  product({Query, Key, Scores, true}, qkv.t, false, qkv.t, true, scores.t);
  causal_softmax(bench.queue, scores.t, shares.t);
  product({Scores, Value, Output}, shares.t, false, qkv.t, false, run.out.t);
  product({Scores, Output, Value}, shares.t, true, dout.t, false, run.dqkv.t);
  product({Output, Value, Scores}, dout.t, false, qkv.t, true, dshares.t);
  causal_softmax_grad(bench.queue, dshares.t, shares.t, dscores.t);
  product({Scores, Key, Query, true}, dscores.t, false, qkv.t, false, run.dqkv.t);
  product({Scores, Query, Key, true}, dscores.t, true, qkv.t, false, run.dqkv.t);
  return run;
}

TEST_F(Kernels, PartsOfAttention) {
  for (const Precision precision : kPrecisions)
    for (const Heads& h : {Heads{64, 2, 32}, Heads{128, 4, 64}, Heads{200, 3, 128}, Heads{1, 3, 5}, Heads{63, 1, 40}, Heads{65, 2, 127}, Heads{257, 2, 1}}) {
      const int64_t texts = 2, width = h.heads * h.head_width;
      const Matrix qkv = random_matrix(texts * h.time, 3 * width, number_type(precision), 1),
                   dout = random_matrix(texts * h.time, width, number_type(precision), 2);
      const AttentionWant want = attention_in_double(h, texts, qkv, dout);
      const AttentionRun run = run_parts(h, precision, texts, qkv, dout), again = run_parts(h, precision, texts, qkv, dout);
      SCOPED_TRACE(std::string(to_string(precision)) + ", time " + std::to_string(h.time) + ", " + std::to_string(h.heads) +
                   " heads of " + std::to_string(h.head_width));
      expect_near(run.out.download(), want.out, 2 * tolerance(precision), "values");
      expect_near(run.dqkv.download(), want.dqkv, 4 * tolerance(precision), "gradient");  // scores are rounded in memory
      EXPECT_EQ(run.out.download(), again.out.download());
      EXPECT_EQ(run.dqkv.download(), again.dqkv.download());
    }
}

TEST_F(Kernels, AttentionOfUsualHeads) {
  for (Precision precision : kPrecisions)
    for (int64_t head_width : {32, 64, 128})
      for (int64_t time : {64, 128, 200, 256}) expect_attention({time, 2, head_width}, precision, 2);
}

TEST_F(Kernels, AttentionOfOddShapes) {
  for (Precision precision : kPrecisions)
    for (int64_t head_width : {1, 5, 8, 40, 66, 96, 127})
      for (int64_t time : {1, 3, 63, 65, 130}) expect_attention({time, 3, head_width}, precision, 1);
}

TEST_F(Kernels, AttentionOfLargeScores) {  // softmax must not overflow
  for (Precision precision : {Precision::Fp32, Precision::Bf16}) {
    const Heads h{100, 1, 32};
    Matrix qkv = random_matrix(100, 96, number_type(precision), 1, 30);
    const Matrix dout = random_matrix(100, 32, number_type(precision), 2);
    const AttentionRun run = run_attention(h, precision, 1, qkv, dout);
    for (const float v : run.out.download()) ASSERT_TRUE(std::isfinite(v));
    for (const float v : run.dqkv.download()) ASSERT_TRUE(std::isfinite(v));
  }
}

// The bias gradient: whole after the launch, or in parts that stay until an update adds them up.
void expect_attention_bias(const Heads& h, Precision precision, int64_t texts) {
  Bench bench;
  const Blas blas;
  const int64_t width = h.heads * h.head_width, rows = texts * h.time;
  const Matrix qkv = random_matrix(rows, 3 * width, number_type(precision), 1),
               dout = random_matrix(rows, width, number_type(precision), 2);
  Matrix out(rows, width, qkv.t.type), lse(texts * h.heads, h.time), dqkv(rows, 3 * width, qkv.t.type),
      plain(rows, 3 * width, qkv.t.type), db(1, 3 * width), moved = random_matrix(1, 3 * width, DType::F32, 3);
  attention(bench.queue, precision, h, qkv.t, out.t, lse.t);
  const auto run = [&](const Tensor& to, const BiasGradient& bias) {
    attention_grad(bench.queue, precision, h, dout.t, out.t, qkv.t, lse.t, to, bias);
  };
  run(plain.t, {});
  run(dqkv.t, {db.t, bench.scratch()});
  dqkv.v = dqkv.download();
  const std::vector<double> want = column_sums(dqkv);
  const std::string what = std::string(to_string(precision)) + ", time " + std::to_string(h.time) + ", heads of " +
                           std::to_string(h.head_width);
  EXPECT_EQ(plain.download(), dqkv.v) << what;
  expect_near(db.download(), want, 1e-5, "bias gradient " + what);
  KeptParts& kept = kept_parts(blas);
  run(dqkv.t, {db.t, bench.scratch(), &kept});
  ParamRef ref{static_cast<float*>(moved.t.data), db.t, {}, nullptr, nullptr, 3 * width};
  ref.parts = kept.of(db.t.data);
  update_all(bench.queue, {Optimizer::Sgd, 0, 0, 0, 0, 0, bench.at(0)}, std::span(&ref, 1));
  std::vector<double> after = wide(moved.v);
  constexpr double lr = 0.1f;  // of every step
  for (size_t c = 0; c < after.size(); ++c) after[c] -= lr * want[c];
  expect_near(moved.download(), after, 1e-5, "bias after an update " + what);
}

TEST_F(Kernels, AttentionSumsTheColumnsOfItsGradient) {
  for (Precision precision : kPrecisions)
    for (int64_t head_width : {8, 32, 64})
      for (int64_t time : {1, 64, 100, 200, 256, 300}) expect_attention_bias({time, 3, head_width}, precision, 5);
}

TEST_F(Kernels, AttentionRefusesWideHeads) {
  const Matrix qkv = random_matrix(8, 3 * 129, DType::F32, 1), dout = random_matrix(8, 129, DType::F32, 2);
  EXPECT_THROW(run_attention({8, 1, 129}, Precision::Fp32, 1, qkv, dout), Failure);
}

// ---- layer norm ----
struct NormWant {
  std::vector<double> y, dx, dgain, dshift, dbias, mean, inverse;
};

NormWant norm_in_double(const Matrix& x, const Matrix& gain, const Matrix& shift, const Matrix& dy,
                        const Matrix* more) {
  const int64_t rows = x.t.rows, cols = x.t.cols;
  const auto n = static_cast<double>(cols);
  NormWant want{std::vector<double>(x.v.size()),
                std::vector<double>(x.v.size()),
                std::vector<double>(gain.v.size()),
                std::vector<double>(gain.v.size()),
                std::vector<double>(gain.v.size()),
                {},
                {}};
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0, sum = 0, sum_x = 0;
    for (int64_t c = 0; c < cols; ++c) mean += x.at(r, c) / n;
    for (int64_t c = 0; c < cols; ++c) variance += (x.at(r, c) - mean) * (x.at(r, c) - mean) / n;
    const double inverse = 1 / std::sqrt(variance + kNormEpsilon);
    want.mean.push_back(mean), want.inverse.push_back(inverse);
    const auto normal = [&](int64_t c) { return (x.at(r, c) - mean) * inverse; };
    for (int64_t c = 0; c < cols; ++c)
      sum += dy.at(r, c) * gain.at(0, c) / n, sum_x += dy.at(r, c) * gain.at(0, c) * normal(c) / n;
    for (int64_t c = 0; c < cols; ++c) {
      const auto i = static_cast<size_t>(r * cols + c), j = static_cast<size_t>(c);
      want.y[i] = normal(c) * gain.at(0, c) + shift.at(0, c);
      want.dx[i] = inverse * (dy.at(r, c) * gain.at(0, c) - sum - normal(c) * sum_x) + (more ? more->at(r, c) : 0);
      want.dgain[j] += dy.at(r, c) * normal(c);
      want.dshift[j] += dy.at(r, c);
      want.dbias[j] += want.dx[i];
    }
  }
  return want;
}

void expect_layer_norm(DType type, int64_t rows, int64_t cols) {
  Bench bench;
  const Matrix x = random_matrix(rows, cols, type, 1), gain = random_matrix(1, cols, DType::F32, 2),
               shift = random_matrix(1, cols, DType::F32, 3), dy = random_matrix(rows, cols, type, 4),
               more = random_matrix(rows, cols, type, 5);
  const std::string what = std::string(to_string(type)) + " " + std::to_string(rows) + " × " + std::to_string(cols);
  Matrix y(rows, cols, type), mean(rows, 1), inverse(rows, 1), dx(rows, cols, type), dgain(1, cols), dshift(1, cols),
      dbias(1, cols);
  layer_norm(bench.queue, {x.t, gain.t, shift.t, y.t, mean.t, inverse.t});
  for (const Matrix* other : {static_cast<const Matrix*>(nullptr), &more}) {
    const NormWant want = norm_in_double(x, gain, shift, dy, other);
    if (!other) {
      expect_near(y.download(), want.y, rounding(type), "layer norm " + what);
      expect_near(mean.download(), want.mean, 1e-5, "mean " + what);
      expect_near(inverse.download(), want.inverse, 1e-5, "inverse deviation " + what);
    }
    const Tensor added = other ? other->t : Tensor{};
    for (const bool biased : {false, true}) {
      layer_norm_grad(bench.queue, bench.scratch(),
                      {dy.t, x.t, gain.t, mean.t, inverse.t, added, dx.t, dgain.t, dshift.t, biased ? dbias.t : Tensor{}});
      expect_near(dx.download(), want.dx, rounding(type) + 1e-5, "layer norm gradient " + what);
      expect_near(dgain.download(), want.dgain, 1e-5, "gain gradient " + what);
      expect_near(dshift.download(), want.dshift, 1e-5, "shift gradient " + what);
    }
    expect_near(dbias.download(), want.dbias, 2 * (rounding(type) + 1e-5), "bias gradient " + what);
  }
}

// Parts of the gradients of gain, shift and bias stay in the library's memory until an update adds them up.
void expect_kept_sums(DType type, int64_t rows, int64_t cols) {
  Bench bench;
  const Blas blas;
  KeptParts& kept = kept_parts(blas);
  const Matrix x = random_matrix(rows, cols, type, 1), dy = random_matrix(rows, cols, type, 2);
  Matrix gain = random_matrix(1, cols, DType::F32, 3), shift = random_matrix(1, cols, DType::F32, 4),
         bias = random_matrix(1, cols, DType::F32, 5);
  Matrix y(rows, cols, type), mean(rows, 1), inverse(rows, 1), dx(rows, cols, type), dgain(1, cols), dshift(1, cols),
      dbias(1, cols);
  layer_norm(bench.queue, {x.t, gain.t, shift.t, y.t, mean.t, inverse.t});
  const NormWant want = norm_in_double(x, gain, shift, dy, nullptr);
  NormGrad n{dy.t, x.t, gain.t, mean.t, inverse.t, {}, dx.t, dgain.t, dshift.t, dbias.t};
  n.kept = &kept;
  layer_norm_grad(bench.queue, bench.scratch(), n);
  struct Updated {
    Matrix& value;
    const Matrix& gradient;
    const std::vector<double>& want;
    double tolerance;
  };
  const Updated all[] = {{gain, dgain, want.dgain, 1e-5},
                         {shift, dshift, want.dshift, 1e-5},
                         {bias, dbias, want.dbias, rounding(type) + 1e-5}};
  std::vector<ParamRef> refs;
  for (const Updated& u : all) {
    refs.push_back({static_cast<float*>(u.value.t.data), u.gradient.t, {}, nullptr, nullptr, cols});
    refs.back().parts = kept.of(u.gradient.t.data);
    ASSERT_GT(refs.back().parts.count, 0);
  }
  update_all(bench.queue, {Optimizer::Sgd, 0, 0, 0, 0, 0, bench.at(0)}, refs);
  constexpr double lr = 0.1f;  // of every step
  for (const Updated& u : all) {
    std::vector<double> after = wide(u.value.v);
    for (size_t c = 0; c < after.size(); ++c) after[c] -= lr * u.want[c];
    expect_near(u.value.download(), after, u.tolerance, "after an update");
  }
}

TEST_F(Kernels, LayerNormSumsLeftToTheUpdate) {
  for (DType type : kTypes)
    for (int64_t cols : {32, 33, 128, 384, 1024}) expect_kept_sums(type, 700, cols);
}

// The norm of a sum reads what it stored of the sum.
void expect_residual_norm(DType type, int64_t rows, int64_t cols) {
  Bench bench;
  const Matrix x = random_matrix(rows, cols, type, 1), more = random_matrix(rows, cols, type, 2),
               gain = random_matrix(1, cols, DType::F32, 3), shift = random_matrix(1, cols, DType::F32, 4);
  Matrix sum(rows, cols, type), y(rows, cols, type), mean(rows, 1), inverse(rows, 1);
  layer_norm(bench.queue, {x.t, gain.t, shift.t, y.t, mean.t, inverse.t, more.t, sum.t});
  std::vector<double> want = wide(x.v);
  for (size_t i = 0; i < want.size(); ++i) want[i] += static_cast<double>(more.v[i]);
  expect_near(sum.download(), want, rounding(type), "sum");
  sum.v = sum.download();
  expect_near(y.download(), norm_in_double(sum, gain, shift, x, nullptr).y, rounding(type), "norm of a sum");
}

TEST_F(Kernels, LayerNormOfASum) {
  for (DType type : kTypes)
    for (int64_t cols : {4, 33, 128, 384, 1024, 1500}) expect_residual_norm(type, 130, cols);
}

TEST_F(Kernels, LayerNorms) {
  for (DType type : kTypes)
    for (int64_t rows : {1, 3, 127, 1000, 5000})
      for (int64_t cols : {4, 33, 128, 384, 1024}) expect_layer_norm(type, rows, cols);
  expect_layer_norm(DType::Bf16, 100, 1500);
}

// ---- weight gradients ----
void expect_weight_gradients(Precision precision, int64_t rows, bool biased) {
  Bench bench;
  const DType type = number_type(precision);
  const std::pair<int64_t, int64_t> shapes[] = {{128, 384}, {128, 512}, {64, 8}, {1, 7}, {130, 66}, {512, 128}};
  const size_t whole = 3;  // the first ones have rows of whole 16 bytes
  for (const size_t count : {whole, std::size(shapes)}) {
    std::vector<Matrix> a, dz, dw, db;
    std::vector<WeightGradient> layers;
    for (size_t i = 0; i < count; ++i) {
      const auto [in, out] = shapes[i];
      a.push_back(random_matrix(rows, in, type, 1)), dz.push_back(random_matrix(rows, out, type, 2));
      dw.emplace_back(in, out), db.emplace_back(1, out);
    }
    for (size_t i = 0; i < count; ++i) layers.push_back({a[i].t, dz[i].t, dw[i].t, biased ? db[i].t : Tensor{}});
    weight_gradients(bench.queue, precision, layers);
    for (size_t i = 0; i < count; ++i) {
      const double close = precision == Precision::Tf32 ? 1e-3 : 1e-5;
      expect_near(dw[i].download(), multiply(a[i], true, dz[i], false), close, "dW of " + std::to_string(rows));
      if (biased) expect_near(db[i].download(), column_sums(dz[i]), 1e-5, "db of " + std::to_string(rows));
    }
  }
}

TEST_F(Kernels, WeightGradientsTogether) {
  for (Precision precision : kPrecisions)
    for (int64_t rows : {1, 100, 513})
      for (bool biased : {false, true}) expect_weight_gradients(precision, rows, biased);
}

TEST_F(Kernels, WideColumnSums) {
  Bench bench;
  for (DType type : kTypes)
    for (int64_t rows : {1, 31, 1000, 5000})
      for (int64_t cols : {128, 136, 384, 1536}) {
        const Matrix dz = random_matrix(rows, cols, type, 1);
        Matrix db(1, cols);
        column_sum(bench.queue, bench.scratch(), dz.t, db.t);
        expect_near(db.download(), column_sums(dz), 1e-5, "column sum of " + std::to_string(rows));
      }
}

TEST_F(Kernels, ColumnSumsLeftToTheUpdate) {
  Bench bench;
  const Blas blas;
  KeptParts& kept = kept_parts(blas);
  for (int64_t rows : {1, 1000, 5000})  // one strip; few; or, of 128 columns, too many to keep
    for (int64_t cols : {1, 33, 128, 1536}) {
      const Matrix dz = random_matrix(rows, cols, DType::Bf16, 1);
      Matrix db(1, cols), bias = random_matrix(1, cols, DType::F32, 2);
      kept.forget();
      column_sum(bench.queue, bench.scratch(), dz.t, db.t, &kept);
      ParamRef ref{static_cast<float*>(bias.t.data), db.t, {}, nullptr, nullptr, cols};
      ref.parts = kept.of(db.t.data);
      EXPECT_EQ(ref.parts.count > 0, rows == 1000 || (rows == 5000 && cols != 128)) << rows << " × " << cols;
      update_all(bench.queue, {Optimizer::Sgd, 0, 0, 0, 0, 0, bench.at(0)}, std::span(&ref, 1));
      std::vector<double> want = wide(bias.v), sums = column_sums(dz);
      constexpr double lr = 0.1f;  // of every step
      for (size_t c = 0; c < want.size(); ++c) want[c] -= lr * sums[c];
      expect_near(bias.download(), want, 1e-5, "bias after an update");
    }
}

// ---- embedding ----
struct EmbedCase {
  int64_t texts, time, symbols, width;
};

void expect_embedding(const EmbedCase& e, DType type, bool positioned) {
  Bench bench;
  const int64_t rows = e.texts * e.time;
  Matrix symbols = random_labels(rows, e.symbols, 1);
  for (size_t i = 0; i < symbols.v.size(); i += 3) symbols.v[i] = 0;  // a common symbol
  symbols.upload();
  symbols.t.rows = e.texts, symbols.t.cols = e.time;
  const Matrix table = random_matrix(e.symbols, e.width, type, 2), positions = random_matrix(e.time, e.width, type, 3),
               dh = random_matrix(rows, e.width, type, 4);
  Matrix h(rows, e.width, type), dtable(e.symbols, e.width), dpositions(e.time, e.width);
  std::vector<double> want(h.v.size()), want_table(dtable.v.size()), want_positions(dpositions.v.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < e.width; ++c) {
      const auto symbol = static_cast<int64_t>(symbols.v[static_cast<size_t>(r)]);
      want[static_cast<size_t>(r * e.width + c)] = table.at(symbol, c) + (positioned ? positions.at(r % e.time, c) : 0);
      want_table[static_cast<size_t>(symbol * e.width + c)] += dh.at(r, c);
      want_positions[static_cast<size_t>(r % e.time * e.width + c)] += dh.at(r, c);
    }
  embed(bench.queue, symbols.t, table.t, positioned ? positions.t : Tensor{}, h.t);
  embed_grad(bench.queue, bench.scratch(), symbols.t, dh.t, dtable.t, positioned ? dpositions.t : Tensor{});
  const std::string what = std::to_string(rows) + " of " + std::to_string(e.symbols) + " × " + std::to_string(e.width);
  expect_near(h.download(), want, rounding(type), "embedding " + what);
  expect_near(dtable.download(), want_table, 1e-5, "table gradient " + what);
  if (positioned) expect_near(dpositions.download(), want_positions, 1e-5, "position gradient " + what);
}

TEST_F(Kernels, Embeddings) {
  constexpr EmbedCase cases[] = {{1, 1, 2, 1},       {3, 7, 5, 3},      {32, 128, 96, 128}, {64, 256, 96, 384},
                                 {5, 100, 2000, 64}, {4, 1000, 3, 200}, {50, 1, 40, 130}};
  for (DType type : kTypes)
    for (const EmbedCase& e : cases)
      for (bool positioned : {false, true}) expect_embedding(e, type, positioned);
}

}  // namespace
}  // namespace ws::cuda::test
