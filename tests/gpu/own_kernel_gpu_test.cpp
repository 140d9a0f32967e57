// Kernels of a person on the GPU: first versions agree with the built-in ops and train as they do; wrong ones are named.
#include <fstream>

#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_contract.h"
#include "tests/gpu/executor_support.h"

namespace ws::test {
namespace {

class OwnKernelsOnGpu : public testing::Test {
 protected:
  void SetUp() override { NEEDS_GPU(); }
  RunSpec spec(Fusion fusion, Precision precision = Precision::Fp32) const {
    RunSpec spec;
    spec.model.hidden = {48};
    spec.exec.fusion = fusion, spec.exec.precision = precision;
    return spec;
  }
  OwnKernelVerdict check(const RunSpec& spec, const std::string& op, const std::string& text) const {
    const Model model = make_model(spec.model, data_.features, data_.outputs);
    return check_own_kernel(compile(spec, model, 32).plan, model, data_, op, {"test.cu", text}, [] {});
  }
  std::string first(const RunSpec& spec, const std::string& op) const {
    const Plan plan = compile(spec, make_model(spec.model, data_.features, data_.outputs), 32).plan;
    return own::first_version(own::contract_of(plan, own::find_op(plan, op)));
  }
  std::vector<std::string> ops(const RunSpec& spec) const {
    return own::op_names(compile(spec, make_model(spec.model, data_.features, data_.outputs), 32).plan);
  }
  const data::Dataset data_ = random_data(256, 40, 10, true);
};

TEST_F(OwnKernelsOnGpu, EachFirstVersionAgreesWithItsOp) {
  int checked = 0;
  for (Fusion fusion : kFusions)
    for (Precision precision : kPrecisions)
      for (const std::string& op : ops(spec(fusion, precision))) {
        const OwnKernelVerdict verdict = check(spec(fusion, precision), op, first(spec(fusion, precision), op));
        EXPECT_TRUE(verdict.good()) << op << " " << to_string(fusion) << " " << to_string(precision) << ": " << verdict.sentence();
        EXPECT_GT(verdict.own_us, 0);
        ++checked;
      }
  EXPECT_GT(checked, 60);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

TEST_F(OwnKernelsOnGpu, WrongKernelsAreNamedAsWhatTheyAre) {
  const RunSpec s = spec(Fusion::Pointwise);
  const std::string name = ops(s)[1];  // bias and activation
  const std::string good = first(s, name);
  const auto fault = [&](const std::string& text) { return check(s, name, text).fault; };
  using enum OwnKernelFault;
  EXPECT_EQ(fault(good), None);
  EXPECT_EQ(fault(replaced(good, "float(z[i])", "2 * float(z[i])")), WrongValue);
  EXPECT_EQ(fault(replaced(good, "bias[i % bias_cols]", "bias[(i + 1) % bias_cols]")), WrongValue);
  EXPECT_EQ(fault(replaced(good, "(h_rows * h_cols + kThreads - 1)", "(h_rows * h_cols - 1)")), NotWritten);
  EXPECT_EQ(fault(replaced(good, "if (i >= h_rows * h_cols) return;", "if (i == 0) h[h_rows * h_cols] = h_t(1);")), WritesOutside);
  EXPECT_EQ(fault(replaced(good, "h[i] =", "const_cast<z_t*>(z)[i] = z_t(7);\n  h[i] =")), WritesInput);
  EXPECT_THROW(check(s, name, replaced(good, "kThreads = 256", "kThreads = 2048")), Failure);
  EXPECT_THROW(check(s, name, replaced(good, "kSharedBytes = 0", "kSharedBytes = 1 << 20")), Failure);
  EXPECT_THROW(check(s, name, replaced(good, "own_kernel", "another_name")), Failure);
  EXPECT_THROW(check(s, name, good + "}"), Failure);
}

// A training whose every possible op is a first version ends where the built-in one ends, eager and in graphs.
TEST_F(OwnKernelsOnGpu, TrainsAsTheBuiltInKernels) {
  for (Precision precision : {Precision::Fp32, Precision::Bf16}) {
    Training t{spec(Fusion::Off, precision), data_};
    t.epochs = 25;
    const Outcome built_in = train_on_gpu(t);
    std::vector<std::string> files;
    for (const std::string& op : ops(t.spec)) {
      files.push_back(testing::TempDir() + "own" + std::to_string(files.size()) + ".cu");
      std::ofstream(files.back()) << first(t.spec, op);
      t.spec.exec.kernels += op + "=" + files.back() + ";";
    }
    for (Launch launch : kLaunches) {
      t.spec.exec.launch = launch;
      const Outcome own = train_on_gpu(t);
      ASSERT_EQ(own.results.size(), 200u);
      EXPECT_LT(distance(own, built_in, t), tolerance(precision)) << label(t.spec.exec);
      EXPECT_TRUE(same_bits(own, train_on_gpu(t))) << "two runs are the same";
    }
    for (const std::string& file : files) std::remove(file.c_str());
  }
}

}  // namespace
}  // namespace ws::test
