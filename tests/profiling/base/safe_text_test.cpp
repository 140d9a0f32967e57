#include "profiling/base/safe_text.h"

#include <gtest/gtest.h>

#include "profiling/base/paths.h"

namespace ws {
namespace {

TEST(SafeText, NoNameCommandsTheTerminal) {
  EXPECT_EQ(printable("plain µs → ok\n\tx"), "plain µs → ok\n\tx");
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\xEF\xBF\xBD]0;title\xEF\xBF\xBD");
  EXPECT_EQ(printable("a\rb\x7f"), "a\xEF\xBF\xBD" "b\xEF\xBF\xBD");
  EXPECT_EQ(printable("\xC2\x9b" "31m"), "\xEF\xBF\xBD" "31m") << "the one-character form of an escape sequence";
  EXPECT_EQ(printable("\xE2\x80\xAE" "abc"), "\xEF\xBF\xBD" "abc") << "text that runs from right to left";
}

// Each of them, alone and inside a name; U+FFFD takes its place.
TEST(SafeText, EveryControlCharacterIsReplaced) {
  const auto utf8 = [](unsigned code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    if (code < 0x800) return std::string{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    return std::string{static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
  };
  const auto is_command = [](unsigned code) {
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code <= 0x9F) || code == 0x61C || code == 0x200E ||
           code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  };
  for (unsigned code = 0; code <= 0xFFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;  // no letters
    const std::string shown = is_command(code) ? "\xEF\xBF\xBD" : utf8(code);
    ASSERT_EQ(printable("a" + utf8(code) + "b"), "a" + shown + "b") << code;
  }
  EXPECT_EQ(printable("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80") << "a letter of four bytes";
}

// Some terminals read a control character from a longer form of it, or from a single byte.
TEST(SafeText, WhatIsNotUtf8IsReplaced) {
  const std::string instead = "\xEF\xBF\xBD";
  EXPECT_EQ(printable("\xC0\x9B[2J"), instead + instead + "[2J");
  EXPECT_EQ(printable("\xE0\x80\x9B[2J"), instead + instead + instead + "[2J");
  EXPECT_EQ(printable("\x9B" "2J"), instead + "2J");
  EXPECT_EQ(printable("\xED\xA0\x80"), instead + instead + instead) << "half of a pair";
  EXPECT_EQ(printable("\xF5\x80\x80\x80").size(), 4 * instead.size()) << "no letter has such a number";
  for (const std::string cut : {"\xC2", "\xE2\x86", "\xF0\x9F\x98"}) EXPECT_EQ(printable(cut).size(), cut.size() * instead.size());
}

TEST(SafeText, ARowOfATableIsOneLine) {
  EXPECT_EQ(one_line("a\r\nb\tc\xE2\x80\xA8" "d"), "a\xEF\xBF\xBD b c\xEF\xBF\xBD" "d");
  EXPECT_EQ(table_row("{:>3}  {}", 7, "gemm\n 99 relu"), "  7  gemm  99 relu\n");
}

TEST(SafeText, NoCellIsAFormula) {
  EXPECT_EQ(csv_cell("kernel<float>"), "kernel<float>");
  EXPECT_EQ(csv_cell("a,b \"c\""), "\"a,b \"\"c\"\"\"");
  for (const char* text : {"=1+1", "+1", "-1", "@sum", "\t=1", "\r=1"})
    EXPECT_EQ(csv_cell(text), std::string("\"'") + text + "\"");
}

TEST(SafeText, AShellTakesAWordAsItIs) {
  EXPECT_EQ(shell_word("out/a-1.wsrun"), "out/a-1.wsrun");
  for (const std::string word : {"", "two words", "it's", "$HOME `x` \"y\" \\", "*", "a;b", "#", "~x", "ü\n"}) {
    std::string said;
    FILE* shell = popen(("printf %s " + shell_word(word) + " && printf %s " + shell_quoted(word)).c_str(), "r");
    ASSERT_TRUE(shell);
    for (int c; (c = fgetc(shell)) != EOF;) said += static_cast<char>(c);
    EXPECT_EQ(pclose(shell), 0);
    EXPECT_EQ(said, word + word);
  }
}

TEST(SafeText, ANameLeadsNowhereElse) {
  for (const char* text : {"../../../x", "/etc/passwd", ".hidden", "a/b", "a\nb", "..", "."}) {
    const std::string name = file_name_of(text);
    EXPECT_EQ(name.find_first_of("/\n"), std::string::npos) << text;
    EXPECT_NE(name[0], '.') << text;
  }
  EXPECT_EQ(file_name_of("caching · off"), "caching_·_off");
  EXPECT_LE(file_name_of(std::string(5000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace ws
