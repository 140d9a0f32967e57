#include "profiling/recording/layouts/safe_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace ws::prof {
namespace {

TEST(SafeCopy, ReadsWhatIsThereAndNothingElse) {
  constexpr size_t kPage = 4096;
  auto* const memory = static_cast<char*>(mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  for (size_t i = 0; i < 2 * kPage; ++i) memory[i] = static_cast<char>(i % 251);
  ASSERT_EQ(mprotect(memory + 2 * kPage, kPage, PROT_NONE), 0);
  SafeCopy copy;
  for (const size_t at : {size_t{5000}, size_t{4990}, size_t{0}, kPage - 60, 2 * kPage - 128}) {
    const char* const seen = copy.at(memory + at, 128);
    ASSERT_NE(seen, nullptr) << at;
    EXPECT_EQ(std::memcmp(seen, memory + at, 128), 0) << at;
  }
  EXPECT_EQ(copy.at(memory + 2 * kPage - 100, 128), nullptr) << "the end is not there";
  munmap(memory, 3 * kPage);
}

// Frames that change while they are read lead anywhere: also to where an address and its length pass the end of memory.
TEST(SafeCopy, AnyNumberMayBeAnAddress) {
  char here[256] = {};
  SafeCopy copy;
  for (const uintptr_t wild : {uintptr_t{0}, uintptr_t{1}, uintptr_t{64}, UINTPTR_MAX, UINTPTR_MAX - 7, UINTPTR_MAX - 127,
                               UINTPTR_MAX / 2, UINTPTR_MAX - 4096}) {
    ASSERT_NE(copy.at(here, 128), nullptr);  // something is kept
    EXPECT_EQ(copy.at(reinterpret_cast<const char*>(wild), 128), nullptr) << wild;
  }
}

}  // namespace
}  // namespace ws::prof
