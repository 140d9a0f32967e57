// Prints a plan: names and tables.
#include <sstream>

#include "engine/plan/op_tags.h"
#include "profiling/base/text.h"

namespace ws {

std::string_view to_string(OpKind kind) { return facts_of(kind).name; }

std::string_view to_string(Phase phase) {
  constexpr std::string_view names[] = {"input", "forward", "loss", "backward", "update", "evaluate"};
  return names[static_cast<size_t>(phase)];
}

std::string_view to_string(Role role) {
  constexpr std::string_view names[] = {"batch", "temp", "parameter", "shadow", "state", "metric"};
  return names[static_cast<size_t>(role)];
}

std::string_view to_string(DType type) {
  constexpr std::string_view names[] = {"fp32", "fp16", "bf16", "int32"};
  return names[static_cast<size_t>(type)];
}

namespace {

std::string name_of(const Plan& plan, BufferId id) { return plan.buffer(id).name; }

std::string names_of(const Plan& plan, const std::vector<BufferId>& ids) {
  std::string text;
  for (BufferId id : ids) text += (text.empty() ? "" : " ") + name_of(plan, id);
  return text;
}

// "q(qkv1)": the columns of an operand that a product of heads takes.
std::string part_of(const std::string& operand, HeadPart part) {
  constexpr std::string_view names[] = {"q", "k", "v"};
  return part < HeadPart::Output ? std::string(names[static_cast<size_t>(part)]) + "(" + operand + ")" : operand;
}

// A product of matrices or a convolution: "xᵀ·dz1", "x ∗ W1 (3x3)".
std::string factors(const Plan& plan, const Op& op) {
  const std::string a = name_of(plan, op.in[0]), b = name_of(plan, op.in[1]);
  if (op.kind == OpKind::HeadProduct)
    return part_of(a, op.parts.a) + (op.transpose_a ? "ᵀ" : "") + "·" + part_of(b, op.parts.b) + (op.transpose_b ? "ᵀ" : "");
  if (op.kind == OpKind::MatMul) return a + (op.transpose_a ? "ᵀ" : "") + "·" + b + (op.transpose_b ? "ᵀ" : "");
  const std::string window = " (" + std::to_string(op.window.kh) + "x" + std::to_string(op.window.kw) + ")";
  return a + (op.kind == OpKind::ConvWeightGrad ? "ᵀ" : "") + " ∗ " + b +
         (op.kind == OpKind::ConvDataGrad ? "ᵀ" : "") + window;
}

std::string product(const Plan& plan, const Op& op) {
  const std::string c = name_of(plan, op.out[0]), ab = factors(plan, op);
  const std::string act(to_string(op.activation));
  switch (op.epilogue) {
    case Epilogue::None:
      return c + " = " + ab;
    case Epilogue::Bias:
      return c + " = " + ab + " + " + name_of(plan, op.in[2]);
    case Epilogue::BiasActivate:
      return c + " = " + act + "(" + ab + (op.in.size() > 2 ? " + " + name_of(plan, op.in[2]) : "") + ")";
    case Epilogue::ActivateGrad:
      return c + " = " + ab + " ⊙ " + act + "′(" + name_of(plan, op.in[2]) + ")";
    case Epilogue::BiasGrad:
      return c + " = " + ab + ", " + name_of(plan, op.out[1]) + " = Σ " + name_of(plan, op.in[1]);
  }
  return c;
}

std::string pool_text(const Plan& plan, const Op& op) {
  const Window& w = op.window;
  return std::string(to_string(op.kind)) + " " + std::to_string(w.kh) + "x" + std::to_string(w.kw) + " " +
         names_of(plan, op.in) + " → " + name_of(plan, op.out[0]);
}

// A norm: its statistics are the operands after y, which the table leaves out.
std::string norm_text(const Plan& plan, const Op& op) {
  const std::string norm = std::string(to_string(op.kind)) + "(" + name_of(plan, op.in[0]) + ")";
  const std::string bent = op.activation == Activation::None ? norm : std::string(to_string(op.activation)) + "(" + norm + ")";
  return name_of(plan, op.out[0]) + " = " + (op.window.kh > 0 ? "MaxPool(" + bent + ")" : bent);
}

// "normalised = normalise(flip(crop(x)))".
std::string preparation_text(const Plan& plan, const Op& op) {
  std::string text = name_of(plan, op.in[0]);
  if (op.preparation.crop > 0) text = "crop(" + text + ")";
  if (op.preparation.flip) text = "flip(" + text + ")";
  if (op.preparation.normalise) text = "normalise(" + text + ")";
  return name_of(plan, op.out[0]) + " = " + text;
}

std::string gradients_text(const Plan& plan, const Op& op) {
  std::string text;
  for (const GradientItem& item : gradient_items(plan, op))
    text += (text.empty() ? "" : ", ") + name_of(plan, item.weight.master) + " ← " + name_of(plan, item.a) + "ᵀ·" +
            name_of(plan, item.dz);
  return text;
}

std::string weight_gradients_text(const Plan& plan, const Op& op) {
  std::string text;
  for (const WeightGradientItem& item : weight_gradient_items(op))
    text += (text.empty() ? "" : ", ") + name_of(plan, item.dw) + " = " + name_of(plan, item.a) + "ᵀ·" +
            name_of(plan, item.dz);
  return text;
}

std::string flops_text(int64_t n) {
  if (n < 10'000) return n == 0 ? "-" : std::to_string(n);
  return fixed(static_cast<double>(n) / 1e6, 2) + " M";
}

std::string row(const std::string& number, const std::string& phase, const std::string& layer, const std::string& op,
                const std::string& bytes, const std::string& flops) {
  return formatted("{:<3} {:<9} {:<6} {:<43} {:<11} {:<11} ", number, phase, layer, op, bytes, flops);
}

std::string place_text(const Plan& plan, const Op& op) {
  std::string text;
  for (BufferId id : op.out)
    if (plan.buffer(id).offset >= 0) text += (text.empty() ? "@" : " @") + std::to_string(plan.buffer(id).offset);
  return text;
}

}  // namespace

std::string describe(const Plan& plan, const Op& op) {
  const std::string in = names_of(plan, op.in), out = names_of(plan, op.out);
  switch (op.kind) {
    case OpKind::MatMul:
    case OpKind::Conv:
    case OpKind::ConvDataGrad:
    case OpKind::ConvWeightGrad:
      return product(plan, op);
    case OpKind::HeadProduct:
      return part_of(out, op.parts.c) + " = " + factors(plan, op) + (op.parts.scaled ? " / √d" : "");
    case OpKind::MaxPool:
    case OpKind::MaxPoolGrad:
    case OpKind::AvgPool:
    case OpKind::AvgPoolGrad:
      return pool_text(plan, op);
    case OpKind::BatchNorm:
    case OpKind::BatchNormApply:
    case OpKind::LayerNorm:
      return norm_text(plan, op);
    case OpKind::Prepare:
      return preparation_text(plan, op);
    case OpKind::ClipGradients:
      return "clip " + std::to_string(op.in.size()) + " gradients";
    case OpKind::GradientUpdate:
      return gradients_text(plan, op);
    case OpKind::WeightGradients:
      return weight_gradients_text(plan, op);
    case OpKind::Alloc:
      return "alloc " + out;
    case OpKind::Free:
      return "free " + in;
    case OpKind::Sync:
      return "host waits";
    case OpKind::AllReduce:
      return "mean of " + in + " over " + std::to_string(plan.ranks) + " ranks";
    case OpKind::Add:
      return out + " = " + name_of(plan, op.in[0]) + " + " + name_of(plan, op.in[1]);
    case OpKind::Activate:
      return out + " = " + std::string(to_string(op.activation)) + "(" + in + ")";
    case OpKind::BiasActivate:
      return name_of(plan, op.out[0]) + " = " +
             (op.activation == Activation::None ? "" : std::string(to_string(op.activation))) + "(" +
             name_of(plan, op.in[0]) + " + " + name_of(plan, op.in[1]) + ")";
    default:
      return std::string(to_string(op.kind)) + " " + in + " → " + out;
  }
}

std::string print(const Plan& plan) {
  std::ostringstream out;
  out << row("#", "phase", "layer", "op", "bytes", "FLOP") << "place\n";
  Phase phase = Phase::Input;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    const bool first = i == 0 || op.phase != phase;
    phase = op.phase;
    const int64_t size = op.kind == OpKind::Alloc  ? plan.buffer(op.out[0]).bytes()
                         : op.kind == OpKind::Free ? plan.buffer(op.in[0]).bytes()
                                                   : bytes(plan, op);
    out << row(std::to_string(i), first ? std::string(to_string(op.phase)) : "",
               op.layer >= 0 ? plan.layer_names[static_cast<size_t>(op.layer)] : "", describe(plan, op),
               op.kind == OpKind::Sync ? "-" : bytes_text(static_cast<double>(size)), flops_text(flops(plan, op)))
        << place_text(plan, op) << "\n";
  }
  return out.str();
}

}  // namespace ws
