// What rounding does to the losses of 200 training steps, emulated in float64 on the CPU: each kind of value rounded
// alone, all of them, rounded or cut off, and a small error in the first weights alone. Prints how far the losses
// move from float64, with several orders of the rows. 784-128x3 takes 20 s of processor time, 784x5 ten minutes.
//   rounding_effects [784x5 | 784-128x3]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "datasets/data_spec.h"
#include "engine/cpu/gemm.h"
#include "engine/passes/compile.h"
#include "tests/support/one_step.h"

namespace ws::test {
namespace {

using Values = std::vector<double>;

// How a kind of value is stored. bits: significant bits, 0: float64. smallest: distance of the smallest numbers.
struct Format {
  int bits = 0;
  bool cuts = false;
  double smallest = 0;
};
constexpr Format kExact{}, kTf32{11, false, 0}, kCut{11, true, 0}, kFp16{11, false, 0x1p-24}, kTwelve{12, false, 0},
    kBf16{8, false, 0};

double rounded(double v, const Format& f) {
  if (f.bits == 0 || v == 0) return v;
  const double unit = std::max(std::ldexp(1.0, std::ilogb(v) - f.bits + 1), f.smallest), n = v / unit;
  return (f.cuts ? std::trunc(n) : std::nearbyint(n)) * unit;
}
Values rounded(Values values, const Format& f) {
  if (f.bits > 0)
    for (double& v : values) v = rounded(v, f);
  return values;
}

// Sums that clusters of `units` units send each other in 16 bits. Every second value gives its last bit to a tag; the
// reader takes zero for it, or the middle.
struct Sums {
  int64_t units = 0;
  bool middle = false;
};

struct Rounding {
  std::string name;
  Format inputs, weights, units, gradients;
  Sums sums;
  double first_error = 0;  // relative, of the first weights
};

double sent(double v, bool has_tag, bool middle) {
  if (v == 0) return 0;
  if (!has_tag) return rounded(v, kBf16);
  const double unit = std::ldexp(1.0, std::ilogb(rounded(v, kBf16)) - 7), n = std::abs(rounded(v, kBf16)) / unit;
  return std::copysign((n - std::fmod(n, 2) + (middle ? 0.5 : 0)) * unit, v);
}

void multiply(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
              double* c, int64_t ldc) {
  cpu::Product<double> product;
  product.rows = m, product.cols = n, product.terms = k;
  product.a = a, product.a_row = ta ? 1 : lda, product.a_term = ta ? lda : 1;
  product.b = b, product.b_term = tb ? 1 : ldb, product.b_col = tb ? ldb : 1;
  product.c = c, product.c_row = ldc;
  cpu::gemm(product);
}

// One training with relu, cross-entropy and plain SGD, as the tests of persistent kernels run it on the GPU.
class Emulation {
 public:
  Emulation(const std::vector<int64_t>& hidden, int64_t batch, bool bias, const Rounding& rounding)
      : r_(rounding), batch_(batch) {
    data::DataSpec images;
    images.name = "mnist", images.limit = 100 * batch - 40;
    static std::map<int64_t, data::Dataset> loaded;
    if (!loaded.contains(images.limit)) loaded[images.limit] = data::load(images);
    data_ = &loaded[images.limit];
    RunSpec spec;
    spec.model.hidden = hidden, spec.model.bias = bias;
    spec.train.optimizer = Optimizer::Sgd;
    const Model model = make_model(spec.model, data_->features, data_->outputs);
    const TrainState state = initial_state(model, spec);
    widths_ = {data_->features};
    widths_.insert(widths_.end(), hidden.begin(), hidden.end());
    widths_.push_back(data_->outputs);
    std::mt19937 random(1);
    std::uniform_real_distribution<double> some(-1, 1);
    for (size_t l = 0, p = 0; l + 1 < widths_.size(); ++l) {
      const auto& w = state.parameters[p++];
      weights_.emplace_back(w.begin(), w.end());
      for (double& v : weights_.back()) v *= 1 + r_.first_error * some(random);
      biases_.emplace_back(static_cast<size_t>(widths_[l + 1]), 0.0);
      if (bias) biases_.back().assign(state.parameters[p].begin(), state.parameters[p].end()), ++p;
    }
    bias_ = bias;
  }
  // The losses of two epochs of whole batches and one smaller one.
  Values run(unsigned order_seed) {
    const int64_t rows = data_->train.rows, whole = rows / batch_;
    Values losses;
    for (unsigned epoch = 0; epoch < 2; ++epoch) {
      std::vector<uint32_t> order(static_cast<size_t>(rows));
      std::iota(order.begin(), order.end(), 0u);
      std::mt19937 random(order_seed + epoch);
      std::shuffle(order.begin(), order.end(), random);
      for (int64_t i = 0; i * batch_ < rows; ++i) {
        const double rate = i == whole ? 0.01 : 0.01 * (1 - 0.05 * static_cast<double>(losses.size() % 7));
        losses.push_back(step(order.data() + i * batch_, std::min(batch_, rows - i * batch_), rate));
      }
    }
    return losses;
  }

 private:
  double step(const uint32_t* order, int64_t rows, double rate) {
    const size_t layers = weights_.size();
    std::vector<Values> units{Values(static_cast<size_t>(rows * widths_[0]))}, rounded_weights;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < widths_[0]; ++j)
        units[0][static_cast<size_t>(i * widths_[0] + j)] =
            rounded(double{data_->train.x[static_cast<size_t>(order[i] * widths_[0] + j)]}, r_.inputs);
    for (size_t l = 0; l < layers; ++l) {
      const int64_t in = widths_[l], out = widths_[l + 1];
      rounded_weights.push_back(rounded(weights_[l], r_.weights));
      Values z(static_cast<size_t>(rows * out));
      multiply(false, false, rows, out, in, units[l].data(), in, rounded_weights[l].data(), out, z.data(), out);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < out; ++j) z[static_cast<size_t>(i * out + j)] += biases_[l][static_cast<size_t>(j)];
      if (l + 1 < layers)
        for (double& v : z) v = rounded(std::max(v, 0.0), r_.units);
      units.push_back(std::move(z));
    }
    // fp16 multiplies the gradients by a power of two first; only the smallest numbers depend on it.
    Format gradients = r_.gradients;
    gradients.smallest /= 65536;
    Values dz = units.back();
    double loss = 0;
    const int64_t outputs = widths_.back();
    for (int64_t i = 0; i < rows; ++i) {
      double* z = dz.data() + i * outputs;
      const double top = *std::max_element(z, z + outputs);
      const auto label = static_cast<int64_t>(data_->train.labels[order[i]]);
      double sum = 0;
      for (int64_t j = 0; j < outputs; ++j) sum += std::exp(z[j] - top);
      loss += std::log(sum) + top - z[label];
      for (int64_t j = 0; j < outputs; ++j)
        z[j] = rounded((std::exp(z[j] - top) / sum - (j == label ? 1 : 0)) / static_cast<double>(rows), gradients);
    }
    for (size_t l = layers; l-- > 0;) {
      const int64_t in = widths_[l], out = widths_[l + 1];
      Values before;
      if (l > 0) {
        before = back(dz, rounded_weights[l], rows, in, out);
        for (size_t i = 0; i < before.size(); ++i) before[i] = units[l][i] > 0 ? rounded(before[i], gradients) : 0;
      }
      Values dw(weights_[l].size());
      multiply(true, false, in, out, rows, units[l].data(), in, dz.data(), out, dw.data(), out);
      for (size_t i = 0; i < dw.size(); ++i) weights_[l][i] -= rate * dw[i];
      if (bias_)
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < out; ++j) biases_[l][static_cast<size_t>(j)] -= rate * dz[static_cast<size_t>(i * out + j)];
      dz = std::move(before);
    }
    return loss / static_cast<double>(rows);
  }
  // The gradients of the units below, before the slopes.
  Values back(const Values& dz, const Values& weights, int64_t rows, int64_t in, int64_t out) const {
    Values sum(static_cast<size_t>(rows * in));
    if (r_.sums.units == 0 || out < r_.sums.units) {
      multiply(false, true, rows, in, out, dz.data(), out, weights.data(), out, sum.data(), in);
      return sum;
    }
    Values part(sum.size());
    for (int64_t first = 0; first < out; first += r_.sums.units) {
      multiply(false, true, rows, in, std::min(r_.sums.units, out - first), dz.data() + first, out, weights.data() + first, out,
               part.data(), in);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += sent(part[i], i % 2 == 0, r_.sums.middle);
    }
    return sum;
  }

  Rounding r_;
  int64_t batch_;
  bool bias_ = true;
  const data::Dataset* data_;
  std::vector<int64_t> widths_;
  std::vector<Values> weights_, biases_;
};

double largest_error(const Values& got, const Values& want) {
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(got[i] - want[i]) / std::max(1e-3, want[i]));
  return worst;
}

Rounding all(std::string name, const Format& f) { return {std::move(name), f, f, f, f, {}, 0}; }

void print_effects(const char* title, const std::vector<int64_t>& hidden, int64_t batch, const std::vector<Rounding>& kinds) {
  constexpr unsigned kOrders[] = {3, 13, 23};
  std::printf("%s, batch %lld: largest relative distance of a loss from float64 in 200 steps, three orders of the rows\n", title,
              static_cast<long long>(batch));
  std::vector<Values> exact;
  for (const unsigned order : kOrders) exact.push_back(Emulation(hidden, batch, true, {}).run(order));
  for (const Rounding& kind : kinds) {
    std::printf("  %-52s", kind.name.c_str());
    for (size_t i = 0; i < std::size(kOrders); ++i)
      std::printf(" %.2e", largest_error(Emulation(hidden, batch, true, kind).run(kOrders[i]), exact[i])), std::fflush(stdout);
    std::printf("\n");
  }
}

std::vector<Rounding> each_kind(const std::string& format, const Format& f) {
  std::vector<Rounding> kinds(4);
  kinds[0].name = "inputs in " + format, kinds[0].inputs = f;
  kinds[1].name = "weights in " + format, kinds[1].weights = f;
  kinds[2].name = "units in " + format, kinds[2].units = f;
  kinds[3].name = "gradients in " + format, kinds[3].gradients = f;
  kinds.push_back(all("all in " + format, f));
  return kinds;
}

}  // namespace
}  // namespace ws::test

int main(int argc, char** argv) {
  using namespace ws::test;
  const std::string only = argc > 1 ? argv[1] : "";
  try {
    const Rounding small{"no rounding, first weights off by up to 2^-12", {}, {}, {}, {}, {}, 0x1p-12},
        smaller{"no rounding, first weights off by up to 2^-20", {}, {}, {}, {}, {}, 0x1p-20};
    if (only.empty() || only == "784x5") {
      std::vector<Rounding> kinds = each_kind("tf32", kTf32);
      kinds.push_back(all("all in tf32, bits cut off instead of rounded", kCut));
      Rounding sums{"sums between clusters in bf16, last bit zero", {}, {}, {}, {}, {56, false}, 0};
      kinds.push_back(sums);
      sums.name = "sums between clusters in bf16, last bit in the middle", sums.sums.middle = true;
      kinds.push_back(sums);
      Rounding both = all("all in tf32, and sums with the last bit zero", kTf32);
      both.sums = {56, false};
      kinds.push_back(both);
      both.name = "all in tf32, and sums with the last bit in the middle", both.sums.middle = true;
      kinds.push_back(both);
      kinds.push_back(small), kinds.push_back(smaller);
      print_effects("784-784-784-784-784-10", {784, 784, 784, 784}, 64, kinds);
    }
    if (only.empty() || only == "784-128x3") {
      std::vector<Rounding> kinds = each_kind("fp16", kFp16);
      kinds.push_back(all("all in tf32", kTf32));
      kinds.push_back(all("all with 12 bits", kTwelve));
      kinds.push_back(all("all in bf16", kBf16));
      kinds.push_back(all("all in tf32, bits cut off instead of rounded", kCut));
      kinds.push_back(small), kinds.push_back(smaller);
      print_effects("784-128-128-128-10", {128, 128, 128}, 32, kinds);
    }
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
