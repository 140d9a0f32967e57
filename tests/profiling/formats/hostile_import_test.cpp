// What another program's file may hold at its worst: refused with a sentence, or read without what cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/formats/trace_formats.h"
#include "profiling/formats/convert.h"
#include "profiling/formats/scalars.h"

namespace ws::prof {
namespace {

RunData parse(const std::string& text) { return parse_chrome(text); }

TEST(HostileChrome, IsRefusedWithASentence) {
  const std::string deep(1'000'000, '[');
  for (const std::string& text :
       {deep, std::string("{\"traceEvents\": ") + deep, std::string(500'000, '{'), std::string("{\"a\":1}"),
        std::string("{"), std::string(), std::string("\xff\xfe\x00", 3)}) {
    EXPECT_THROW(parse(text), Failure);
  }
}

TEST(HostileChrome, ImpossibleEventsAreCountedAndLeftOut) {
  const RunData run = parse(R"py({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 10, "dur": -5},
    {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 1e300, "dur": 5},
    {"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "tid": 7, "ts": 10, "dur": 1e300},
    {"ph": "X", "cat": "kernel", "name": "d", "pid": 0, "tid": 7, "ts": 10},
    {"ph": "X", "cat": "kernel", "name": "e", "pid": {"x": [1, [2, [3]]]}, "tid": null, "ts": 11, "dur": 1, "args": {"grid": [1, 2, 3, 4, 5], "correlation": -7, "stream": 99999999999}},
    {"ph": "E", "name": "f", "pid": 0, "tid": 7, "ts": 3}, {"ph": "B", "name": "g", "pid": 0, "tid": 7, "ts": 3},
    {"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "ts": 1}, {"ph": "f", "id": 1, "cat": "ac2g", "name": "ac2g", "ts": 0}, {"ph": "s", "id": 1, "ts": 2},
    {"ph": "i", "name": "[memory]", "ts": 1, "args": {"Bytes": -9223372036854775808, "Addr": -1}}]})py");
  EXPECT_EQ(kernel_table(run.trace, -kAlways, kAlways).size(), 2u);  // c is cut, e is whole
  EXPECT_GE(run.problems.size(), 5u);
}

// Sums and differences of what a file says must not leave the range of the numbers; sanitizers look at this one.
TEST(HostileChrome, TimesAndSizesOutOfRange) {
  const RunData run = parse(R"py({"traceEvents": [
    {"ph": "B", "name": "a", "pid": 0, "tid": 9, "ts": -3e15}, {"ph": "E", "name": "a", "pid": 0, "tid": 9, "ts": 9e15},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 300000000000, "dur": 1},
    {"ph": "i", "name": "[memory]", "ts": -9e15, "args": {"Bytes": 9223372036854775807, "Addr": 1}},
    {"ph": "i", "name": "[memory]", "ts": 1, "args": {"Bytes": 9223372036854775807, "Addr": 2}},
    {"ph": "i", "name": "[memory]", "ts": 2, "args": {"Bytes": 9223372036854775807, "Addr": 3}},
    {"ph": "C", "name": "c", "pid": 1, "ts": -9e15, "args": {"value": 1e308}},
    {"ph": "C", "name": "pool used", "pid": 1, "ts": 1, "args": {"value": 1e308}}]})py");
  EXPECT_EQ(run.trace.memory().size(), 2u);
  EXPECT_THAT(run.problems, testing::Contains(testing::HasSubstr("with a time out of range")));
  const std::string path = testing::TempDir() + "out_of_range_" + std::to_string(getpid()) + ".json";
  export_run(run, path);
  EXPECT_EQ(import_run(path).trace.memory().size(), 2u);
  EXPECT_FALSE(to_text(run_stats(run)).empty());
  std::filesystem::remove(path);
}

TEST(HostileChrome, AnEventOfAnyLength) {
  std::string text = R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {)";
  for (int i = 0; i < 200'000; ++i) text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\": 1";
  EXPECT_EQ(kernel_table(parse(text + "}}]}").trace, -kAlways, kAlways).size(), 1u);
}

// Sums of two times that far apart would leave the range of the numbers. Each clock may count from 1970.
TEST(HostileChrome, TimesFarFromTheBegin) {
  const RunData run = parse(R"py({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": -4400000000000000, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 4400000000000000, "dur": 1},
    {"ph": "i", "name": "[memory]", "ts": 1700000000000000, "args": {"Bytes": 8, "Addr": 1}},
    {"ph": "C", "name": "c", "pid": 1, "ts": 4400000000000000, "args": {"value": 1}},
    {"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "tid": 7, "ts": -3700000000000000, "dur": 1}]})py");
  EXPECT_EQ(run.problems, std::vector<std::string>{"3 events more than 36 years from the start of the run."});
  EXPECT_EQ(run.trace.span_count(), 2u);
  for (const char* ts : {"0", "1700000000000000"}) {
    const std::string at = std::string("\"ts\": ") + ts;
    const RunData near = parse(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "tid": 7, "dur": 1, )" + at +
                               R"(}, {"ph": "C", "name": "c", "args": {"value": 1}, )" + at + "}]}");
    EXPECT_TRUE(near.problems.empty());
    EXPECT_EQ(near.trace.counters().at(0).points.at(0).time, 0);
  }
}

std::string refusal_below_a_megabyte(const std::string& text) {
  set_memory_limit(1 << 20);
  std::string said;
  try {
    parse(text);
  } catch (const Failure& failure) {
    said = failure.what();
  }
  set_memory_limit(0);
  return said;
}

TEST(HostileChrome, StopsAtItsBudget) {
  std::string spans = "{\"traceEvents\": [{}", ops = spans, sources = spans;
  for (int i = 0; i < 50'000; ++i) spans += R"(,{"ph": "X", "name": "a", "ts": 1, "dur": 1})";
  const std::string text = std::string(20'000, 'x');
  for (int i = 0; i < 100; ++i) {
    const std::string name = "\"" + text + std::to_string(i) + "\"";
    ops += R"(,{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {"op": )" + name + "}}";
    sources += R"(,{"ph": "i", "name": "[memory]", "ts": 1, "args": {"Bytes": 8, "source": )" + name + "}}";
  }
  for (const std::string& events : {spans, ops, sources})
    EXPECT_THAT(refusal_below_a_megabyte(events + "]}"), testing::HasSubstr("--limit allows more"));
}

TEST(HostileChrome, ALongNameIsCut) {
  const RunData run = parse(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "name": ")" +
                            std::string(1'000'000, 'x') + "\"}]}");
  EXPECT_EQ(kernel_table(run.trace, -kAlways, kAlways).at(0).key.size(), size_t{1} << 16);
}

TEST(HostileCsv, BadLinesAreCounted) {
  const RunData run = parse_scalars_csv("Wall time,Step,Value\n1,2,3\nx,y,z\n,,\n1,1e30,0\n4,5,nan\n\n");
  EXPECT_EQ(run.metrics.size(), 2u);
  EXPECT_EQ(run.problems.at(0), "3 lines are not three numbers.");
  EXPECT_THROW(parse_scalars_csv("a,b,c\n1,2,3\n"), Failure);
}

}  // namespace
}  // namespace ws::prof
