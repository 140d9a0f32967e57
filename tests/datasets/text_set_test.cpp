#include "datasets/text_set.h"

#include "tests/datasets/bad_input.h"

namespace ws::data {
namespace {
using testing::HasSubstr;

TEST(Text, RowsFollowEachOtherAndTargetsAreTheNextCharacters) {
  const DataSpec spec{.name = "text", .validation = 0.3, .context = 4};
  const Dataset set = text_set("abcabdabcabdabcéabc.", spec, "text");  // 20 characters
  ASSERT_EQ(set.class_names, (std::vector<std::string>{".", "a", "b", "c", "d", "é"}));
  EXPECT_EQ(set.train.rows, 3);  // of 14 characters; the last is a target only
  EXPECT_EQ(set.test.rows, 1);
  EXPECT_EQ(std::vector<float>(set.train.x.begin(), set.train.x.begin() + 5), (std::vector<float>{1, 2, 3, 1, 2}));
  EXPECT_EQ(std::vector<int32_t>(set.train.labels.begin(), set.train.labels.begin() + 5), (std::vector<int32_t>{2, 3, 1, 2, 4}));
  EXPECT_EQ(set.test.x[1], 5) << "é is one symbol";
  EXPECT_EQ(rows_of_text(20, spec).train, set.train.rows);
  EXPECT_EQ(rows_of_text(20, spec).test, set.test.rows);
}

TEST(Text, BadTextsGetASentence) {
  const auto sentence = [](std::string_view text, int64_t context) {
    return failure_of([&] { text_set(text, {.name = "text", .validation = 0.1, .context = context}, "t.txt"); });
  };
  EXPECT_THAT(sentence("aaaaaaaaaaaaaaaaaaaa", 4), HasSubstr("t.txt: the text repeats one character"));
  EXPECT_THAT(sentence("abcabc", 128), HasSubstr("the text has 6 characters, too few for a context of 128"));
  EXPECT_THAT(sentence("abc\xff" "abcabcabc", 2), HasSubstr("at byte 3: this is not UTF-8"));
  EXPECT_THAT(sentence("", 4), HasSubstr("0 characters"));
  EXPECT_THAT(failure_of([] { load({.name = "text"}); }), HasSubstr("needs the path of a file"));
}

TEST(Text, AFileIsReadAndItsRowsCanBeLimited) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "abcde "[i % 6];
  const Dataset set = load({.name = "text", .path = folder.write("t.txt.gz", gzipped(text)), .validation = 0.1, .context = 10, .limit = 7});
  EXPECT_EQ(set.train.rows, 7);
  EXPECT_EQ(set.train.x.size(), 70u);
  EXPECT_EQ(set.train.labels.size(), 70u);
  EXPECT_EQ(set.outputs, 6);
}

TEST(Text, TheShippedNovelsAreWhole) {
  const DataSpec spec{.name = "austen", .validation = 0.1, .context = 128};
  const Dataset set = load(spec);
  EXPECT_EQ(set.outputs, kAustenSymbols);
  EXPECT_EQ(set.train.rows, rows_of_text(kAustenCharacters, spec).train);
  EXPECT_EQ(set.test.rows, rows_of_text(kAustenCharacters, spec).test);
}

TEST(Text, MadeSentencesDependOnTheSeedOnly) {
  const DataSpec spec{.name = "sentences", .points = 200, .context = 32};
  EXPECT_EQ(made_sentences(spec), made_sentences(spec));
  DataSpec other = spec;
  other.seed = 1;
  EXPECT_NE(made_sentences(spec), made_sentences(other));
  EXPECT_GT(load(spec).train.rows, 100);
}

}  // namespace
}  // namespace ws::data
