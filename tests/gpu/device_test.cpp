// A machine without a GPU gets a sentence.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/cuda/executor/cuda_executor.h"
#include "engine/cuda/executor/device_reasons.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/machine_code.h"
#include "engine/devices/devices.h"
#include "engine/devices/kernel_code.h"

namespace ws {
namespace {

TEST(Device, ReportsWhatItIsOrWhyThereIsNone) {
  const DeviceInfo info = cuda::query_device();
  if (info.cuda) {
    EXPECT_FALSE(info.name.empty());
    EXPECT_GT(info.multiprocessors, 0);
    EXPECT_GT(info.memory_bytes, 0);
    EXPECT_TRUE(info.why_not.empty());
    EXPECT_EQ(cuda::ask_for_code(), cudaSuccess);
    return;
  }
  EXPECT_GT(info.why_not.size(), 10u);
  EXPECT_EQ(info.why_not.back(), '.');
  RunSpec spec;
  spec.exec.device = Device::Cuda;
  EXPECT_THROW(make_executor(spec), Failure);
}

TEST(Device, AGpuOfAnotherGenerationIsNotTakenForOneThatTheBuildHasCodeFor) {
  EXPECT_FALSE(cuda::made_for(3, 5));
  EXPECT_FALSE(cuda::made_for(99, 0));
  if (!cuda::query_device().cuda) {
    EXPECT_NE(cuda::ask_for_code(), cudaSuccess);
  }
}

TEST(Device, TheBuildKnowsItsMachineCode) {
  const char* const packages = "80-real,86-real,89-real,90";
  for (const auto& [major, minor] : {std::pair{8, 0}, {8, 6}, {8, 7}, {8, 9}, {9, 0}}) EXPECT_TRUE(cuda::has_machine_code(packages, major, minor)) << major << minor;
  for (const auto& [major, minor] : {std::pair{7, 5}, {10, 0}, {12, 0}}) EXPECT_FALSE(cuda::has_machine_code(packages, major, minor)) << major << minor;
  EXPECT_TRUE(cuda::has_ptx(packages, 10, 0));
  EXPECT_TRUE(cuda::has_ptx(packages, 9, 0));
  EXPECT_FALSE(cuda::has_ptx(packages, 8, 9));
  EXPECT_FALSE(cuda::has_machine_code("90-virtual", 9, 0)) << "the driver compiles PTX first";
  EXPECT_TRUE(cuda::has_ptx("90-virtual", 9, 0));
  EXPECT_FALSE(cuda::has_machine_code("86-real", 8, 0));
  EXPECT_TRUE(cuda::has_machine_code("90a-real", 9, 0));
  EXPECT_FALSE(cuda::has_ptx("90a", 10, 0));
  EXPECT_FALSE(cuda::has_machine_code("", 9, 0));
  EXPECT_FALSE(cuda::has_ptx("", 9, 0)) << "a build for the GPU of a machine that has none";
}

TEST(Device, ADriverThatMustCompileIsKnown) {
  EXPECT_TRUE(driver_compiles_for("99.0"));
  EXPECT_EQ(driver_compiles_for("9.0"), !cuda::made_for(9, 0));
  RunSpec spec;
  spec.exec.device = Device::Cpu;
  EXPECT_EQ(compile_notice(spec), "");
}

// A GPU that is newer than every build of ours.
DeviceInfo newer_gpu() {
  DeviceInfo device;
  device.cuda = true;
  device.name = "A newer GPU", device.driver = "999.1", device.compute = "99.0";
  return device;
}

class CompileNotice : public testing::Test {
 protected:
  CompileNotice() { setenv("XDG_CACHE_HOME", folder_.c_str(), 1); }
  ~CompileNotice() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("compile_notice_" + std::to_string(getpid()));
};

TEST_F(CompileNotice, ComesOnceForEachModeAndPrecision) {
  const DeviceInfo device = newer_gpu();
  RunSpec spec;
  EXPECT_THAT(compile_notice(spec, device), testing::HasSubstr("compute capability 99.0"));
  EXPECT_NE(compile_notice(spec, device), "") << "until a step is made";
  remember_compiled(spec, device);
  EXPECT_EQ(compile_notice(spec, device), "");
  RunSpec other = spec;
  other.exec.launch = spec.exec.launch == Launch::Graph ? Launch::Eager : Launch::Graph;
  EXPECT_NE(compile_notice(other, device), "") << "its kernels are others";
  remember_compiled(other, device);
  remember_compiled(other, device);
  EXPECT_EQ(compile_notice(other, device), "");
  std::ifstream kept(folder_ / "warpsight/compiled_kernels");
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(kept), {}, '\n'), 2);
}

TEST_F(CompileNotice, ComesAgainWithAnotherDriverOrGpu) {
  DeviceInfo device = newer_gpu();
  const RunSpec spec;
  remember_compiled(spec, device);
  device.driver = "999.2";
  EXPECT_NE(compile_notice(spec, device), "");
  device = newer_gpu();
  device.name = "Another newer GPU";
  EXPECT_NE(compile_notice(spec, device), "");
}

TEST_F(CompileNotice, IsNotForTheCpuNorForAGpuWithMachineCode) {
  RunSpec spec;
  spec.exec.device = Device::Cpu;
  EXPECT_EQ(compile_notice(spec, newer_gpu()), "");
  spec.exec.device = Device::Auto;
  EXPECT_EQ(compile_notice(spec, DeviceInfo{}), "");
  DeviceInfo known = newer_gpu();
  known.compute = "9.0";
  EXPECT_EQ(compile_notice(spec, known).empty(), cuda::made_for(9, 0));
}

TEST_F(CompileNotice, ComesAgainWhereNothingCanBeKept) {
  std::ofstream(folder_) << "a file where the cache's folder should be";
  remember_compiled({}, newer_gpu());
  EXPECT_NE(compile_notice({}, newer_gpu()), "");
}

// What the driver answers, and what a person reads then.
TEST(Device, EveryReasonForHavingNoGpuHasItsSentence) {
  struct Answer {
    cudaError_t code;
    int devices, driver;
    std::string want;
  };
  const Answer answers[] = {
      {cudaErrorInsufficientDriver, 0, 0, "No NVIDIA driver is installed."},
      {cudaErrorNoDevice, 0, 0, "No NVIDIA driver is installed."},
      {cudaErrorInsufficientDriver, 0, 12020,
       "The NVIDIA driver supports CUDA 12.2 only, this program needs 13.1: install a newer driver."},
      {cudaErrorNoDevice, 0, 13000, "No NVIDIA GPU was found."},
      {cudaSuccess, 0, 13000, "No NVIDIA GPU was found."},
      {cudaErrorSystemNotReady, 0, 13000,
       std::string("The NVIDIA driver does not answer: ") + cudaGetErrorString(cudaErrorSystemNotReady) + "."},
      {cudaErrorDevicesUnavailable, 1, 13000,
       std::string("The NVIDIA driver does not answer: ") + cudaGetErrorString(cudaErrorDevicesUnavailable) + "."},
  };
  for (const Answer& a : answers)
    EXPECT_EQ(cuda::why_no_device(a.code, a.devices, a.driver, 13010), a.want) << cudaGetErrorName(a.code);
}

TEST(Device, AGpuThatTheBuildHasNoCodeForIsRefusedBeforeTheFirstLaunch) {
  int asked = 0;
  const auto answers = [&asked](cudaError_t code) { return [&asked, code] { ++asked; return code; }; };
  const auto why = [&](int major, int minor, bool made_for, cudaError_t code) {
    return cuda::why_no_code({"Card", major, minor}, made_for, answers(code));
  };
  EXPECT_EQ(why(6, 1, false, cudaSuccess), "Card (compute capability 6.1) is too old: 7.0 or newer is needed.");
  EXPECT_EQ(why(9, 0, true, cudaErrorUnknown), "");
  EXPECT_EQ(asked, 0) << "the answer would cost a context";
  EXPECT_EQ(why(10, 0, false, cudaSuccess), "") << "the driver compiles what is there for it";
  for (const cudaError_t code : {cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion, cudaErrorInvalidPtx})
    EXPECT_EQ(why(7, 5, false, code),
              "This build has no code for Card (compute capability 7.5): build it again on this machine.");
  EXPECT_EQ(why(12, 0, false, cudaErrorDevicesUnavailable),
            std::string("Card (compute capability 12.0) cannot be used: ") +
                cudaGetErrorString(cudaErrorDevicesUnavailable) + ".");
  EXPECT_EQ(asked, 5);
}

}  // namespace
}  // namespace ws
