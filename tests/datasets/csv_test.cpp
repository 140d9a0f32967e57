#include "datasets/csv.h"

#include <malloc.h>

#include "profiling/base/budget.h"
#include "tests/datasets/bad_input.h"
#include "tests/support/failure_text.h"
#include "tests/support/machine.h"

namespace ws::data {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

CsvTable parse(const std::string& text) {
  PackedReader reader("table.csv", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return read_csv(reader);
}

Dataset set_of(const std::string& text, const std::string& label = "") { return to_dataset(parse(text), label); }

TEST(Csv, ReadsQuotesBlankLinesAndEitherLineEnd) {
  const CsvTable table = parse("\xEF\xBB\xBF\"a, b\",c\r\n\"say \"\"hi\"\"\", 2 \r\n\n\"two\nlines\",4");
  EXPECT_THAT(table.header, ElementsAre("a, b", "c"));
  EXPECT_THAT(table.fields, ElementsAre("say \"hi\"", "2", "two\nlines", "4"));
  EXPECT_THAT(table.lines, ElementsAre(2, 4));
}

TEST(Csv, FindsTheSeparator) {
  EXPECT_THAT(parse("a;b;c\n1;2;3\n").fields, ElementsAre("1", "2", "3"));
  EXPECT_THAT(parse("a\tb\n1\t2\n").fields, ElementsAre("1", "2"));
  EXPECT_THAT(parse("a\tb\n1\t\n").fields, ElementsAre("1", ""));
}

TEST(Csv, NamesTheLineOfARaggedRow) {
  EXPECT_THAT(failure_of([] { parse("a,b\n1,2\n1,2,3\n"); }),
              AllOf(HasSubstr("table.csv: line 3 (at byte 8)"), HasSubstr("3 fields, but the header names 2")));
  EXPECT_THAT(failure_of([] { parse("a,b\n1\n"); }), HasSubstr("line 2"));
}

TEST(Csv, RefusesBrokenHeadersAndQuotes) {
  EXPECT_THAT(failure_of([] { parse("\n\n"); }), HasSubstr("is empty"));
  EXPECT_THAT(failure_of([] { parse("a,b\n"); }), HasSubstr("no rows"));
  EXPECT_THAT(failure_of([] { parse("a,a\n1,2\n"); }), HasSubstr("two columns are named a"));
  EXPECT_THAT(failure_of([] { parse("a,\n1,2\n"); }), HasSubstr("column 2 has no name"));
  EXPECT_THAT(failure_of([] { parse("a\n1\n"); }), HasSubstr("only one column"));
  EXPECT_THAT(failure_of([] { parse("a,b\n\"1,2\n"); }), AllOf(HasSubstr("line 2"), HasSubstr("no closing quote")));
  EXPECT_THAT(failure_of([] { parse("a,b\n\"1\"x,2\n"); }), HasSubstr("behind a closing quote"));
}

TEST(Csv, WordsInTheLabelColumnAreClasses) {
  const Dataset set = set_of("kind,x,y\ncat,1,2\ndog,3,4\nant,5,6\ncat,7,8\n", "kind");
  EXPECT_EQ(set.task, Task::Classification);
  EXPECT_THAT(set.class_names, ElementsAre("ant", "cat", "dog"));
  EXPECT_THAT(set.train.labels, ElementsAre(1, 2, 0, 1));
  EXPECT_THAT(set.feature_names, ElementsAre("x", "y"));
  EXPECT_THAT(set.train.x, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(Csv, FewWholeNumbersAreClassesInOrderOfSize) {
  const Dataset set = set_of("x,k\n1,10\n2,9\n3,-1\n4,9.0\n");
  EXPECT_EQ(set.task, Task::Classification);
  EXPECT_THAT(set.class_names, ElementsAre("-1", "9", "10"));
  EXPECT_THAT(set.train.labels, ElementsAre(2, 1, 0, 1));
}

TEST(Csv, OtherNumbersAreTargets) {
  const Dataset set = set_of("x,y\n1,0.5\n2,1e3\n");
  EXPECT_EQ(set.task, Task::Regression);
  EXPECT_EQ(set.outputs, 1);
  EXPECT_THAT(set.train.targets, ElementsAre(0.5f, 1000.0f));
  std::string many = "x,y\n";
  for (int i = 0; i < 30; ++i) many += "1," + std::to_string(i) + "\n";
  EXPECT_EQ(set_of(many).task, Task::Regression);
}

TEST(Csv, AFeatureColumnOfWordsBecomesOneFeatureAWord) {
  const Dataset set = set_of("x,colour,k\n1,red,0\n2,blue,1\n");
  EXPECT_THAT(set.feature_names, ElementsAre("x", "colour=blue", "colour=red"));
  EXPECT_THAT(set.train.x, ElementsAre(1, 0, 1, 2, 1, 0));
}

TEST(Csv, ReportsMissingValuesByRow) {
  EXPECT_THAT(failure_of([] { set_of("x,y,k\n1,,0\n2,3,1\nNA,4,?\n"); }),
              HasSubstr("3 values are missing: line 2 (y), line 4 (x), line 4 (k)"));
  std::string many = "x,k\n";
  for (int i = 0; i < 9; ++i) many += ",1\n";
  EXPECT_THAT(failure_of([&] { set_of(many); }), HasSubstr("9 values are missing: line 2 (x)"));
  EXPECT_THAT(failure_of([&] { set_of(many); }), HasSubstr("and 4 more"));
}

TEST(Csv, RefusesColumnsThatMakeNoSense) {
  EXPECT_THAT(failure_of([] { set_of("x,k\n1,a\noops,b\n"); }),
              HasSubstr("line 3: \"oops\" in column x is not a number"));
  EXPECT_THAT(failure_of([] { set_of("x,k\n1,a\ninf,b\n"); }), HasSubstr("is not a number"));
  EXPECT_THAT(failure_of([] { set_of("x,k\n1,a\n1e99,b\n"); }), HasSubstr("is not a number"));
  EXPECT_THAT(failure_of([] { set_of("x,k\n1,a\n", "price"); }),
              HasSubstr("has no column price; its columns are x, k"));
  EXPECT_THAT(failure_of([] { set_of("x,k\n1,a\n2,a\n"); }), HasSubstr("only the class a"));
  std::string names = "x,k\n", words = "word,k\n";
  for (int i = 0; i < 60; ++i) {
    names += "1,name" + std::to_string(i) + "\n";
    words += "word" + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  }
  EXPECT_THAT(failure_of([&] { set_of(names); }), HasSubstr("these are not classes"));
  EXPECT_THAT(failure_of([&] { set_of(words); }), HasSubstr("60 different words; at most 50"));
}

TEST(Csv, LoadsSplitsAndScalesAFile) {
  const TempFolder folder;
  std::string text = "x,same,y\n";
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + ",5," + std::to_string(3 * i + 0.5) + "\n";
  const DataSpec spec{.name = "csv", .path = folder.write("line.csv.gz", gzipped(text)), .label_column = "y"};
  const Dataset set = load(spec);
  EXPECT_EQ(set.train.rows, 80);
  EXPECT_EQ(set.test.rows, 20);
  double sum = 0, squares = 0;
  for (size_t r = 0; r < 80; ++r) {
    sum += set.train.x[2 * r];
    squares += set.train.x[2 * r] * set.train.x[2 * r];
    EXPECT_EQ(set.train.x[2 * r + 1], 0.0f) << "a constant column says nothing";
    EXPECT_NEAR(set.train.targets[r], set.train.x[2 * r], 1e-5) << "both columns have the same shape";
  }
  EXPECT_NEAR(sum / 80, 0, 1e-5);
  EXPECT_NEAR(squares / 80, 1, 1e-5);
}

TEST(Csv, RefusesALineOfAnyLength) {
  EXPECT_THAT(failure_of([] { parse(std::string(1'000'000, ',')); }),
              HasSubstr("line 1 (at byte 0): more than 100 000 fields"));
}

// Memory of this process now ("VmRSS:") or at most since `forget_most()` ("VmHWM:").
int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (int64_t kib = 0; word == key && status >> kib) return kib * 1024;
  return 0;
}

bool forget_most() { return bool(std::ofstream("/proc/self/clear_refs") << 5 << std::flush); }

std::string refusal_of(const std::string& path) {
  return test::failure_text([&] { load_csv({.name = "csv", .path = path}); });
}

// From ever shorter files the first that is read takes as much memory as it may, and not more; nor do the refused ones.
TEST(Csv, TakesNoMoreThanTheMemoryLimit) {
  if (!test::kMemoryCounts || !forget_most()) GTEST_SKIP() << "The memory of this process says nothing here.";
  constexpr int64_t kLimit = int64_t{32} << 20, kOther = int64_t{4} << 20;
  const TempFolder folder;
  for (const std::string lines : {"1,2\n2,1\n", "a,2\nb,1\n", "1.25,2.5,a long word,1\r\n\"1\",2,b,2\r\n"}) {
    std::string problem = "not tried";
    for (int count = 400'000; !problem.empty(); count = count / 6 * 5) {
      std::string text = lines.size() < 10 ? "x,y\n" : "x,z,word,y\r\n";
      for (int i = 0; i < count; ++i) text += lines;
      for (const std::string& bytes : {text, gzipped(text)}) {
        const std::string path = folder.write("long.csv", bytes);
        malloc_trim(0);
        forget_most();
        const int64_t before = status_bytes("VmRSS:");
        set_memory_limit(kLimit);
        problem = refusal_of(path);
        set_memory_limit(0);
        EXPECT_LT(status_bytes("VmHWM:") - before, kLimit + kOther) << count << " times " << lines;
        EXPECT_TRUE(problem.empty() || problem.find("--limit allows more") != problem.npos) << problem;
      }
    }
  }
}

// Columns of fifty words of one letter: each field of two bytes becomes 200 bytes.
std::string table_of_words(int rows, int columns) {
  std::string text;
  for (int c = 0; c < columns; ++c) text += "w" + std::to_string(c) + ",";
  text += "y\n";
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) text += {static_cast<char>('A' + (r + c) % 50), ','};
    text += r % 2 ? "1\n" : "2\n";
  }
  return text;
}

TEST(Csv, RefusesWordsThatWouldTakeFarMoreThanTheirTable) {
  const TempFolder folder;
  EXPECT_THAT(refusal_of(folder.write("words.csv", table_of_words(70'000, 20))),
              AllOf(HasSubstr("1000 features"), HasSubstr("267.03 MiB"), HasSubstr("leave some of these columns out")));
  EXPECT_EQ(refusal_of(folder.write("few.csv", table_of_words(1000, 20))), "");
}

TEST(Csv, HoldsRowsOutWithoutASecondTable) {
  if (!test::kMemoryCounts || !forget_most()) GTEST_SKIP() << "The memory of this process says nothing here.";
  constexpr int kRows = 20'000, kColumns = 20;
  constexpr int64_t kFeatures = int64_t{kRows} * kColumns * 50 * 4;
  const TempFolder folder;
  const std::string path = folder.write("words.csv", table_of_words(kRows, kColumns));
  malloc_trim(0);
  forget_most();
  const int64_t before = status_bytes("VmRSS:");
  EXPECT_EQ(refusal_of(path), "");
  EXPECT_LT(status_bytes("VmHWM:") - before, kFeatures * 3 / 2) << "the features, a fifth of them twice, and the text";
}

TEST(Csv, NeedsAFile) {
  EXPECT_THAT(failure_of([] { load({.name = "csv"}); }), HasSubstr("needs the path of a file"));
  EXPECT_THAT(failure_of([] { load({.name = "csv", .path = "/tmp"}); }), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace ws::data
