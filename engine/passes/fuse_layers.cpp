#include "engine/passes/fuse_layers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace ws {
namespace {

constexpr int64_t kMostOutputs = 32;       // a warp holds one row of outputs
constexpr int64_t kMostLossRows = 2048;    // for more rows, separate products are faster, except for small layers
constexpr int64_t kMostUpdateRows = 1024;  // one block sums over all rows of the batch

int reads_of(const Plan& plan, BufferId id) {
  int reads = 0;
  for (const Op& op : plan.ops) reads += static_cast<int>(std::ranges::count(op.in, id));
  return reads;
}

// True if products may become part of another op. A user who selects a matrix product sees it as an op of its own.
bool products_may_vanish(const Plan& plan) {
  return plan.spec.exec.matmul == Matmul::Library && plan.spec.exec.accumulate == Accumulate::Fp32;
}

std::optional<size_t> find_op(const Plan& plan, auto&& wanted) {
  const auto found = std::ranges::find_if(plan.ops, wanted);
  if (found == plan.ops.end()) return std::nullopt;
  return static_cast<size_t>(found - plan.ops.begin());
}

std::string note_of(std::string_view rule) { return "from rule " + std::string(rule); }

void erase_op(Plan& plan, size_t i) { plan.ops.erase(plan.ops.begin() + static_cast<std::ptrdiff_t>(i)); }

// True if the threads of a warp can hold all weights of the layer. It then pays off as one kernel for any batch.
bool fits_a_warp(int64_t in, int64_t out) { return (in <= 256 && out <= 10) || (in <= 128 && out <= kMostOutputs); }
// True if the threads of a warp can hold the gradients as well.
bool gradients_fit_too(int64_t in, int64_t out) { return in <= 128 && out <= 10; }

bool begins_output_layer(const Plan& plan, size_t at) {
  if (at + 1 >= plan.ops.size() || !products_may_vanish(plan)) return false;
  const Op &product = plan.ops[at], &loss = plan.ops[at + 1];
  if (product.kind != OpKind::MatMul || product.transpose_a || product.transpose_b) return false;
  if (product.epilogue != Epilogue::None && product.epilogue != Epilogue::Bias) return false;
  if (loss.kind != OpKind::SoftmaxCrossEntropy && loss.kind != OpKind::SquaredErrorFused) return false;
  if (plan.predictions > 1 || plan.spec.train.label_smoothing > 0) return false;
  const BufferId z = product.out[0];
  const int64_t in = plan.buffer(product.in[0]).cols, out = plan.buffer(z).cols;
  return loss.in[0] == z && reads_of(plan, z) == 1 && out <= kMostOutputs &&
         (plan.batch <= kMostLossRows || fits_a_warp(in, out));
}

// Finds the op that makes each gradient in `items`. Returns nullopt if a gradient is not a plain weight gradient or if
// another op reads it.
using Makers = std::map<BufferId, size_t>;
std::optional<Makers> gradient_makers(const Plan& plan, const std::vector<UpdateItem>& items) {
  std::set<BufferId> gradients;
  for (const UpdateItem& item : items) gradients.insert(item.gradient);
  Makers makers;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    const bool is_product = op.kind == OpKind::MatMul && op.transpose_a;
    const bool may_read = op.kind == OpKind::UpdateAll || op.kind == OpKind::Update || op.kind == OpKind::CheckFinite;
    for (const BufferId id : op.out)
      if (gradients.contains(id) && makers.try_emplace(id, i).second && !is_product) return std::nullopt;
    for (const BufferId id : op.in)
      if (gradients.contains(id) && !may_read) return std::nullopt;
  }
  if (makers.size() < gradients.size()) return std::nullopt;
  return makers;
}

// Finds aᵀ·dz, which also sums the columns of dz if the layers have biases.
std::optional<size_t> weight_gradient(const Plan& plan, BufferId dz, Epilogue epilogue) {
  return find_op(plan, [&](const Op& op) {
    return op.kind == OpKind::MatMul && op.transpose_a && op.in[1] == dz && op.epilogue == epilogue;
  });
}

// For a large batch the output layer also makes its weight gradient and both layers' bias gradients: all their terms
// pass through it.
void take_gradients(Plan& plan, size_t at) {
  Op& layer = plan.ops[at];
  const OutputParts parts = output_parts(layer);
  if (parts.dz_before == BufferId::None || plan.batch <= kMostUpdateRows) return;
  if (!gradients_fit_too(plan.buffer(parts.h).cols, plan.buffer(parts.dz).cols)) return;
  const bool biased = parts.bias != BufferId::None;
  const auto made = weight_gradient(plan, parts.dz, biased ? Epilogue::BiasGrad : Epilogue::None),
             before = weight_gradient(plan, parts.dz_before, Epilogue::BiasGrad);
  if (!made || plan.ops[*made].in[0] != parts.h || (biased && !before)) return;
  layer.out.push_back(plan.ops[*made].out[0]);
  if (biased) {
    layer.out.push_back(plan.ops[*made].out[1]);
    Op& product = plan.ops[*before];
    layer.out.push_back(product.out[1]);
    product.out.pop_back();
    product.epilogue = Epilogue::None;
  }
  erase_op(plan, *made);
}

// True for a weight gradient that leaves multiprocessors idle if it runs alone: a tile of 64 × 64 sums over all rows.
constexpr int64_t kMostGradientRows = 8192, kMostGradientTiles = 96;  // for more, the library is faster
int64_t gradient_tiles(const Plan& plan, const Op& op) {
  constexpr int64_t side = 64;
  const Buffer& dw = plan.buffer(op.out[0]);
  return (dw.rows + side - 1) / side * ((dw.cols + side - 1) / side);
}

bool is_small_gradient(const Plan& plan, const Op& op) {
  if (op.kind != OpKind::MatMul || !op.transpose_a || op.transpose_b || op.phase != Phase::Backward) return false;
  const Buffer &a = plan.buffer(op.in[0]), &dw = plan.buffer(op.out[0]);
  return a.role != Role::Batch && a.rows <= kMostGradientRows && dw.type == DType::F32 &&
         gradient_tiles(plan, op) <= kMostGradientTiles;
}

// The products that can run with the one at `first`: as many rows, and the same epilogue.
std::vector<size_t> gradients_like(const Plan& plan, size_t first) {
  const Op& like = plan.ops[first];
  std::vector<size_t> found;
  for (size_t i = first; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (is_small_gradient(plan, op) && op.epilogue == like.epilogue &&
        plan.buffer(op.in[0]).rows == plan.buffer(like.in[0]).rows)
      found.push_back(i);
  }
  return found;
}

void append_item(Op& op, const UpdateItem& item) {
  op.in.push_back(item.master);
  op.out.push_back(item.master);
  if (item.shadow != BufferId::None) op.out.push_back(item.shadow);
  for (BufferId moment : item.moment) {
    if (moment == BufferId::None) continue;
    op.in.push_back(moment);
    op.out.push_back(moment);
  }
}

}  // namespace

bool fuse_output_layer(Plan& plan, size_t at, std::string_view rule) {
  if (!begins_output_layer(plan, at)) return false;
  const Op product = plan.ops[at], loss = plan.ops[at + 1];
  const BufferId weights = product.in[1], dz = loss.out[0];
  Op fused = loss;
  fused.kind = OpKind::OutputLayer;
  fused.layer = product.layer;
  fused.name = product.name + " " + loss.name;
  fused.in = {product.in[0], weights, loss.in[1]};
  fused.epilogue = product.epilogue;
  if (product.epilogue == Epilogue::Bias) fused.in.push_back(product.in[2]);
  const auto back = find_op(plan, [&](const Op& op) {
    return op.kind == OpKind::MatMul && op.transpose_b && op.in[0] == dz && op.in[1] == weights;
  });
  if (back) {
    const Op& gradient = plan.ops[*back];
    fused.activation = gradient.activation;
    if (gradient.epilogue == Epilogue::ActivateGrad) fused.in.push_back(gradient.in[2]);
    fused.out.push_back(gradient.out[0]);
    erase_op(plan, *back);
  }
  fused.note = note_of(rule);
  plan.ops[at] = fused;
  erase_op(plan, at + 1);
  take_gradients(plan, at);
  return true;
}

bool fuse_gradient_update(Plan& plan, size_t at, std::string_view rule) {
  if (plan.ops[at].kind != OpKind::UpdateAll && plan.ops[at].kind != OpKind::Update) return false;
  if (plan.batch > kMostUpdateRows || !products_may_vanish(plan)) return false;
  const auto items = update_items(plan, plan.ops[at]);
  const auto makers = gradient_makers(plan, items);
  if (!makers) return false;
  Op fused = plan.ops[at];
  fused.kind = OpKind::GradientUpdate;
  fused.name = "dW " + std::string(to_string(plan.spec.train.optimizer));
  fused.in.clear();
  fused.out.clear();
  std::set<size_t> vanished;
  std::vector<BufferId> checked;
  for (const UpdateItem& item : items) {
    const size_t maker = makers->at(item.gradient);
    const Op& product = plan.ops[maker];
    if (vanished.insert(maker).second) {  // for the weight; the same op makes its bias, which comes next
      fused.in.insert(fused.in.end(), {product.in[0], product.in[1]});
      checked.push_back(product.in[1]);
    }
    append_item(fused, item);
  }
  fused.note = note_of(rule);
  plan.ops[at] = fused;
  for (Op& op : plan.ops)
    if (op.kind == OpKind::CheckFinite) op.in = checked;
  size_t op = 0;
  std::erase_if(plan.ops, [&](const Op&) { return vanished.contains(op++); });
  return true;
}

// Both directions change together: the gradient computes the norm's result again, and nothing else reads it.
bool fuse_norm_pool(Plan& plan, size_t at, std::string_view rule) {
  if (at + 1 >= plan.ops.size() || plan.ops[at].kind != OpKind::BatchNorm) return false;
  const Op norm = plan.ops[at], pool = plan.ops[at + 1];
  const BufferId y = norm.out[0];
  if (pool.kind != OpKind::MaxPool || pool.in[0] != y || !tiles_by_two(pool.window)) return false;
  const auto back = find_op(plan, [&](const Op& op) { return op.kind == OpKind::BatchNormGrad && op.in[3] == norm.out[1]; });
  if (!back) return false;
  const Op choice = plan.ops[*back - 1], gradient = plan.ops[*back];
  if (choice.kind != OpKind::MaxPoolGrad || choice.in[1] != y || choice.out[0] != gradient.in[0]) return false;
  const bool same = gradient.activation == norm.activation ? choice.activation == Activation::None
                                                          : choice.activation == norm.activation;
  if (!same || reads_of(plan, y) != 2 || reads_of(plan, choice.out[0]) != 1) return false;
  Op fused = norm, fused_back = gradient;
  fused.name += " pool", fused.out[0] = pool.out[0];
  fused_back.in[0] = choice.in[0], fused_back.in.resize(5), fused_back.in.push_back(norm.in[2]);
  fused.window = fused_back.window = pool.window;
  fused_back.activation = norm.activation;
  fused.note = fused_back.note = note_of(rule);
  plan.ops[*back - 1] = fused_back;
  erase_op(plan, *back);
  plan.ops[at] = fused;
  erase_op(plan, at + 1);
  return true;
}

// The op runs where the last of its gradients was made, so that all operands exist.
bool fuse_weight_gradients(Plan& plan, size_t at, std::string_view rule) {
  if (plan.spec.exec.gpus > 1 || !products_may_vanish(plan) || !is_small_gradient(plan, plan.ops[at])) return false;
  const std::vector<size_t> all = gradients_like(plan, at);
  int64_t tiles = 0;
  for (const size_t i : all) tiles += gradient_tiles(plan, plan.ops[i]);
  if (all.size() < 2 || tiles < kMostGradientTiles) return false;
  Op fused = plan.ops[all.back()];
  fused.kind = OpKind::WeightGradients;
  fused.name = "dW of " + std::to_string(all.size()) + " products";
  fused.layer = -1;
  fused.in.clear();
  fused.out.clear();
  for (const size_t i : all) {
    fused.in.insert(fused.in.end(), plan.ops[i].in.begin(), plan.ops[i].in.end());
    fused.out.insert(fused.out.end(), plan.ops[i].out.begin(), plan.ops[i].out.end());
  }
  fused.note = note_of(rule);
  plan.ops[all.back()] = fused;
  for (size_t i = all.size() - 1; i-- > 0;) erase_op(plan, all[i]);
  return true;
}

// For fewer rows the product that makes dW sums the columns of dz while it has them.
bool fuse_bias_gradient(Plan& plan, size_t at, std::string_view rule) {
  if (plan.ops[at].kind != OpKind::LayerNormGrad && plan.ops[at].kind != OpKind::AttentionGrad) return false;
  const BufferId dz = plan.ops[at].out[0];
  const int64_t columns = plan.buffer(plan.ops[at].in[2]).cols;  // of the gain, or of qkv
  if (plan.buffer(dz).elements() <= kMostGradientRows * columns) return false;
  const auto sum = find_op(plan, [&](const Op& op) {
    return op.kind == OpKind::ColumnSum && op.in[0] == dz && plan.buffer(op.out[0]).cols == columns;
  });
  if (!sum) return false;
  plan.ops[at].out.push_back(plan.ops[*sum].out[0]);
  plan.ops[at].note = note_of(rule);
  erase_op(plan, *sum);
  return true;
}

bool fuse_line_update(Plan& plan, size_t at, std::string_view rule) {
  if (at + 1 >= plan.ops.size() || plan.ops[at].kind != OpKind::LinearStep) return false;
  if (plan.ops[at + 1].kind != OpKind::UpdateAll) return false;
  const Op update = plan.ops[at + 1];
  Op& line = plan.ops[at];
  line.kind = OpKind::LinearUpdate;
  line.name = "line " + update.name;
  line.out = {line.out[2]};
  line.in.resize(2);
  for (const UpdateItem& item : update_items(plan, update)) append_item(line, item);
  line.note = note_of(rule);
  erase_op(plan, at + 1);
  return true;
}

}  // namespace ws
