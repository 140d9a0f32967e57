// Kernels of a person on the GPU: first versions agree with the built-in ops and train as they do; wrong ones are named.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_contract.h"
#include "engine/train/trainer.h"
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
  OwnKernelVerdict check(const RunSpec& spec, const std::string& op, const std::string& text, const std::string& file = "test.cu") const {
    const Model model = make_model(spec.model, data_.features, data_.outputs);
    return check_own_kernel(compile(spec, model, 32).plan, model, data_, op, {file, text}, [](bool) {});
  }
  std::string first(const RunSpec& spec, const std::string& op, own::KernelLanguage language = own::KernelLanguage::Cuda) const {
    const Plan plan = compile(spec, make_model(spec.model, data_.features, data_.outputs), 32).plan;
    return first_kernel(own::contract_of(plan, own::find_op(plan, op)), language);
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

TEST_F(OwnKernelsOnGpu, EachFirstVersionInPtxAgreesWithItsOp) {
  int checked = 0;
  for (Fusion fusion : kFusions)
    for (Precision precision : {Precision::Fp32, Precision::Bf16}) {
      const RunSpec s = spec(fusion, precision);
      for (const std::string& op : ops(s)) {
        const OwnKernelVerdict verdict = check(s, op, first(s, op, own::KernelLanguage::Ptx), "test.ptx");
        EXPECT_TRUE(verdict.good()) << op << " " << to_string(fusion) << " " << to_string(precision) << ": " << verdict.sentence();
        ++checked;
      }
    }
  EXPECT_GT(checked, 30);
}

bool has_triton() { return std::system("${WARPSIGHT_PYTHON:-python3} -c 'import triton' 2>/dev/null") == 0; }

// The first versions in Triton, by op; not of ops that have none.
template <class Each>
int each_in_triton(const std::vector<std::string>& ops, const std::function<std::string(const std::string&)>& first, Each each) {
  int count = 0;
  for (const std::string& op : ops) {
    std::string text;
    try {
      text = first(op);
    } catch (const Failure&) {
      continue;
    }
    each(op, text), ++count;
  }
  return count;
}

TEST_F(OwnKernelsOnGpu, FirstVersionsInTritonAgreeWithTheirOps) {
  if (!has_triton()) GTEST_SKIP() << "python3 has no Triton";
  int checked = 0;
  for (Precision precision : {Precision::Fp32, Precision::Bf16})
    for (Activation activation : {Activation::Relu, Activation::Gelu}) {
      RunSpec s = spec(Fusion::Off, precision);
      s.model.activation = activation;
      const auto write = [&](const std::string& op) { return first(s, op, own::KernelLanguage::Triton); };
      checked += each_in_triton(ops(s), write, [&](const std::string& op, const std::string& text) {
        try {
          const OwnKernelVerdict verdict = check(s, op, text, "test.py");
          EXPECT_TRUE(verdict.good()) << op << " " << to_string(precision) << ": " << verdict.sentence();
        } catch (const Failure& problem) {
          ADD_FAILURE() << op << ": " << problem.what();
        }
      });
    }
  EXPECT_GT(checked, 12);
}

// Kernels in PTX and in Triton train as the built-in ones, eager and in graphs.
TEST_F(OwnKernelsOnGpu, PtxAndTritonTrainAsTheBuiltInKernels) {
  for (const auto language : {own::KernelLanguage::Ptx, own::KernelLanguage::Triton}) {
    const bool triton = language == own::KernelLanguage::Triton;
    if (triton && !has_triton()) GTEST_SKIP() << "python3 has no Triton";
    Training t{spec(Fusion::Off), data_};
    t.epochs = 25;
    const Outcome built_in = train_on_gpu(t);
    std::vector<std::string> files;
    each_in_triton(ops(t.spec), [&](const std::string& op) { return first(t.spec, op, language); }, [&](const std::string& op, const std::string& text) {
      files.push_back(testing::TempDir() + "own" + std::to_string(files.size()) + (triton ? ".py" : ".ptx"));
      std::ofstream(files.back()) << text;
      t.spec.exec.kernels += op + "=" + files.back() + ";";
    });
    EXPECT_GE(files.size(), triton ? 6u : 12u);
    for (Launch launch : kLaunches) {
      t.spec.exec.launch = launch;
      const Outcome own = train_on_gpu(t);
      ASSERT_EQ(own.results.size(), 200u);
      EXPECT_LT(distance(own, built_in, t), tolerance(Precision::Fp32)) << label(t.spec.exec);
    }
    for (const std::string& file : files) std::remove(file.c_str());
  }
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
  const auto fault = [&](const std::string& text) {
    try {
      return check(s, name, text).fault;
    } catch (const OwnKernelRefused& refused) {
      return refused.fault;
    }
  };
  using enum OwnKernelFault;
  EXPECT_EQ(fault(good), None);
  EXPECT_EQ(fault(replaced(good, "float(z[i])", "2 * float(z[i])")), WrongValue);
  EXPECT_EQ(fault(replaced(good, "(h_rows * h_cols + kThreads - 1)", "(h_rows * h_cols - 1)")), NotWritten);
  EXPECT_EQ(fault(replaced(good, "if (i >= h_rows * h_cols) return;", "if (i == 0) h[h_rows * h_cols] = h_t(1);")), WritesOutside);
  EXPECT_EQ(fault(replaced(good, "h[i] =", "const_cast<z_t*>(z)[i] = z_t(7);\n  h[i] =")), WritesInput);
  EXPECT_EQ(fault(replaced(good, "bias[i % bias_cols]", "bias[i % (bias_cols + 1)]")), ReadsOutside);
  EXPECT_EQ(fault(replaced(good, "h[i] =", "h[i] +=")), ReadsResult);
  EXPECT_EQ(fault(replaced(good, "kThreads = 256", "kThreads = 2048")), BadLaunch);
  EXPECT_EQ(fault(replaced(good, "kSharedBytes = 0", "kSharedBytes = 1 << 20")), BadLaunch);
  EXPECT_EQ(fault(replaced(good, "own_kernel(", "another_name(")), NoKernel);
  EXPECT_EQ(fault(good + "}"), DoesNotCompile);
  EXPECT_EQ(fault(replaced(good, "bias activate(", "softmax(")), OtherOp);
}

// A training whose every possible op is a first version ends where the built-in one ends, eager and in graphs.
TEST_F(OwnKernelsOnGpu, TrainsAsTheBuiltInKernels) {
  for (Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Bf16}) {
    Training t{spec(Fusion::Off, precision), data_};
    t.epochs = 25;
    const Outcome built_in = train_on_gpu(t);
    std::vector<std::string> files;
    for (const std::string& op : ops(t.spec)) {
      files.push_back(testing::TempDir() + "own" + std::to_string(files.size()) + ".cu");
      std::ofstream(files.back()) << first(t.spec, op);
      t.spec.exec.kernels += op + "=" + files.back() + ";";
    }
    EXPECT_GE(files.size(), 12u);
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

struct Watch final : TrainSink {
  void steps(std::span<const StepResult> results) override { seen += static_cast<int64_t>(results.size()); }
  void changed(const Change& change) override {
    step = change.step, to = change.to;
    swapped = true;
  }
  void refused(const Change&, const std::string& reason) override {
    why = reason;
    swapped = true;
  }
  std::atomic<int64_t> seen = 0;
  std::atomic<bool> swapped = false;
  int64_t step = 0;
  std::string to, why;
};

// A saved change runs in the training within 1.5 s, eager and in graphs; a wrong one is refused, and the training goes on.
TEST_F(OwnKernelsOnGpu, ASavedChangeRunsFromAStepOn) {
  const std::string file = testing::TempDir() + "swapped.cu";
  for (Launch launch : kLaunches) {
    RunSpec s = spec(Fusion::Pointwise);
    s.exec.launch = launch, s.train.epochs = 1'000'000'000, s.train.batch = 32;
    const std::string name = ops(s)[1], good = first(s, name);
    std::ofstream(file) << good;
    TrainControl control;
    Watch watch;
    Summary summary;
    std::jthread thread([&] { summary = train(s, data_, control, watch); });
    const auto wait_for = [](const auto& what) {
      for (int i = 0; i < 6000 && !what(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return what();
    };
    const auto swap = [&](const std::string& text) {
      std::ofstream(file) << text;
      watch.swapped = false;
      const auto begin = std::chrono::steady_clock::now();
      control.change("exec.kernels", name + "=" + file);
      EXPECT_TRUE(wait_for([&] { return watch.swapped.load(); }));
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    ASSERT_TRUE(wait_for([&] { return watch.seen > 100; }));
    const double first_s = swap(good), second_s = swap(replaced(good, "kThreads = 256", "kThreads = 128"));
    EXPECT_LT(first_s, 1.5);
    EXPECT_LT(second_s, 1.5);
    RecordProperty("first_ms", static_cast<int>(1000 * first_s)), RecordProperty("second_ms", static_cast<int>(1000 * second_s));
    std::printf("%s: in the training after %.0f and %.0f ms\n", std::string(to_string(launch)).c_str(), 1000 * first_s, 1000 * second_s);
    EXPECT_EQ(watch.why, "");
    EXPECT_NE(watch.to.find("swapped.cu@"), watch.to.npos) << "the run names the version";
    const int64_t after = watch.seen;
    swap(good + "}");
    EXPECT_NE(watch.why.find("does not compile"), watch.why.npos) << watch.why;
    EXPECT_TRUE(wait_for([&] { return watch.seen > after + 100; })) << "the training goes on with the last good kernel";
    control.stop();
    thread.join();
    EXPECT_EQ(summary.status, RunStatus::Stopped) << summary.message;
  }
  std::remove(file.c_str());
}

}  // namespace
}  // namespace ws::test
