#include "profiling/base/column_letters.h"

#include <gtest/gtest.h>

namespace ws {
namespace {

TEST(ColumnLetters, GoOnAfterZ) {
  EXPECT_EQ(column_letters(0), "A");
  EXPECT_EQ(column_letters(25), "Z");
  EXPECT_EQ(column_letters(26), "AA");
  EXPECT_EQ(column_letters(51), "AZ");
  EXPECT_EQ(column_letters(52), "BA");
  EXPECT_EQ(column_letters(701), "ZZ");
  EXPECT_EQ(column_letters(702), "AAA");
}

}  // namespace
}  // namespace ws
