// The files that the recorder opens in a program are not among the program's descriptors, whatever the program does to those.
#include "profiling/recording/own_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>

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

// Makes this an older Linux (before 5.9): a filter of system calls answers that there is no close_range().
bool without_close_range() {
  constexpr unsigned kCloseRange = 436;
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCloseRange, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(steps), steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
         syscall(kCloseRange, 3u, 3u, 0u) != 0 && errno == ENOSYS;
}

TEST(OwnFiles, AreApartOnAnOlderLinux) {
  EXPECT_EXIT(_exit(without_close_range() ? descriptors_are_apart() : 9), ::testing::ExitedWithCode(0), "");
}

// A billion descriptors may be allowed there.
TEST(OwnFiles, DescriptorsAreClosedOnAnOlderLinux) {
  const auto closed = [] {
    const int beyond = 900;
    dup2(0, beyond);
    close_descriptors();
    for (int number = 0; number < kMostDescriptors; ++number)
      if (fcntl(number, F_GETFD) >= 0) return 1;
    return 0;
  };
  EXPECT_EXIT(_exit(without_close_range() ? closed() : 9), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ws::prof
