// Memory snapshots of PyTorch: pickles, of which nothing is executed.
#include "profiling/formats/trace_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "profiling/analysis/memory_history.h"
#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/formats/convert.h"
#include "profiling/formats/pickle_reader.h"
#include "profiling/trace/code_places.h"
#include "tests/support/failure_text.h"
#include "tests/support/own_file.h"

namespace ws::prof {
namespace {

using namespace std::string_literals;

std::string snapshot(const std::string& name) { return WARPSIGHT_SOURCE_DIR "/tests/fuzz/corpus/pickle/" + name; }

std::string refusal(const std::string& bytes) { return test::failure_text([&] { Pickle(bytes, "a.pickle"); }); }

TEST(Pickle, PlainDataIsRead) {
  // {'a': [1, -2, 2.5, None, True], 'b': ('x', 70000)} as protocol 4 writes it
  const std::string bytes =
      "\x80\x04\x95\x34\0\0\0\0\0\0\0}\x94(\x8c\x01"s + "a\x94]\x94(K\x01J\xfe\xff\xff\xffG@\x04\0\0\0\0\0\0N\x88"s +
      "e\x8c\x01"s + "b\x94\x8c\x01x\x94J\x70\x11\x01\0\x86\x94u."s;
  const Pickle pickle(bytes, "a.pickle");
  const auto& list = pickle.items(pickle.at(pickle.root(), "a"));
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(pickle.number(list[0]), 1);
  EXPECT_EQ(pickle.number(list[1]), -2);
  EXPECT_EQ(pickle.number(list[2]), 2);
  EXPECT_EQ(pickle.kind(list[3]), Pickle::Kind::None);
  EXPECT_EQ(pickle.number(list[4]), 1);
  const auto& pair = pickle.items(pickle.at(pickle.root(), "b"));
  ASSERT_EQ(pair.size(), 2u);
  EXPECT_EQ(pickle.text(pair[0]), "x");
  EXPECT_EQ(pickle.number(pair[1]), 70000);
  EXPECT_EQ(pickle.kind(pickle.at(pickle.root(), "c")), Pickle::Kind::None);
  EXPECT_TRUE(pickle.items(pickle.root()).empty()) << "a dictionary is no list";
}

TEST(Pickle, WhatWouldRunCodeIsRefused) {
  for (const char* bytes : {"cos\nsystem\n.", "(S'ls'\ni", "\x80\x02}\x81.", "\x80\x04\x8c\x02os\x8c\x06system\x93.", "}R.", "P1\n."})
    EXPECT_THAT(refusal(bytes), ::testing::AnyOf(::testing::HasSubstr("run code"), ::testing::HasSubstr("does not need"))) << bytes;
  EXPECT_THAT(refusal("cos\nsystem\n."), ::testing::HasSubstr("run code"));
}

TEST(Pickle, DamagedOnesAreRefused) {
  for (const std::string& bytes : {""s, "\x80"s, "K"s, "K\x01"s, "."s, "a."s, "}K\x01s."s, "]}u."s, "(K\x01u."s, "h\x05."s,
                                   "\x8e\xff\xff\xff\xff\xff\xff\xff\xff."s, "X\xff\xff\xff\xff" "a."s, "(\x85."s})
    EXPECT_NE(refusal(bytes), "") << bytes;
  EXPECT_EQ(refusal("]\x94h\0a."s), "") << "a list inside of itself";
}

TEST(Pickle, TakesNoMoreMemoryThanItMay) {
  set_memory_limit(1 << 20);
  EXPECT_THAT(refusal(std::string(1 << 20, ']')), ::testing::HasSubstr("memory"));
  set_memory_limit(0);
}

TEST(MemorySnapshot, BlocksHaveTheLineThatTookThem) {
  for (const char* name : {"snapshot2.pickle", "snapshot4.pickle", "snapshot5.pickle"}) {
    const RunData run = import_run(snapshot(name));
    std::map<std::shared_ptr<const CodeStack>, int> lines;
    uint64_t live = 0, most = 0;
    for (const MemoryEvent& event : run.trace.memory()) {
      EXPECT_GE(event.time, 0);
      if (event.kind == MemoryAction::Allocate) live += event.bytes, ++lines[run.trace.ops[event.op].stack];
      if (event.kind == MemoryAction::Free) live -= event.bytes;
      most = std::max(most, live);
    }
    EXPECT_EQ(live, 3072u) << "what the snapshot says is active";
    EXPECT_EQ(most, 1024u + 2048 + 4096);
    std::map<std::string, int> stacks;
    for (const auto& [stack, count] : lines) {
      std::string text;
      for (const CodeFrame& frame : stack ? stack->frames : std::vector<CodeFrame>{}) text += "; " + place_text(frame);
      stacks[text + (stack ? " own " + std::to_string(stack->own) : "")] += count;
    }
    EXPECT_EQ(stacks, (std::map<std::string, int>{
                          {"", 1},
                          {"; train.py:41 in main; net.py:12 in forward; "
                           "/usr/lib/python3/dist-packages/torch/nn/linear.py:114 in forward own 1", 2},
                          {"; train.py:9 in main own 0", 1}}));
    EXPECT_EQ(run.trace.memory_sources, std::vector<std::string>{"PyTorch"});
    ASSERT_EQ(run.problems.size(), 1u);
    EXPECT_THAT(run.problems[0], ::testing::HasSubstr("1 allocation failed"));
    EXPECT_EQ(run.summary.origin, "PyTorch memory snapshot");
  }
}

TEST(MemorySnapshot, OneThatRunsCodeIsRefusedAndRunsNone) {
  EXPECT_THROW(import_run(snapshot("runs_code.pickle")), Failure);
  EXPECT_FALSE(std::filesystem::exists("harmed"));
}

TEST(MemorySnapshot, OtherPicklesAreRefusedWithASentence) {
  try {
    parse_memory_snapshot("}.", "other.pickle");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), ::testing::HasSubstr("no memory snapshot of PyTorch"));
  }
}

TEST(MemorySnapshot, TimesOfADamagedFileStayInRange) {
  const RunData run = import_run(snapshot("far_times.pickle"));
  EXPECT_FALSE(run.trace.memory().empty());
  for (const MemoryEvent& event : run.trace.memory()) EXPECT_GE(event.time, 0);
}

TEST(MemorySnapshot, BecomesARunFile) {
  const std::string file = test::own_file("snapshot.wsrun");
  convert(snapshot("snapshot4.pickle"), file);
  const RunData run = import_run(file);
  EXPECT_EQ(run.trace.memory().size(), import_run(snapshot("snapshot4.pickle")).trace.memory().size());
  EXPECT_EQ(run.trace.ops.at(run.trace.memory().back().op).name, "forward");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace ws::prof
