#include "engine/own_kernels/triton_kernel.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/temporary_folder.h"
#include "profiling/base/whole_file.h"

namespace ws::own {
namespace {

constexpr int kMostMs = 120'000;

const char* triton_type(DType type) {
  constexpr std::array names{"*fp32", "*fp16", "*bf16", "*i32"};
  return names[static_cast<size_t>(type)];
}

std::string request_of(const KernelContract& contract, int compute) {
  std::string text = "compute " + std::to_string(compute) + "\n";
  for (const Operand& o : contract.operands) text += "operand " + o.name + " " + triton_type(o.type) + "\n";
  for (const NamedConstant& c : constants_of(contract)) text += "constant " + c.name + " " + c.value + "\n";
  return text;
}

void read_answer(const std::string& answer, KernelBuild& build, KernelFacts& launch) {
  std::istringstream lines(answer);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    int number = 0;
    if (!line.empty()) last = line;
    if (!(words >> key >> number)) continue;
    std::string text;
    std::getline(words >> std::ws, text);
    if (key == "error") build.notes.push_back({number, true, {}, text});
    else if (key == "threads") launch.threads = number;
    else if (key == "blocks") launch.blocks = number;
    else if (key == "shared") launch.dynamic_bytes = number;
    else if (key == "hidden") build.hidden_pointers = number;
    else if (key == "entry") build.entry = text;
  }
  if (build.notes.empty() && launch.threads == 0) build.notes.push_back({0, true, {}, last.empty() ? "Python gave no answer" : last});
}

// What stands between "def own_kernel(" and the end of a first version.
struct Body {
  std::string constants;  // of the file, and blocks()
  std::vector<std::string> used;  // constants that are parameters
  std::string code;
};

// In the order of Activation: the value of Z, and the slope from s. With gelu, s is the value before the activation and t the
// hyperbolic tangent.
struct TritonCode {
  std::string_view value, slope;
};
constexpr TritonCode kTritonCode[] = {
    {"Z", "1.0"},
    {"tl.where(Z > 0, Z, tl.where(Z != Z, Z, 0.0))", "tl.where(s > 0, 1.0, 0.0)"},
    {"1 / (1 + tl.exp(-Z))", "s * (1 - s)"},
    {"2 / (1 + tl.exp(-2 * Z)) - 1", "1 - s * s"},
    {"Z / (1 + tl.exp(-2 * 0.7978845608 * (Z + 0.044715 * Z * Z * Z)))",
     "0.5 * (1 + t) + 0.5 * s * (1 - t * t) * 0.7978845608 * (1 + 3 * 0.044715 * s * s)"}};

std::string activated(Activation activation, const std::string& z) {
  std::string text;
  for (const char c : kTritonCode[static_cast<size_t>(activation)].value) text += c == 'Z' ? z : std::string(1, c);
  return text;
}
std::string slope(Activation activation) { return std::string(kTritonCode[static_cast<size_t>(activation)].slope); }

// A line that loads operand `name` at `place` as float32.
std::string load(const std::string& to, const std::string& name, const std::string& place) {
  return "    " + to + " = tl.load(" + name + " + " + place + ", mask=inside, other=0.0).to(tl.float32)\n";
}
std::string store(const std::string& name, const std::string& value) { return "    tl.store(" + name + " + i, " + value + ", mask=inside)\n"; }

std::string slope_lines(const KernelContract& contract) {
  std::string text = load("s", "saved", "i");
  if (contract.op.activation == Activation::Gelu) text += "    t = 2 / (1 + tl.exp(-2 * 0.7978845608 * (s + 0.044715 * s * s * s))) - 1\n";
  return text;
}

// One value for each element of `result`. Empty: not an op by element.
std::string element_code(const KernelContract& contract, const std::string& result) {
  const Activation activation = contract.op.activation;
  switch (contract.op.kind) {
    case OpKind::BroadcastBias:
      return load("b", "bias", "i % bias_cols") + store("c", "b");
    case OpKind::Add:
      return load("x", "a", "i") + load("y", "b", "i") + store("c", "x + y");
    case OpKind::Activate:
      return contract.sines > 0 ? std::string() : load("v", "z", "i") + store("h", activated(activation, "v"));
    case OpKind::ActivateGrad:
      return load("g", "dh", "i") + slope_lines(contract) + store("dz", "g * (" + slope(activation) + ")");
    case OpKind::BiasActivate:
      return load("x", "z", "i") + load("b", "bias", "i % bias_cols") + "    v = x + b\n" + (contract.operand_named("pre") ? store("pre", "v") : "") +
             store("h", activated(activation, "v"));
    case OpKind::SquaredErrorGrad:
      return load("x", "z", "i") + load("t", "y", "i") + store(result, "2 * gradient_scale / dz_cols * (x - t)");
    case OpKind::SoftmaxGrad:
      return load("x", "p", "i") + "    label = tl.load(y + i // dz_cols, mask=inside, other=0)\n" +
             store(result, "(x - tl.where(label == i % dz_cols, 1.0, 0.0)) * gradient_scale");
    default:
      return {};
  }
}

Body body_of(const KernelContract& contract, const std::string& result) {
  if (const std::string code = element_code(contract, result); !code.empty()) {
    const std::string count = result + "_rows * " + result + "_cols";
    Body body{"BLOCK = 1024\n\n\ndef blocks(c):\n    return triton.cdiv(c." + result + "_rows * c." + result + "_cols, BLOCK)\n", {result + "_rows", result + "_cols"},
              "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    inside = i < " + count + "\n" + code};
    if (contract.operand_named("bias")) body.used.emplace_back("bias_cols");
    if (code.find("gradient_scale") != code.npos) body.used.emplace_back("gradient_scale");
    body.used.emplace_back("BLOCK");
    return body;
  }
  if (contract.op.kind == OpKind::Softmax)
    return {"def COLUMNS(c):\n    return triton.next_power_of_2(c.z_cols)\n\n\ndef blocks(c):\n    return c.z_rows\n", {"z_cols", "COLUMNS"},
            "    col = tl.arange(0, COLUMNS)\n    i = tl.program_id(0) * z_cols + col\n    inside = col < z_cols\n"
            "    v = tl.load(z + i, mask=inside, other=float(\"-inf\")).to(tl.float32)\n    e = tl.exp(v - tl.max(v, 0))\n" + store("p", "e / tl.sum(e, 0)")};
  if (contract.op.kind == OpKind::ColumnSum)
    return {"ROWS = 64\n\n\ndef blocks(c):\n    return c.db_cols\n", {"dz_rows", "dz_cols", "db_cols", "ROWS"},
            "    col = tl.program_id(0)\n    rows: tl.constexpr = dz_rows * dz_cols // db_cols\n    sums = tl.zeros((ROWS,), tl.float32)\n"
            "    for first in range(0, rows, ROWS):\n        row = first + tl.arange(0, ROWS)\n"
            "        sums += tl.load(dz + row * db_cols + col, mask=row < rows, other=0.0).to(tl.float32)\n    tl.store(db + col, tl.sum(sums, 0))\n"};
  throw Failure("There is no first version in Triton for the op " + contract.op_name +
                ": it has them for activations, biases, sums of two, softmax, the gradients of these and column sums. Begin with CUDA, or write the file yourself.");
}

}  // namespace

KernelBuild build_triton(const KernelContract& contract, const OwnKernelSource& source, int compute) {
  if (contract.takes_step()) throw Failure(contract.op_name + ": an update also gets the step, which Triton cannot pass. Write this kernel in CUDA or PTX.");
  const TemporaryFolder folder;
  const auto file = [&folder](const char* name) { return (folder.path() / name).string(); };
  prof::write_whole(file("kernel.py"), source.text), prof::write_whole(file("request"), request_of(contract, compute));
  const char* const python = std::getenv("WARPSIGHT_PYTHON");
  const std::string name = std::filesystem::absolute(source.file).string();
  KernelBuild build;
  KernelFacts launch;
  read_answer(output_of({python && *python ? python : "python3", (resources_folder() / "triton" / "compile_kernel.py").string(), file("kernel.py"), name, file("request"), file("code")}, kMostMs).text,
              build, launch);
  if (!build.notes.empty()) return build;
  const std::string code = prof::whole_text(file("code"));
  build.code.assign(code.begin(), code.end());
  build.facts = facts_of(build.code, compute, build.entry);
  if (!build.facts) return {.notes = {{0, true, {}, "Triton made no machine code"}}};
  build.facts->blocks = launch.blocks, build.facts->threads = launch.threads, build.facts->dynamic_bytes = launch.dynamic_bytes;
  return build;
}

std::string first_triton(const KernelContract& contract) {
  const Operand& result = *std::ranges::find_if(contract.operands, &Operand::written);
  const Body body = body_of(contract, result.name);
  std::string text = "# For " + contract.signature() + "\n# " + contract.meaning + "\n# Row-major matrices. The addresses come in this order, then any constants:\n";
  std::string parameters;
  for (const Operand& o : contract.operands) {
    text += "#   " + o.name + " (" + std::to_string(o.rows) + ", " + std::to_string(o.cols) + ") " + std::string(to_string(o.type)) + (o.written ? o.read ? ", changed in place" : ", written" : "") + "\n";
    parameters += (parameters.empty() ? "" : ", ") + o.name;
  }
  for (const std::string& name : body.used) parameters += ", " + name + ": tl.constexpr";
  return text + "import triton\nimport triton.language as tl\n\nnum_warps = 4\n" + body.constants + "\n\n@triton.jit\ndef " + kEntry + "(" + parameters + "):\n" + body.code;
}

}  // namespace ws::own
