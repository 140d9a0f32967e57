#include "profiling/recording/command_name.h"

#include <gtest/gtest.h>

namespace ws::prof {
namespace {

TEST(NameOfCommand, IsWhatPythonRuns) {
  EXPECT_EQ(name_of_command({"/usr/bin/python3", "-u", "my code/train.py", "--epochs", "2"}), "train.py");
  EXPECT_EQ(name_of_command({"python3.12", "-m", "torch.distributed.run", "a.py"}), "a.py");
  EXPECT_EQ(name_of_command({"torchrun", "--nproc-per-node", "2", "my code/ddp.py", "--data", "x.py"}), "ddp.py");
  EXPECT_EQ(name_of_command({"accelerate", "launch", "--num_processes", "2", "ddp.py"}), "ddp.py");
  EXPECT_EQ(name_of_command({"uv", "run", "--with", "torch", "train.py"}), "train.py");
  EXPECT_EQ(name_of_command({"mpirun", "-n", "2", "./solver"}), "mpirun");
  EXPECT_EQ(name_of_command({"python3", "-c", "print(1)"}), "python3");
  EXPECT_EQ(name_of_command({"python3", "-X", "opt", "-W", "error", "a.py"}), "a.py");
  EXPECT_EQ(name_of_command({"python3", "-Xdev", "-m", "tool"}), "tool");
  EXPECT_EQ(name_of_command({"/opt/bin/solver", "input.py"}), "solver");
}

}  // namespace
}  // namespace ws::prof
