#include "engine/own_kernels/kernel_contract.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

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
      {LayerNorm, Epilogue::None, {"x", "gain", "shift"}, {"y", "mean", "inv"}},
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

// The same formulas as the built-in kernels.
const char* activation_code(Activation activation) {
  switch (activation) {
    case Activation::Relu:
      return "  return z > 0.f ? z : (z != z ? z : 0.f);";
    case Activation::Sigmoid:
      return "  return 1.f / (1.f + expf(-z));";
    case Activation::Tanh:
      return "  return tanhf(z);";
    case Activation::Gelu:
      return "  return 0.5f * z * (1.f + tanhf(0.7978845608f * (z + 0.044715f * z * z * z)));";
    case Activation::None:
      return "  return z;";
  }
  return "";
}

const char* slope_code(Activation activation) {
  switch (activation) {
    case Activation::Relu:
      return "  return saved > 0.f ? 1.f : 0.f;";
    case Activation::Sigmoid:
      return "  return saved * (1.f - saved);";
    case Activation::Tanh:
      return "  return 1.f - saved * saved;";
    case Activation::Gelu:  // saved: the value before the activation
      return "  const float u = 0.7978845608f * (saved + 0.044715f * saved * saved * saved), t = tanhf(u);\n"
             "  return 0.5f * (1.f + t) + 0.5f * saved * (1.f - t * t) * 0.7978845608f * (1.f + 3.f * 0.044715f * saved * saved);";
    case Activation::None:
      return "  return 1.f;";
  }
  return "";
}

std::string constant(const std::string& name, int64_t value) {
  return "constexpr int " + name + " = " + std::to_string(value) + ";\n";
}

std::string window_constants(const Window& w) {
  return constant("pictures", w.n) + constant("height", w.h) + constant("width", w.w) + constant("channels", w.c) +
         constant("window_height", w.kh) + constant("window_width", w.kw) + constant("stride", w.stride) +
         constant("padding", w.pad) + constant("out_height", w.oh) + constant("out_width", w.ow) + constant("out_channels", w.k);
}

}  // namespace

std::optional<std::string> why_none(const Plan& plan, const Op& op) {
  const std::string what = op.name + ": ";
  if (!names_of(op))
    return what + "the op " + std::string(to_string(op.kind)) + " takes no kernel of your own: it also updates weights, sums or tables of the run.";
  if (op.kind == OpKind::SoftmaxGrad && plan.spec.exec.precision == Precision::Fp16)
    return what + "its scale changes while fp16 trains; choose bf16, tf32 or fp32.";
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
  const auto found = std::ranges::find(plan.ops, name, &Op::name);
  if (found != plan.ops.end()) return static_cast<size_t>(found - plan.ops.begin());
  std::string known;
  for (const std::string& each : op_names(plan)) known += (known.empty() ? "" : ", ") + each;
  throw Failure("The plan has no op “" + name + "”. Choose one of: " + known + ".");
}

KernelContract contract_of(const Plan& plan, size_t index) {
  const Op& op = plan.ops[index];
  if (const auto reason = why_none(plan, op)) throw Failure(*reason);
  KernelContract contract{op.name, describe(plan, op), op, {}, 1 / static_cast<double>(std::max<int64_t>(plan.loss_rows(), 1))};
  const Names& names = *names_of(op);
  const auto add = [&](const std::vector<BufferId>& ids, const std::vector<const char*>& as, bool written) {
    for (size_t i = 0; i < ids.size() && i < as.size(); ++i) {
      const Buffer& buffer = plan.buffer(ids[i]);
      contract.operands.push_back({as[i], ids[i], written, buffer.type, buffer.rows, buffer.cols});
    }
  };
  add(op.in, names.in, false);
  add(op.out, names.out, true);
  return contract;
}

OwnKernelSource read_source(const std::string& path) {
  constexpr size_t kMost = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(path + ": this kernel cannot be read. Check the name of the file.");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.empty() || text.size() > kMost) throw Failure(path + ": a kernel's source has 1 byte to 1 MiB.");
  return {path, text};
}

std::string prelude(const KernelContract& contract, const std::string& file) {
  std::string text = "#define INFINITY __int_as_float(0x7f800000)\n";
  if (has_half(contract)) text += "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n";
  for (const Operand& o : contract.operands)
    text += "using " + o.name + "_t = " + type_name(o.type) + ";\n" + constant(o.name + "_rows", o.rows) + constant(o.name + "_cols", o.cols);
  if (contract.op.window.n > 0) text += window_constants(contract.op.window);
  if (contract.op.kind == OpKind::SoftmaxGrad) text += formatted("constexpr float gradient_scale = {:.9e}f;\n", contract.gradient_scale);
  text += std::string("__device__ inline float activation(float z) {\n") + activation_code(contract.op.activation) + "\n}\n";
  text += std::string("__device__ inline float activation_slope(float saved) {\n") + slope_code(contract.op.activation) + "\n}\n";
  std::string name;
  for (const char c : file) name += c == '"' || c == '\\' || c == '\n' ? '_' : c;
  return text + "#line 1 \"" + name + "\"\n";
}

std::string ending() {
  return std::string("\nextern \"C\" __device__ const int ") + kLaunch + "[3] = {kBlocks, kThreads, kSharedBytes};\n";
}

}  // namespace ws::own
