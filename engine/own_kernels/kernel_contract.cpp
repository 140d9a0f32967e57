#include "engine/own_kernels/kernel_contract.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "engine/own_kernels/own_kernel_verdict.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws::own {
namespace {

// Names of the operands in the source, in the order of the plan. The last ones may be absent.
struct Names {
  OpKind kind;
  Epilogue epilogue;
  std::vector<const char*> in, out;
};

const std::vector<Names>& all_names() {
  using enum OpKind;
  static const std::vector<Names> names{
      {MatMul, Epilogue::None, {"a", "b"}, {"c"}},
      {MatMul, Epilogue::Bias, {"a", "b", "bias"}, {"c"}},
      {MatMul, Epilogue::BiasActivate, {"a", "b", "bias"}, {"h", "pre"}},
      {MatMul, Epilogue::ActivateGrad, {"a", "b", "saved"}, {"dz"}},
      {MatMul, Epilogue::BiasGrad, {"a", "b"}, {"dw", "db"}},
      {Conv, Epilogue::None, {"x", "w"}, {"z"}},
      {Conv, Epilogue::Bias, {"x", "w", "bias"}, {"z"}},
      {Conv, Epilogue::BiasActivate, {"x", "w", "bias"}, {"h", "pre"}},
      {ConvDataGrad, Epilogue::None, {"dz", "w"}, {"dx"}},
      {ConvDataGrad, Epilogue::ActivateGrad, {"dz", "w", "saved"}, {"dx"}},
      {ConvWeightGrad, Epilogue::None, {"x", "dz"}, {"dw"}},
      {ConvWeightGrad, Epilogue::BiasGrad, {"x", "dz"}, {"dw", "db"}},
      {BroadcastBias, Epilogue::None, {"bias"}, {"c"}},
      {Add, Epilogue::None, {"a", "b"}, {"c"}},
      {Activate, Epilogue::None, {"z"}, {"h"}},
      {ActivateGrad, Epilogue::None, {"dh", "saved"}, {"dz"}},
      {Softmax, Epilogue::None, {"z"}, {"p"}},
      {SoftmaxGrad, Epilogue::None, {"p", "y"}, {"dz"}},
      {ColumnSum, Epilogue::None, {"dz"}, {"db"}},
      {BiasActivate, Epilogue::None, {"z", "bias"}, {"h", "pre"}},
      {MaxPool, Epilogue::None, {"x"}, {"y"}},
      {AvgPool, Epilogue::None, {"x"}, {"y"}},
      {MaxPoolGrad, Epilogue::None, {"dy", "x", "y"}, {"dx"}},
      {AvgPoolGrad, Epilogue::None, {"dy"}, {"dx"}},
      {LayerNorm, Epilogue::None, {"x", "gain", "shift", "more"}, {"y", "mean", "inv", "sum"}},
      {LayerNormGrad, Epilogue::None, {"dy", "x", "gain", "mean", "inv", "more"}, {"dx", "dgain", "dshift"}},
      {Embed, Epilogue::None, {"symbols", "table", "positions"}, {"h"}},
      {EmbedGrad, Epilogue::None, {"symbols", "dh"}, {"dtable", "dpositions"}},
      {SquaredErrorGrad, Epilogue::None, {"z", "y"}, {"dz"}},
  };
  return names;
}

const Names* names_of(const Op& op) {
  const auto found = std::ranges::find_if(
      all_names(), [&](const Names& n) { return n.kind == op.kind && n.epilogue == op.epilogue; });
  return found == all_names().end() ? nullptr : &*found;
}

const char* type_name(DType type) {
  constexpr std::array names{"float", "__half", "__nv_bfloat16", "int"};
  return names[static_cast<size_t>(type)];
}

bool has_half(const KernelContract& contract) {
  return std::ranges::any_of(contract.operands, [](const Operand& o) { return size_of(o.type) == 2; });
}

// The same formulas as the built-in kernels, in the order of Activation. With gelu, `saved` is the value before the activation.
struct ActivationCode {
  const char *value, *slope;
};
constexpr ActivationCode kActivations[] = {
    {"  return z;", "  return 1.f;"},
    {"  return z > 0.f ? z : (z != z ? z : 0.f);", "  return saved > 0.f ? 1.f : 0.f;"},
    {"  return 1.f / (1.f + expf(-z));", "  return saved * (1.f - saved);"},
    {"  return tanhf(z);", "  return 1.f - saved * saved;"},
    {"  return 0.5f * z * (1.f + tanhf(0.7978845608f * (z + 0.044715f * z * z * z)));",
     "  const float u = 0.7978845608f * (saved + 0.044715f * saved * saved * saved), t = tanhf(u);\n"
     "  return 0.5f * (1.f + t) + 0.5f * saved * (1.f - t * t) * 0.7978845608f * (1.f + 3.f * 0.044715f * saved * saved);"}};
const ActivationCode& code_of(Activation activation) { return kActivations[static_cast<size_t>(activation)]; }

constexpr size_t kMostUpdates = 16;

const char* kStepCode =
    "struct step_t { const long long* clock; long long offset; const float* rates; float* sums; long long capacity; };\n"
    "__device__ inline long long step_number(const step_t& s) { return s.clock[0] + s.offset; }  // the first step is 0\n"
    "__device__ inline float learning_rate(const step_t& s) { return s.rates[step_number(s) % s.capacity]; }\n";

std::vector<std::pair<const char*, int64_t>> window_constants(const Window& w) {
  return {{"pictures", w.n}, {"height", w.h}, {"width", w.w}, {"channels", w.c}, {"window_height", w.kh}, {"window_width", w.kw},
          {"stride", w.stride}, {"padding", w.pad}, {"out_height", w.oh}, {"out_width", w.ow}, {"out_channels", w.k}};
}

// A buffer's name as a name in the source: "m.W1" becomes "m_W1", and a shadow "W1'" becomes "W1_shadow".
std::string source_name(const std::string& buffer) {
  std::string name;
  for (const char c : buffer) name += c == '\'' ? "_shadow" : std::isalnum(static_cast<unsigned char>(c)) ? std::string(1, c) : "_";
  return name;
}

bool scales_gradient(const Op& op) { return op.kind == OpKind::SoftmaxGrad || op.kind == OpKind::SquaredErrorGrad; }
bool updates(const Op& op) { return op.kind == OpKind::Update || op.kind == OpKind::UpdateAll; }

void add_operands_of_update(const Plan& plan, const Op& op, KernelContract& contract) {
  contract.updates = update_items(plan, op), contract.train = plan.spec.train;
  const auto add = [&](BufferId id, bool written, bool read = true, bool square = false) {
    if (id == BufferId::None) return;
    const Buffer& b = plan.buffer(id);
    contract.operands.push_back({source_name(b.name), id, written, read, square, b.decays, b.type, b.rows, b.cols});
  };
  for (const UpdateItem& item : contract.updates) {
    add(item.master, true), add(item.gradient, false);
    add(item.moment[0], true), add(item.moment[1], true, true, true);
    add(item.shadow, true, false);
  }
}

// Words for the op and its layer: "bias+relu fc1". Empty for ops without a layer.
std::string words_of(const Plan& plan, const Op& op) {
  if (op.layer < 0 || static_cast<size_t>(op.layer) >= plan.layer_names.size()) return {};
  const std::string activation(op.activation == Activation::None ? "" : to_string(op.activation));
  const std::string biased = activation.empty() ? "bias" : "bias+" + activation;
  std::string what;
  if (op.kind == OpKind::BiasActivate) what = biased;
  if (op.kind == OpKind::MatMul && op.phase == Phase::Forward) {
    const bool bias = op.in.size() > 2;
    what = op.epilogue == Epilogue::None ? "product" : "product+" + (bias ? biased : activation);
  }
  return what.empty() ? what : what + " " + plan.layer_names[static_cast<size_t>(op.layer)];
}

}  // namespace

std::optional<std::string> why_none(const Plan& plan, const Op& op) {
  const std::string what = op.name + ": ";
  if (!names_of(op) && !updates(op))
    return what + "the op " + std::string(to_string(op.kind)) + " takes no kernel of your own: it also uses sums, tables or random numbers of the run.";
  if (const Names* names = names_of(op); names && (op.in.size() > names->in.size() || op.out.size() > names->out.size()))
    return what + "it has more operands here than a kernel of your own gets.";
  if (op.kind == OpKind::SoftmaxGrad && plan.spec.train.label_smoothing > 0) return what + "its kernel gets no smoothed labels; set train.label_smoothing to 0.";
  if ((scales_gradient(op) || updates(op)) && plan.spec.exec.precision == Precision::Fp16)
    return what + "its scale changes while fp16 trains; choose bf16, tf32 or fp32.";
  if (updates(op) && update_items(plan, op).size() > kMostUpdates)
    return what + "a kernel of your own updates at most " + std::to_string(kMostUpdates) + " parameters.";
  for (const auto* operands : {&op.in, &op.out})
    for (BufferId id : *operands)
      if (plan.buffer(id).elements() > INT32_MAX) return what + "a buffer has more than 2^31 elements.";
  return {};
}

std::vector<std::string> op_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Op& op : plan.ops)
    if (!why_none(plan, op)) names.push_back(op.name);
  return names;
}

size_t find_op(const Plan& plan, const std::string& name) {
  auto found = std::ranges::find(plan.ops, name, &Op::name);
  if (found == plan.ops.end()) found = std::ranges::find_if(plan.ops, [&](const Op& op) { return words_of(plan, op) == name; });
  if (found != plan.ops.end()) return static_cast<size_t>(found - plan.ops.begin());
  std::string known;
  for (const std::string& each : op_names(plan)) known += (known.empty() ? "" : ", ") + each;
  throw Failure("The plan has no op “" + name + "”. Choose one of: " + known + ".");
}

KernelContract contract_of(const Plan& plan, const Op& op) {
  if (const auto reason = why_none(plan, op)) throw Failure(*reason);
  KernelContract contract{op.name, describe(plan, op), op, {}, 1 / static_cast<double>(std::max<int64_t>(plan.loss_rows(), 1))};
  if (updates(op)) {
    add_operands_of_update(plan, op, contract);
    return contract;
  }
  const Names& names = *names_of(op);
  const auto add = [&](const std::vector<BufferId>& ids, const std::vector<const char*>& as, bool written) {
    for (size_t i = 0; i < ids.size() && i < as.size(); ++i) {
      const Buffer& buffer = plan.buffer(ids[i]);
      contract.operands.push_back({as[i], ids[i], written, !written, false, false, buffer.type, buffer.rows, buffer.cols});
    }
  };
  add(op.in, names.in, false);
  add(op.out, names.out, true);
  return contract;
}

const Operand* KernelContract::operand(BufferId buffer) const {
  const auto found = std::ranges::find(operands, buffer, &Operand::buffer);
  return found == operands.end() ? nullptr : &*found;
}

const Operand* KernelContract::operand_named(const std::string& name) const {
  const auto found = std::ranges::find(operands, name, &Operand::name);
  return found == operands.end() ? nullptr : &*found;
}

std::string KernelContract::signature() const {
  std::string in, out;
  for (const Operand& o : operands) {
    if (o.read) in += (in.empty() ? "" : ", ") + o.name;
    if (o.written) out += (out.empty() ? "" : ", ") + o.name;
  }
  return (sines > 0 ? "sine" : std::string(to_string(op.kind))) + "(" + in + ") -> " + out;
}

std::string op_of_source(const std::string& text) {
  for (const std::string_view begin : {std::string_view(kForOp), std::string_view("# For ")})
    if (text.starts_with(begin)) return text.substr(begin.size(), text.find_first_of("\r\n") - begin.size());
  return {};
}

void require_same_op(const KernelContract& contract, const OwnKernelSource& source) {
  const std::string written_for = op_of_source(source.text);
  if (!written_for.empty() && written_for != contract.signature())
    throw OwnKernelRefused(OwnKernelFault::OtherOp, source.file + " was written for " + written_for + ", and " + contract.op_name + " is now " +
                                                        contract.signature() + ". Choose another kernel or op, or the fusion it was written for.");
}

std::string line_name(const std::string& file) {
  std::string name;
  for (const char c : file) name += c == '"' || c == '\\' || c == '\n' ? '_' : c;
  return name;
}

std::vector<NamedConstant> constants_of(const KernelContract& contract) {
  std::vector<NamedConstant> all;
  const auto add = [&all](const std::string& name, int64_t value) { all.push_back({name, std::to_string(value)}); };
  for (const Operand& o : contract.operands) add(o.name + "_rows", o.rows), add(o.name + "_cols", o.cols);
  if (contract.op.window.n > 0)
    for (const auto& [name, value] : window_constants(contract.op.window)) add(name, value);
  if (scales_gradient(contract.op)) all.push_back({"gradient_scale", formatted("{:.9e}", contract.gradient_scale), true});
  if (contract.sines > 0) add("depth", contract.sines);
  return all;
}

std::string prelude(const KernelContract& contract, const std::string& file) {
  std::string text = "#pragma nv_diag_suppress 177\n#define INFINITY __int_as_float(0x7f800000)\n";  // a constant need not be used
  if (has_half(contract)) text += "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n";
  for (const Operand& o : contract.operands) text += "using " + o.name + "_t = " + type_name(o.type) + ";\n";
  for (const NamedConstant& c : constants_of(contract)) text += std::string("constexpr ") + (c.is_real ? "float " : "int ") + c.name + " = " + c.value + (c.is_real ? "f;\n" : ";\n");
  if (contract.takes_step()) text += kStepCode;
  text += std::string("__device__ inline float activation(float z) {\n") + code_of(contract.op.activation).value + "\n}\n";
  text += std::string("__device__ inline float activation_slope(float saved) {\n") + code_of(contract.op.activation).slope + "\n}\n";
  return text + "#pragma nv_diag_default 177\n#line 1 \"" + line_name(file) + "\"\n";
}

std::string ending() {
  return std::string("\nextern \"C\" __device__ const int ") + kLaunch + "[3] = {kBlocks, kThreads, kSharedBytes};\n";
}

}  // namespace ws::own
