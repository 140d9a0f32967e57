// What torch.compile writes above each launch in the code that it generates: the ops that a kernel was made from.
#include "profiling/recording/generated_code.h"
#include "tests/support/own_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ws::prof {
namespace {

constexpr const char* kGenerated = R"(# AOT ID: ['0_forward']
import torch
from torch._inductor.async_compile import AsyncCompile
# kernel path: /tmp/torchinductor_me/ab/cab.py
# Topologically Sorted Source Nodes: [x, add], Original ATen: [aten.relu, aten.add]
# Source node to ATen node mapping:
#   x => relu
triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', '''...''')
def call(args):
    with torch.cuda._DeviceGuard(0):
        # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.t, aten.addmm]
        extern_kernels.mm(arg0_1, arg1_1, out=buf0)
        # Topologically Sorted Source Nodes: [x, add], Original ATen: [aten.relu, aten.add]
        stream0 = get_raw_stream(0)
        triton_poi_fused_add_relu_0.run(buf0, arg2_1, 4096, stream=stream0)
        triton_poi_fused_1.run(buf0, 4096, stream=stream0)
)";

class GeneratedCode : public ::testing::Test {
 protected:
  GeneratedCode() { std::ofstream(path()) << kGenerated; }
  ~GeneratedCode() override { std::filesystem::remove(path()); }
  static std::string path() { return test::own_file("generated_code.py"); }
};

TEST_F(GeneratedCode, IsKnownByItsFunctionAndFile) {
  EXPECT_TRUE(is_generated("call", path()));
  EXPECT_TRUE(is_generated("Runner.call", path()));
  EXPECT_TRUE(is_generated("partition_0", path()));
  EXPECT_FALSE(is_generated("forward", path()));
  EXPECT_FALSE(is_generated("call", path() + ".gone.py"));
  EXPECT_FALSE(is_generated("call", "<frozen importlib>"));
}

TEST_F(GeneratedCode, ALaunchHasTheOpsOfTheCommentAboveIt) {
  EXPECT_EQ(generated_ops(path(), 12), "aten.t + aten.addmm");
  EXPECT_EQ(generated_ops(path(), 15), "aten.relu + aten.add");
  EXPECT_EQ(generated_ops(path(), 16), "") << "the comment above belongs to another launch";
  EXPECT_EQ(generated_ops(path() + ".gone", 12), "");
}

TEST(OpsOfComment, StrangeCommentsSayNothing) {
  EXPECT_EQ(ops_of_comment("# Source Nodes: [add], Original ATen: [aten.add]"), "aten.add") << "PyTorch 2.0";
  EXPECT_EQ(ops_of_comment("# Original ATen: [aten.add"), "");
  EXPECT_EQ(ops_of_comment("# Original ATen: []"), "");
  std::string many = "Original ATen: [";
  for (int i = 0; i < 500; ++i) many += "aten.op" + std::to_string(i) + ", ";
  const std::string ops = ops_of_comment(many + "aten.last]");
  EXPECT_LT(ops.size(), 200u);
  EXPECT_TRUE(ops.ends_with(" + …"));
  EXPECT_LE(ops_of_comment("Original ATen: [" + std::string(5000, 'x') + "]").size(), 200u);
}

}  // namespace
}  // namespace ws::prof
