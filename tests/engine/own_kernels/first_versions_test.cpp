// Each first version is right: it runs on the CPU, as C++ of this machine's compiler, and is judged as on a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_check.h"
#include "engine/passes/compile.h"

namespace ws {
namespace {

struct Case {
  Plan plan;
  size_t op = 0;
  std::string name;
};

void add_cases(std::vector<Case>& cases, std::set<std::string>& seen, const RunSpec& spec, const Model& model) {
  const Plan plan = compile(spec, model, 6).plan;
  for (const std::string& name : own::op_names(plan)) {
    const size_t op = own::find_op(plan, name);
    const own::KernelContract contract = own::contract_of(plan, op);
    if (seen.insert(own::prelude(contract, "") + own::first_version(contract)).second) cases.push_back({plan, op, name + ", " + contract.signature()});
  }
}

RunSpec network(Fusion fusion, const std::string& layers = {}) {
  RunSpec spec;
  spec.exec.fusion = fusion, spec.model.layers = layers, spec.model.hidden = {13, 9};
  spec.train.weight_decay = 0.25;
  return spec;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  std::set<std::string> seen;
  for (const Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue}) {
    for (const Activation activation : {Activation::Relu, Activation::Sigmoid, Activation::Tanh, Activation::Gelu}) {
      RunSpec spec = network(fusion);
      spec.model.activation = activation;
      add_cases(cases, seen, spec, make_model(spec.model, 11, 5));
    }
    for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Adam, Optimizer::AdamW}) {
      RunSpec spec = network(fusion);
      spec.train.optimizer = optimizer;
      add_cases(cases, seen, spec, make_model(spec.model, 11, 5));
    }
    RunSpec nesterov = network(fusion);
    nesterov.train.nesterov = true, nesterov.model.loss = LossKind::MeanSquared;
    add_cases(cases, seen, nesterov, make_model(nesterov.model, 11, 5));
    for (const char* layers : {"conv 3x3 4 | relu | maxpool 2 | conv 3x3 5 stride 2 | relu | avgpool 2 | linear", "conv 5x5 3 | gelu | conv 3x3 4 | linear"}) {
      const RunSpec spec = network(fusion, layers);
      add_cases(cases, seen, spec, make_model(spec.model, LayerShape::picture(16, 16, 2), 5));
    }
    RunSpec text = network(fusion, "embed 8 | 2 x block(heads 2) | layernorm | linear");
    text.exec.device = Device::Cpu;
    add_cases(cases, seen, text, make_model(text.model, LayerShape::symbols(7), 12));
  }
  return cases;
}

// What CUDA gives to the source, for a host where one thread after the other runs.
constexpr const char* kHost =
    "#include <algorithm>\n#include <cmath>\n#undef INFINITY\nusing std::max; using std::min;\n"
    "struct Place { int x; };\nstatic Place blockIdx, threadIdx;\n"
    "#define __global__\n#define __device__\n#define __int_as_float(bits) __builtin_inff()\nstatic float rsqrtf(float x) { return 1 / std::sqrt(x); }\n";

std::string in_namespace(const Case& c, size_t number) {
  const own::KernelContract contract = own::contract_of(c.plan, c.op);
  const std::string n = std::to_string(number);
  std::string text = "#define own_kernel own_kernel_" + n + "\n#define ws_own_launch ws_own_launch_" + n + "\nnamespace n" + n + " {\n" +
                     own::prelude(contract, "first.cu") + own::first_version(contract) + own::ending() + "extern \"C\" void run_" + n +
                     "(void** a, const void* step) {\n" +
                     "  for (blockIdx.x = 0; blockIdx.x < kBlocks; ++blockIdx.x)\n    for (threadIdx.x = 0; threadIdx.x < kThreads; ++threadIdx.x) own_kernel(";
  for (size_t i = 0; i < contract.operands.size(); ++i) text += (i ? ", (" : "(") + contract.operands[i].name + "_t*)a[" + std::to_string(i) + "]";
  return text + (contract.takes_step() ? ", *(const step_t*)step" : "") + ");\n}\n}\n#undef own_kernel\n#undef ws_own_launch\n#undef INFINITY\n";
}

// The same members as step_t in the prelude.
struct Step {
  const long long* clock;
  long long offset;
  const float* rates;
  float* sums;
  long long capacity;
};
using HostEntry = void (*)(void**, const Step*);

class HostRun final : public own::KernelBench {
 public:
  explicit HostRun(HostEntry run) : run_(run) {}
  own::LaunchResult launch(const std::vector<own::Bytes>& operands, const own::LaunchState& state) override {
    std::vector<own::Bytes> blocks;
    std::vector<void*> addresses;
    for (const own::Bytes& bytes : operands) {
      blocks.emplace_back(bytes.size() + 2 * kGuard, static_cast<char>(state.guard));
      std::ranges::copy(bytes, blocks.back().begin() + kGuard);
    }
    for (own::Bytes& block : blocks) addresses.push_back(block.data() + kGuard);
    const long long clock[2] = {};
    const float rate = 0.0625f;  // the same as in expected_results()
    const Step step{clock, 0, &rate, nullptr, 1};
    run_(addresses.data(), &step);
    own::LaunchResult result;
    for (const own::Bytes& block : blocks) {
      result.operands.emplace_back(block.begin() + kGuard, block.end() - kGuard);
      const auto guards = [&](auto from) { return std::all_of(from, from + kGuard, [&](char c) { return c == static_cast<char>(state.guard); }); };
      result.guards_hold.push_back(guards(block.begin()) && guards(block.end() - kGuard));
    }
    return result;
  }

 private:
  static constexpr int kGuard = 4096;
  HostEntry run_;
};

TEST(FirstVersions, AgreeWithTheirOpsOnTheCpu) {
  const std::vector<Case> cases = all_cases();
  ASSERT_GT(cases.size(), 60u);
  const std::string stem = testing::TempDir() + "first-" + std::to_string(getpid());
  {
    std::ofstream file(stem + ".cpp");
    file << kHost;
    for (size_t i = 0; i < cases.size(); ++i) file << in_namespace(cases[i], i);
  }
  ASSERT_EQ(std::system(("c++ -std=c++17 -O1 -w -shared -fPIC -o " + stem + ".so " + stem + ".cpp").c_str()), 0) << stem;
  void* library = dlopen((stem + ".so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  std::set<OpKind> kinds;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const own::KernelContract contract = own::contract_of(c.plan, c.op);
    HostRun bench(reinterpret_cast<HostEntry>(dlsym(library, ("run_" + std::to_string(i)).c_str())));
    const auto inputs = own::input_values(contract, 7);
    const OwnKernelVerdict verdict = own::judge(contract, Precision::Fp32, bench, inputs, expected_results(c.plan, c.op, inputs));
    EXPECT_TRUE(verdict.good()) << c.name << ": " << verdict.sentence();
    kinds.insert(contract.op.kind);
  }
  EXPECT_GE(kinds.size(), 18u);
  dlclose(library);
  std::remove((stem + ".so").c_str()), std::remove((stem + ".cpp").c_str());
}

}  // namespace
}  // namespace ws
