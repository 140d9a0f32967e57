// The files that the recorder opens in a program are not among the program's descriptors, whatever the program does to those.
#include "profiling/recording/own_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "profiling/base/file_identity.h"

namespace ws::prof {
namespace {

constexpr int kMostDescriptors = 1024;
const std::string kFile = "/proc/self/exe";

bool has_descriptor_of(const FileIdentity& file) {
  for (int number = 0; number < kMostDescriptors; ++number)
    if (FileIdentity::of(number) == file) return true;
  return false;
}

// In a process of its own, whose descriptors nobody else opens or closes. Returns what is wrong, or 0.
int descriptors_are_apart() {
  const auto file = FileIdentity::of(kFile);
  begin_own_files();
  if (has_descriptor_of(file)) return 1;
  int ours = -1;
  with_own_files([&] { ours = open(kFile.c_str(), O_RDONLY | O_CLOEXEC); });
  if (ours < 0) return 2;
  if (has_descriptor_of(file)) return 3;  // the program would see it, and could close it
  for (int number = 0; number < kMostDescriptors; ++number) close(number);
  bool stays = false, sees_others = true;
  with_own_files([&] { stays = FileIdentity::of(ours) == file; });
  if (!stays) return 4;
  const int its = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  const auto opened = FileIdentity::of(its);
  with_own_files([&] { sees_others = has_descriptor_of(opened); });
  return sees_others ? 5 : 0;
}

TEST(OwnFiles, AreNotAmongTheDescriptorsOfTheProgram) {
  EXPECT_EXIT(_exit(descriptors_are_apart()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ws::prof
