// Sections of machine code, good and damaged.
#include "profiling/base/elf.h"

#include <gtest/gtest.h>

#include "tests/support/made_cubin.h"

namespace ws {
namespace {

TEST(Elf, FunctionsHaveTheirCode) {
  const std::string bytes = test::made_cubin();
  const Elf elf(bytes);
  ASSERT_TRUE(elf.good());
  ASSERT_NE(elf.section(".text.second"), nullptr);
  EXPECT_EQ(elf.content(*elf.section(".text.second")).size(), 16u);
  EXPECT_EQ(elf.content(*elf.section(".text.first"))[0], '\1');
  EXPECT_EQ(elf.section(".text.third"), nullptr);
}

TEST(Elf, TheArchitectureStandsWhereTheFormatHasIt) {
  const std::string now = test::made_cubin(8, 0x9005a04), before = test::made_cubin(7, 0x55a055a);
  EXPECT_EQ(Elf(now).compute(), 90);
  EXPECT_EQ(Elf(before).compute(), 90);
}

TEST(Elf, DamagedBytesAreNoCode) {
  EXPECT_FALSE(Elf(std::string_view("text")).good());
  const std::string bytes = test::made_cubin();
  for (size_t size = 0; size < bytes.size(); size += 7) {
    const std::string part = bytes.substr(0, size);
    const Elf elf(part);
    if (const Elf::Section* section = elf.section(".text.first")) {
      EXPECT_LE(elf.content(*section).size(), part.size());
    }
  }
}

}  // namespace
}  // namespace ws
