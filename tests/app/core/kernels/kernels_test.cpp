// A person's kernels above the engine: exercises, the list of files, and the process that checks a kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/core/kernels/exercise.h"
#include "app/core/kernels/kernel_library.h"
#include "engine/devices/devices.h"
#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_contract.h"
#include "engine/own_kernels/kernel_versions.h"
#include "tests/support/failure_text.h"

namespace ws::app {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Kernels : public testing::Test {
 protected:
  Kernels() {
    std::filesystem::create_directories(folder_);
    setenv("WARPSIGHT_KERNELS", folder_.c_str(), 1);
  }
  ~Kernels() override {
    std::filesystem::remove_all(folder_);
    unsetenv("WARPSIGHT_EXERCISES");
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  const std::filesystem::path folder_ = testing::TempDir() + "kernels-test-" + std::to_string(getpid());
};

std::string problem_of(const std::string& file) { return test::failure_text([&] { read_exercise(file); }); }

TEST_F(Kernels, EightExercisesShip) {
  const auto all = exercises();
  ASSERT_EQ(all.size(), 8u);
  for (const Exercise& e : all) {
    EXPECT_GE(e.hints.size(), 2u) << e.name;
    EXPECT_GE(e.shapes.size(), 2u) << e.name;
    EXPECT_FALSE(e.look.empty()) << e.name;
    EXPECT_EQ(find_exercise(e.name.substr(0, 1)).name, e.name);
    const std::string file = write(e.name + ".cu", starter_file(e));
    EXPECT_EQ(exercise_of(file).name, e.name) << "a person's file names its exercise";
  }
}

#ifdef WARPSIGHT_HAVE_CUDA
std::string solution_of(const std::string& exercise) {
  const std::filesystem::path folder = WARPSIGHT_SOURCE_DIR "/tests/gpu/exercises";
  constexpr std::string_view kTiles = "#include \"tiles.cuh\"\n";  // one kernel serves several exercises
  std::string text = text_of(folder / (exercise + ".cu"));
  if (const size_t at = text.find(kTiles); at != text.npos) text.replace(at, kTiles.size(), text_of(folder / "tiles.cuh"));
  return text;
}

// With the shapes of the hidden checks too: a solution may depend on sizes.
TEST_F(Kernels, StartersAndSolutionsCompileForEachShape) {
  for (const Exercise& e : exercises())
    for (const CheckedShape& shape : checked_shapes_of(e)) {
      const Plan plan = plan_for_kernels(shape.spec);
      const std::string solution = solution_of(e.name);
      for (const std::string& text : {starter_file(e), solution})
        for (const int compute : {80, 90}) {
          const own::KernelBuild build = build_own_kernel(plan, e.op, {e.name + ".cu", text}, compute);
          ASSERT_TRUE(build.good()) << e.name << ", " << shape.name << ": " << build.errors();
          EXPECT_TRUE(build.facts && build.facts->has_kernel && build.facts->blocks > 0) << e.name;
          EXPECT_TRUE(own::occupancy_of(*build.facts, compute)->blocks > 0) << e.name << ", " << shape.name;
        }
    }
}
#endif

TEST_F(Kernels, ATeacherWritesMore) {
  const std::string file = write("9-mine.cu",
                                 "//! title: Mine\n//! preset: mnist\n//! set: exec.fusion=pointwise\n//! op: bias relu1\n//! built-in: 2\n"
                                 "//! check: train.batch=3 model.hidden=5\ncode\n");
  setenv("WARPSIGHT_EXERCISES", folder_.c_str(), 1);
  const Exercise mine = find_exercise("9");
  EXPECT_EQ(mine.title, "Mine");
  EXPECT_EQ(mine.starter, "code\n");
  const auto shapes = checked_shapes_of(mine);
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[1].spec.train.batch, 3);
  EXPECT_EQ(shapes[1].spec.model.hidden, std::vector<int64_t>{5});
  EXPECT_EQ(shapes[1].name, "batch=3, hidden=5");
}

TEST_F(Kernels, AWrongExerciseIsNamedAtItsLine) {
  EXPECT_THAT(problem_of(write("a.cu", "//! title: A\n//! colour: red\n")), HasSubstr("a.cu(2): there is no key “colour”"));
  EXPECT_THAT(problem_of(write("a.cu", "//! title\n")), HasSubstr("a.cu(1): expected //! KEY: VALUE"));
  EXPECT_THAT(problem_of(write("a.cu", "//! limit: fast\n")), HasSubstr("expected a number above 0"));
  EXPECT_THAT(problem_of(write("a.cu", "//! title: A\n")), HasSubstr("needs a title, a preset, an op and a starter"));
  EXPECT_THAT(problem_of(write("a.cu", "//! title: A\n//! preset: mnist\n//! op: fc1\ncode\n")), HasSubstr("needs a goal"));
  EXPECT_THAT(problem_of("/nowhere.cu"), HasSubstr("cannot be read"));
  EXPECT_THROW(exercise_of(write("b.cu", "// For matmul(a, b) -> c\ncode\n")), Failure);
}

TEST_F(Kernels, TheGoalIsTheEasierOfTheTwo) {
  Exercise e = find_exercise("1");
  const std::string file = write("mine.cu", "text");
  std::vector<ShapeResult> results(e.shapes.size() + 1);
  results.front().verdict.own_us = 12, results.front().verdict.built_in_us = 10;
  e.built_in = 1.3;
  ExerciseResult r = exercise_result(e, file, results);
  EXPECT_TRUE(r.right && r.reached);
  EXPECT_DOUBLE_EQ(r.goal_us, 13);
  EXPECT_EQ(r.version, own::version_of("text"));
  EXPECT_THAT(to_json_line(r), HasSubstr("\"reached\":true"));
  e.built_in = 1.1;
  EXPECT_FALSE(exercise_result(e, file, results).reached);
  results.back().verdict.fault = OwnKernelFault::NotWritten;
  EXPECT_FALSE(exercise_result(e, file, results).right) << "a fast kernel must also be right on the hidden shapes";
}

TEST_F(Kernels, AListOfFilesThatOthersShare) {
  EXPECT_TRUE(kernel_files().empty());
  const std::string shared = testing::TempDir() + "from you.cu";
  std::ofstream(shared) << "// For add(a, b) -> c\n// c = a + b\ncode\n";
  const std::string name = add_kernel_file(shared);
  EXPECT_EQ(name, "from_you.cu");
  EXPECT_EQ(add_kernel_file(shared), "from_you-2.cu") << "never over another file";
  const auto files = kernel_files();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[1].signature, "add(a, b) -> c");
  EXPECT_EQ(files[1].meaning, "c = a + b");
  EXPECT_EQ(own::read_source({"", name, ""}).text, text_of(shared)) << "a name without a path is in the list";
  EXPECT_EQ(new_kernel_name("bias relu1"), "bias_relu1.cu");
  std::filesystem::remove(shared);
}

// ---- the checking process, played by a shell ----
KernelToCheck request() { return {"fc1", "my.cu", {{"first", RunSpec{}}, {"second", RunSpec{}}}}; }

std::vector<ShapeResult> played(const std::string& script, const CheckTimes& times = {5000, 300}) {
  return check_kernel(request(), {}, times, {"sh", "-c", script});
}

std::string line(bool good) {
  ShapeResult r{.shape = "first", .sentence = "said", .verdict = {}, .failure = {}};
  if (!good) r.verdict.fault = OwnKernelFault::WrongValue;
  r.verdict.own_us = 2.5, r.verdict.same_bits = true;
  return to_json_line(r);
}

TEST_F(Kernels, TheCheckFollowsItsProcess) {
  const auto good = played("echo '{}'; echo '" + line(true) + "'; echo '{}'; echo '" + line(true) + "'");
  ASSERT_EQ(good.size(), 2u);
  EXPECT_TRUE(good[1].good() && good[0].verdict.same_bits);
  EXPECT_EQ(good[0].verdict.own_us, 2.5);
  const auto wrong = played("echo '{}'; echo '" + line(false) + "'; sleep 60");
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].verdict.fault, OwnKernelFault::WrongValue);
}

// A slow machine is no endless kernel: what the check does between launches has another limit, and each launch its own.
TEST_F(Kernels, OnlyALaunchMayBeTooLong) {
  const std::string launch = "echo '{}'; sleep 0.2; echo '[]'; ";
  EXPECT_TRUE(played(launch + launch + launch + "sleep 0.6; echo '" + line(true) + "'; echo '" + line(true) + "'", {60'000, 500})[0].good());
  EXPECT_EQ(played(launch + launch + "echo '{}'; sleep 60", {60'000, 500})[0].verdict.fault, OwnKernelFault::Endless);
}

TEST_F(Kernels, AKernelThatCrashesOrNeverEndsIsAResult) {
  const auto endless = played("echo '{}'; sleep 60");
  ASSERT_EQ(endless.size(), 1u);
  EXPECT_EQ(endless[0].verdict.fault, OwnKernelFault::Endless);
  EXPECT_EQ(endless[0].shape, "first");
  const auto crashed = played("echo '{}'; kill -SEGV $$");
  ASSERT_EQ(crashed.size(), 1u);
  EXPECT_EQ(crashed[0].verdict.fault, OwnKernelFault::IllegalAddress);
  EXPECT_THAT(crashed[0].sentence, StartsWith("ended its process"));
  const auto before = played("exit 1");
  ASSERT_EQ(before.size(), 1u);
  EXPECT_FALSE(before[0].good());
  EXPECT_TRUE(before[0].verdict.good()) << "the kernel did nothing wrong";
  EXPECT_THAT(played("sleep 60", {200, 200})[0].failure, HasSubstr("did not begin"));
}

// Each kernel of a sweep has its own process; the first size at which a kernel is wrong ends its check, and the next kernel's goes on.
TEST_F(Kernels, ASweepChecksEachKernelAtItsSizes) {
  lab::LabSpec spec;
  spec.sizes = {16, 32, 64};
  spec.kernels = {{"first.cu", "text"}, {"second.cu", "text"}};
  std::vector<std::string> seen;
  const auto arrived = [&](int done, const std::string& what) {
    seen.push_back(what);
    EXPECT_EQ(done, static_cast<int>(seen.size()));
    return true;
  };
  const std::string good = "echo '{}'; echo '" + line(true) + "'; ";
  const std::string script = "grep -q '\"way\":\"gpu-own\"' $0 && { " + good + "echo '{}'; kill -SEGV $$; }; " + good + good + good;
  const lab::KernelChecks checks = check_lab_kernels(spec, arrived, {"sh", "-c", script});
  using enum lab::Way;
  ASSERT_EQ(checks.size(), 5u);
  EXPECT_EQ(checks.at({GpuOwn, 16}), "");
  EXPECT_THAT(checks.at({GpuOwn, 32}), StartsWith("the kernel is wrong: ended its process"));
  EXPECT_FALSE(checks.contains({GpuOwn, 64}));
  for (const int64_t size : spec.sizes) EXPECT_EQ(checks.at({GpuOwn2, size}), "");
  EXPECT_EQ(seen, (std::vector<std::string>{"first", "GPU, first.cu, 32", "first", "first", "first"})) << "as the process says, or as it was asked";
  const auto stopped = check_lab_kernels(spec, [](int, const std::string&) { return false; }, {"sh", "-c", good + "sleep 60"});
  EXPECT_EQ(stopped.size(), 1u);
}

// The process itself: it reads the kernel from the request, and ends at the first size that it cannot run.
TEST_F(Kernels, TheProcessTakesASweep) {
  if (device_info().cuda) GTEST_SKIP() << "tests on a GPU check real kernels";
  lab::LabSpec spec;
  spec.sizes = {16, 32};
  spec.kernels = {{"first.cu", "text"}};
  const std::string file = testing::TempDir() + "sweep-request.json";
  std::ofstream(file) << nlohmann::json{{"lab", to_json(spec)}, {"way", "gpu-own"}};
  testing::internal::CaptureStdout();
  EXPECT_EQ(check_inside(file), 1);
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_FALSE(shape_result(said).good());
  EXPECT_EQ(shape_result(said).shape, "GPU, first.cu, 16");
  std::filesystem::remove(file);
}

TEST_F(Kernels, ACheckCanBeStopped) {
  int seen = 0;
  const auto results = check_kernel(request(), [&](const ShapeResult&) { ++seen; return false; }, {5000, 300}, {"sh", "-c", "echo '" + line(true) + "'; sleep 60"});
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(results.size(), 1u);
}

}  // namespace
}  // namespace ws::app
