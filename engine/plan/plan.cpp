#include "engine/plan/plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/plan/op_tags.h"
#include "profiling/base/text.h"

namespace ws {

int64_t size_of(DType type) { return type == DType::F32 || type == DType::I32 ? 4 : 2; }

bool is_picture_op(OpKind kind) { return kind >= OpKind::Conv && kind <= OpKind::AvgPoolGrad; }

bool is_bookkeeping(OpKind kind) { return kind == OpKind::Alloc || kind == OpKind::Free || kind == OpKind::Sync; }

size_t computing_ops(const Plan& plan) {
  return static_cast<size_t>(std::ranges::count_if(plan.ops, [](const Op& op) { return op.kind != OpKind::LoadBatch && !is_bookkeeping(op.kind); }));
}

bool lives_in_step(const Buffer& buffer) { return buffer.role == Role::Temp; }

BufferId Plan::find(const std::string& name) const {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].name == name) return static_cast<BufferId>(i);
  return BufferId::None;
}

BufferId Plan::features() const {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].role == Role::Batch && buffers[i].slot == 0) return static_cast<BufferId>(i);
  return BufferId::None;
}

std::vector<UpdateItem> update_items(const Plan& plan, const Op& op) {
  std::vector<UpdateItem> items;
  for (BufferId id : op.in) {  // the order is: parameter, gradient, moments
    const Buffer& buffer = plan.buffer(id);
    if (buffer.role == Role::Parameter)
      items.push_back({buffer.param, id});
    else if (buffer.role == Role::State)
      items.back().moment[buffer.slot] = id;
    else if (!items.empty())
      items.back().gradient = id;
  }
  for (BufferId id : op.out)
    if (plan.buffer(id).role == Role::Shadow)
      for (UpdateItem& item : items)
        if (item.param == plan.buffer(id).param) item.shadow = id;
  return items;
}

std::vector<GradientItem> gradient_items(const Plan& plan, const Op& op) {
  const auto updates = update_items(plan, op);
  std::vector<GradientItem> items;
  size_t update = 0;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Role role = plan.buffer(op.in[i]).role;
    if (role == Role::State) continue;
    if (role == Role::Parameter) {  // the first parameter after a and dz is the weight
      GradientItem& item = items.back();
      (item.weight.master == BufferId::None ? item.weight : item.bias) = updates[update++];
    } else {
      items.push_back({op.in[i], op.in[i + 1], {}, {}});
      ++i;
    }
  }
  for (GradientItem& item : items) item.weight.gradient = item.bias.gradient = BufferId::None;
  return items;
}

std::vector<WeightGradientItem> weight_gradient_items(const Op& op) {
  const size_t outputs = op.epilogue == Epilogue::BiasGrad ? 2 : 1;
  std::vector<WeightGradientItem> items;
  for (size_t i = 0; 2 * i + 1 < op.in.size(); ++i) {
    items.push_back({op.in[2 * i], op.in[2 * i + 1], op.out[i * outputs]});
    if (outputs == 2) items.back().db = op.out[i * outputs + 1];
  }
  return items;
}

OutputParts output_parts(const Op& op) {
  OutputParts parts{op.in[0], op.in[1], op.in[2]};
  size_t next = 3;
  if (op.epilogue == Epilogue::Bias) parts.bias = op.in[next++];
  if (next < op.in.size()) parts.saved = op.in[next];
  parts.dz = op.out[0];
  parts.metrics = op.out[1];
  if (op.out.size() > 2) parts.dz_before = op.out[2];
  if (op.out.size() > 3) parts.dw = op.out[3];
  if (op.out.size() > 5) parts.db = op.out[4], parts.db_before = op.out[5];
  return parts;
}

namespace {

int64_t inner_dimension(const Plan& plan, const Op& op) {
  const Buffer& a = plan.buffer(op.in[0]);
  return op.transpose_a ? a.rows : a.cols;
}

int64_t flops_per_element(const Op& op) {
  const bool activates = op.kind == OpKind::Activate || op.kind == OpKind::ActivateGrad;
  if (activates && op.activation == Activation::Relu) return 1;
  if (op.kind == OpKind::BiasActivate && op.activation == Activation::Gelu) return 9;
  if (op.kind == OpKind::Prepare && !op.preparation.normalise) return 0;
  return facts_of(op.kind).flops;
}

int64_t update_flops(const Plan& plan, const Op& op) {
  constexpr int64_t by_moments[] = {2, 4, 12};
  const int64_t per_weight = by_moments[moments_of(plan.spec.train.optimizer)];
  int64_t weights = 0;
  for (BufferId id : op.out)
    if (plan.buffer(id).role == Role::Parameter) weights += plan.buffer(id).elements();
  return per_weight * weights;
}

int64_t gradient_flops(const Plan& plan, const Op& op) {
  int64_t sum = 0;
  for (const GradientItem& item : gradient_items(plan, op))
    sum += 2 * plan.buffer(item.a).elements() * plan.buffer(item.dz).cols;
  return sum;
}

int64_t weight_gradient_flops(const Plan& plan, const Op& op) {
  int64_t sum = 0;
  for (const WeightGradientItem& item : weight_gradient_items(op))
    sum += 2 * plan.buffer(item.a).elements() * plan.buffer(item.dz).cols;
  return sum;
}

int64_t output_flops(const Plan& plan, const Op& op) {
  const OutputParts parts = output_parts(op);
  const int64_t product = 2 * plan.buffer(parts.h).elements() * plan.buffer(parts.dz).cols;
  const int64_t products = 1 + (parts.dz_before != BufferId::None) + (parts.dw != BufferId::None);
  return products * product + 5 * plan.buffer(parts.dz).elements();
}

int64_t picture_flops(const Op& op) {
  const Window& w = op.window;
  const int64_t outputs = w.n * w.oh * w.ow * w.k, window = w.kh * w.kw;
  const bool product = op.kind == OpKind::Conv || op.kind == OpKind::ConvDataGrad || op.kind == OpKind::ConvWeightGrad;
  return product ? 2 * outputs * window * w.c : outputs * window;
}

// Counts the half of the scores that a causal mask leaves. The gradient computes the scores again.
int64_t attention_flops(const Plan& plan, const Op& op) {
  const int64_t products = op.kind == OpKind::Attention ? 2 : 5;
  return products * plan.buffer(op.out[0]).rows * op.heads.time * op.heads.heads * op.heads.head_width;
}

int64_t elements_of(const Op& op, HeadPart part, int64_t texts) {
  const Heads& h = op.heads;
  return texts * h.heads * h.time * (part == HeadPart::Scores ? h.time : h.head_width);
}

// The texts that a product of heads multiplies: one of its operands is a whole matrix of scores.
int64_t texts_of(const Plan& plan, const Op& op) {
  const BufferId scores = op.parts.a == HeadPart::Scores ? op.in[0] : op.out[0];
  return plan.buffer(scores).elements() / (op.heads.heads * op.heads.time * op.heads.time);
}

int64_t head_product_flops(const Plan& plan, const Op& op) {
  return 2 * op.heads.head_width * elements_of(op, HeadPart::Scores, texts_of(plan, op));
}

// Each operand has the columns of other heads and parts beside its own.
int64_t head_product_bytes(const Plan& plan, const Op& op) {
  const int64_t texts = texts_of(plan, op);
  return elements_of(op, op.parts.a, texts) * size_of(plan.buffer(op.in[0]).type) +
         elements_of(op, op.parts.b, texts) * size_of(plan.buffer(op.in[1]).type) +
         elements_of(op, op.parts.c, texts) * size_of(plan.buffer(op.out[0]).type);
}

int64_t clip_flops(const Plan& plan, const Op& op) {
  int64_t sum = 0;
  for (BufferId id : op.in) sum += plan.buffer(id).elements();
  return flops_per_element(op) * sum;
}

}  // namespace

int64_t flops(const Plan& plan, const Op& op) {
  if (is_picture_op(op.kind)) return picture_flops(op);
  if (op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad) return attention_flops(plan, op);
  if (op.kind == OpKind::HeadProduct) return head_product_flops(plan, op);
  if (op.kind == OpKind::EmbedGrad) return plan.buffer(op.in[1]).elements();
  if (op.kind == OpKind::Embed) return op.in.size() > 2 ? plan.buffer(op.out[0]).elements() : 0;
  if (op.kind == OpKind::ClipGradients) return clip_flops(plan, op);
  if (op.kind == OpKind::GradientUpdate) return gradient_flops(plan, op) + update_flops(plan, op);
  if (op.kind == OpKind::WeightGradients) return weight_gradient_flops(plan, op);
  if (op.kind == OpKind::OutputLayer) return output_flops(plan, op);
  if (is_bookkeeping(op.kind) || op.kind == OpKind::LoadBatch || op.kind == OpKind::BroadcastBias ||
      op.kind == OpKind::AllReduce)
    return 0;
  if (op.kind == OpKind::Update || op.kind == OpKind::UpdateAll) return update_flops(plan, op);
  if (op.kind == OpKind::MatMul) return 2 * plan.buffer(op.out[0]).elements() * inner_dimension(plan, op);
  return flops_per_element(op) * (op.in.empty() ? 0 : plan.buffer(op.in[0]).elements());
}

int64_t bytes(const Plan& plan, const Op& op) {
  if (is_bookkeeping(op.kind)) return 0;
  if (op.kind == OpKind::HeadProduct) return head_product_bytes(plan, op);
  int64_t sum = 0;
  for (BufferId id : op.in) sum += plan.buffer(id).bytes();
  for (BufferId id : op.out) sum += plan.buffer(id).bytes();
  return op.kind == OpKind::LoadBatch ? 2 * sum : sum;
}

namespace {

std::string where(const Plan& plan, size_t i) {
  return "plan: op " + std::to_string(i) + " (" + std::string(to_string(plan.ops[i].kind)) + " " + plan.ops[i].name +
         ")";
}

void check_product(const Plan& plan, size_t i) {
  const Op& op = plan.ops[i];
  const Buffer &a = plan.buffer(op.in[0]), &b = plan.buffer(op.in[1]), &c = plan.buffer(op.out[0]);
  const int64_t m = op.transpose_a ? a.cols : a.rows, k = op.transpose_a ? a.rows : a.cols;
  const int64_t kb = op.transpose_b ? b.cols : b.rows, n = op.transpose_b ? b.rows : b.cols;
  if (k != kb || m != c.rows || n != c.cols) throw Failure(where(plan, i) + ": the shapes do not fit together");
}

struct Expected {
  BufferId buffer;
  int64_t elements;
};

// True for a batch norm, or its gradient, with a max pool in it.
bool norm_pools(const Op& op) {
  return (op.kind == OpKind::BatchNorm || op.kind == OpKind::BatchNormGrad) && op.window.kh > 0;
}

std::vector<Expected> picture_operands(const Op& op) {
  const Window& w = op.window;
  const int64_t x = w.n * w.h * w.w * w.c, y = w.n * w.oh * w.ow * w.k, weights = w.k * w.kh * w.kw * w.c;
  switch (op.kind) {
    case OpKind::Conv:
      return {{op.in[0], x}, {op.in[1], weights}, {op.out[0], y}};
    case OpKind::ConvDataGrad:
      return {{op.in[0], y}, {op.in[1], weights}, {op.out[0], x}};
    case OpKind::ConvWeightGrad:
      return {{op.in[0], x}, {op.in[1], y}, {op.out[0], weights}};
    case OpKind::BatchNormGrad:
      return {{op.in[0], y}, {op.in[1], x}, {op.out[0], x}};
    case OpKind::MaxPoolGrad:
      return {{op.in[0], y}, {op.in[1], x}, {op.in[2], y}, {op.out[0], x}};
    case OpKind::AvgPoolGrad:
      return {{op.in[0], y}, {op.out[0], x}};
    default:  // the forward pools, alone or after a norm
      return {{op.in[0], x}, {op.out[0], y}};
  }
}

void check_picture_op(const Plan& plan, size_t i) {
  const Op& op = plan.ops[i];
  const Window& w = op.window;
  const bool fits = w.oh == (w.h + 2 * w.pad - w.kh) / w.stride + 1 && w.ow == (w.w + 2 * w.pad - w.kw) / w.stride + 1;
  if (!fits) throw Failure(where(plan, i) + ": the output picture does not fit the window");
  for (const Expected& e : picture_operands(op))
    if (plan.buffer(e.buffer).elements() != e.elements)
      throw Failure(where(plan, i) + ": " + plan.buffer(e.buffer).name + " does not have the shape of the picture");
}

// Operands that must have as many elements as each other, in `in` and `out`.
std::vector<BufferId> equal_operands(const Op& op) {
  if (norm_pools(op)) return {};
  switch (op.kind) {
    case OpKind::Add:
    case OpKind::ActivateGrad:
    case OpKind::BatchNormGrad:
    case OpKind::LayerNormGrad:
    case OpKind::CausalSoftmaxGrad:
      return {op.in[0], op.in[1], op.out[0]};
    case OpKind::AttentionGrad:
      return {op.in[2], op.out[0]};
    case OpKind::Activate:
    case OpKind::BiasActivate:
    case OpKind::Dropout:
    case OpKind::Prepare:
    case OpKind::BatchNorm:
    case OpKind::BatchNormApply:
    case OpKind::LayerNorm:
    case OpKind::CausalSoftmax:
    case OpKind::Transpose:
      return {op.in[0], op.out[0]};
    default:
      return {};
  }
}

void check_equal(const Plan& plan, size_t i) {
  const auto operands = equal_operands(plan.ops[i]);
  for (BufferId id : operands)
    if (plan.buffer(id).elements() != plan.buffer(operands[0]).elements())
      throw Failure(where(plan, i) + ": " + plan.buffer(id).name + " has another size than " +
                    plan.buffer(operands[0]).name);
}

void check_weight_gradients(const Plan& plan, size_t i) {
  for (const WeightGradientItem& item : weight_gradient_items(plan.ops[i])) {
    const Buffer &a = plan.buffer(item.a), &dz = plan.buffer(item.dz), &dw = plan.buffer(item.dw);
    if (a.rows != dz.rows || dw.rows != a.cols || dw.cols != dz.cols)
      throw Failure(where(plan, i) + ": the shapes of " + dw.name + " do not fit together");
  }
}

void check_attention(const Plan& plan, size_t i) {
  const Op& op = plan.ops[i];
  const Buffer& qkv = plan.buffer(op.in[op.kind == OpKind::Attention ? 0 : 2]);
  const Heads& h = op.heads;
  if (h.time < 1 || h.heads < 1 || qkv.cols != 3 * h.heads * h.head_width || qkv.rows % h.time != 0)
    throw Failure(where(plan, i) + ": the heads do not fit the width");
}

// Rows and columns of one head's matrix.
std::pair<int64_t, int64_t> sides_of(const Op& op, HeadPart part, bool turned) {
  const int64_t cols = part == HeadPart::Scores ? op.heads.time : op.heads.head_width;
  return turned ? std::pair(cols, op.heads.time) : std::pair(op.heads.time, cols);
}

void check_head_product(const Plan& plan, size_t i) {
  const Op& op = plan.ops[i];
  const int64_t texts = texts_of(plan, op);
  const auto fits = [&](BufferId id, HeadPart part) {
    const int64_t parts = part < HeadPart::Output ? 3 : 1;
    return plan.buffer(id).elements() == parts * elements_of(op, part, texts);
  };
  const auto a = sides_of(op, op.parts.a, op.transpose_a), b = sides_of(op, op.parts.b, op.transpose_b),
             c = sides_of(op, op.parts.c, false);
  if (texts < 1 || a.second != b.first || a.first != c.first || b.second != c.second || !fits(op.in[0], op.parts.a) ||
      !fits(op.in[1], op.parts.b) || !fits(op.out[0], op.parts.c))
    throw Failure(where(plan, i) + ": the heads do not fit together");
}

void check_turned(const Plan& plan, size_t i) {
  const Window& w = plan.ops[i].window;
  if (plan.buffer(plan.ops[i].in[0]).elements() != w.n * w.h * w.w)
    throw Failure(where(plan, i) + ": the matrices do not have the size of the operand");
}

void check_pictures(const Plan& plan, size_t i) {
  const Window& w = plan.ops[i].window;
  if (plan.buffer(plan.ops[i].in[0]).elements() != w.n * w.h * w.w * w.c || w.c > kMostChannels)
    throw Failure(where(plan, i) + ": the rows do not have the shape of the pictures");
}

void check_shapes(const Plan& plan, size_t i) {
  const OpKind kind = plan.ops[i].kind;
  if (kind == OpKind::MatMul) check_product(plan, i);
  if (kind == OpKind::WeightGradients) check_weight_gradients(plan, i);
  if (is_picture_op(kind) || norm_pools(plan.ops[i])) check_picture_op(plan, i);
  if (kind == OpKind::Prepare) check_pictures(plan, i);
  if (kind == OpKind::Transpose) check_turned(plan, i);
  if (kind == OpKind::HeadProduct) check_head_product(plan, i);
  if (kind == OpKind::Attention || kind == OpKind::AttentionGrad) check_attention(plan, i);
  check_equal(plan, i);
}

// Goes through the ops in order and tracks which step-local buffers are allocated and written.
class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan), alive_(plan.buffers.size()), written_(plan.buffers.size()) {
    allocates_ = std::ranges::any_of(plan.ops, [](const Op& op) { return op.kind == OpKind::Alloc; });
    for (size_t i = 0; i < plan.buffers.size(); ++i)
      written_[i] = plan.buffers[i].role != Role::Temp && plan.buffers[i].role != Role::Batch;
  }

  void visit(size_t i) {
    const Op& op = plan_.ops[i];
    if (op.kind == OpKind::Alloc) return mark(op.out, true, i);
    if (op.kind == OpKind::Free) return mark(op.in, false, i);
    for (BufferId id : op.in)
      if (!written_.at(index(id))) fail(i, "reads " + plan_.buffer(id).name + " before anything wrote it");
    for (BufferId id : op.in) check_alive(id, i);
    for (BufferId id : op.out) check_alive(id, i), written_[index(id)] = true;
    check_shapes(plan_, i);
  }

  void finish() const {
    for (size_t b = 0; b < alive_.size(); ++b)
      if (alive_[b]) throw Failure("plan: buffer " + plan_.buffers[b].name + " is never freed");
  }

 private:
  [[noreturn]] void fail(size_t i, const std::string& what) const { throw Failure(where(plan_, i) + ": " + what); }
  void mark(const std::vector<BufferId>& ids, bool alive, size_t i) {
    for (BufferId id : ids) {
      if (alive_[index(id)] == alive)
        fail(i, plan_.buffer(id).name + (alive ? " is allocated twice" : " is freed twice"));
      alive_[index(id)] = alive;
    }
  }
  void check_alive(BufferId id, size_t i) const {
    if (allocates_ && lives_in_step(plan_.buffer(id)) && !alive_[index(id)])
      fail(i, "uses " + plan_.buffer(id).name + " outside its life");
  }

  const Plan& plan_;
  std::vector<bool> alive_, written_;
  bool allocates_ = false;
};

}  // namespace

void validate(const Plan& plan) {
  Walk walk(plan);
  for (size_t i = 0; i < plan.ops.size(); ++i) walk.visit(i);
  walk.finish();
}

namespace {

// Everything that a preparation depends on. Floats are exact in hexadecimal.
std::string words_of(const Preparation& p) {
  std::string text = formatted(" {} {} {} {}", p.crop, p.flip, p.normalise, p.first_row);
  for (int c = 0; p.normalise && c < kMostChannels; ++c) text += formatted(" {:a} {:a}", p.scale.mean[c], p.scale.factor[c]);
  return text + ';';
}

}  // namespace

std::string plan_hash(const Plan& plan) {
  auto spec = to_json(plan.spec);
  const auto seed = spec["train"]["seed"];
  for (const char* key :
       {"lr", "epochs", "schedule", "seed", "target_accuracy", "time_limit_s", "eval_every", "warmup_steps"})
    spec["train"].erase(key);
  std::string text = print(plan) + spec["model"].dump() + spec["train"].dump() + spec["exec"].dump();
  for (const Op& op : plan.ops) text += op.own.text;
  for (const Op& op : plan.ops)  // masks depend on the seed, places of crops too
    if (op.kind == OpKind::Dropout) text += seed.dump() + ' ' + std::to_string(op.dropout.rate) + ' ' + std::to_string(op.dropout.stream) + ';';
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::Prepare) text += seed.dump() + words_of(op.preparation);
  // A rank's gradients are weighted by its share.
  text += std::to_string(plan.step_rows) + '/' + std::to_string(plan.ranks) + ';';
  for (const Buffer& b : plan.buffers)  // exact numbers: the printed table rounds them
    text += b.name + ' ' + std::to_string(b.rows) + ' ' + std::to_string(b.cols) + ' ' + std::to_string(b.offset) + ';';
  uint64_t hash = 1469598103934665603ull;
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return formatted("{:016x}", hash);
}

}  // namespace ws
