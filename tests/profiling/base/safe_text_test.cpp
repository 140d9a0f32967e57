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
  EXPECT_EQ(printable(std::string("\xC2")), "\xC2") << "a cut letter stays";
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
