#include "profiling/recording/command_words.h"

#include <gtest/gtest.h>

#include "profiling/base/failure.h"

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

// A run file and a page do not hand out the keys and passwords of the command that was recorded.
using Words = std::vector<std::string>;

TEST(SecretWords, AreMasked) {
  const std::string m = kMask;
  const std::vector<std::pair<Words, Words>> cases{
      {{"python3", "t.py", "--api-key", "abc", "--lr", "0.1"}, {"python3", "t.py", "--api-key", m, "--lr", "0.1"}},
      {{"t", "--password=hunter2"}, {"t", "--password=" + m}},
      {{"t", "--hub_token", "abcdefgh12345678"}, {"t", "--hub_token", m}},
      {{"env", "WANDB_API_KEY=0123abcd", "t"}, {"env", "WANDB_API_KEY=" + m, "t"}},
      {{"t", "wandb.api_key=0123abcd"}, {"t", "wandb.api_key=" + m}},
      {{"t", "s3.secret_access_key=x"}, {"t", "s3.secret_access_key=" + m}},
      {{"t", "https://me:pass@host/data"}, {"t", "https://me:" + m + "@host/data"}},
      {{"t", "-c", "login('hf_AbCdEfGh01234567')"}, {"t", "-c", "login('" + m + "')"}},
      {{"t", "sk-proj-abcdef0123456789", "AKIAABCDEFGH0123456789"}, {"t", m, m}},
      {{"t", "Authorization: eyJhbGciOi1.eyJzdWIiOiIx.c2ln"}, {"t", "Authorization: " + m}}};
  for (const auto& [command, kept] : cases) EXPECT_EQ(without_secrets(command), kept);
}

// Usual options of trainings stay.
TEST(SecretWords, OtherWordsStay) {
  for (const Words& command : {Words{"t", "--max-tokens", "512"}, Words{"t", "--pad-token", "<pad>"}, Words{"t", "--eos_token_id=2"},
                               Words{"t", "--tokenizer", "gpt2-medium-0123456789"}, Words{"t", "--password-file", "/run/x"}, Words{"t", "--key", "value"},
                               Words{"t", "--sk-learn", "x"}, Words{"t", "https://host:8080/a@b"}, Words{"t", "data/hf_cache_of_0123456789"},
                               Words{"t", "--secret"}, Words{"t", "--token", "--lr"}, Words{"t", "key=value"}})
    EXPECT_EQ(without_secrets(command), command) << command.back();
}

TEST(SecretWords, AMaskedCommandIsNotRunAgain) {
  EXPECT_THROW(refuse_masked(without_secrets({"t", "--password", "x"})), Failure);
  refuse_masked({"t", "--lr", "0.1"});
}

}  // namespace
}  // namespace ws::prof
