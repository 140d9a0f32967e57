// Two real processes: a claim holds as long as its process, and no longer.
#include "profiling/base/ownership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <vector>

#include "profiling/base/failure.h"
#include "profiling/base/whole_file.h"
#include "tests/support/failure_text.h"
#include "tests/support/interposed.h"

namespace {

bool no_locks = false;  // as on a network file system without a lock daemon

}  // namespace

extern "C" int fcntl(int file, int command, ...) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  REAL(fcntl);
  if (no_locks && (command == F_OFD_SETLK || command == F_OFD_GETLK)) {
    errno = ENOLCK;
    return -1;
  }
  return real(file, command, argument);
}

namespace ws {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Owning : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const char* name) const { return (folder_ / name).string(); }
  const fs::path folder_ = fs::temp_directory_path() / ("warpsight-owning-" + std::to_string(getpid()));
};

// Another process that does something and then waits to be killed.
class Other {
 public:
  explicit Other(const std::function<void()>& work) {
    int ends[2];
    if (pipe(ends) != 0) return;
    process_ = fork();
    if (process_ == 0) {
      work();
      static_cast<void>(!write(ends[1], "x", 1));
      for (;;) pause();
    }
    char ready = 0;
    static_cast<void>(!read(ends[0], &ready, 1));
    close(ends[0]), close(ends[1]);
  }
  ~Other() { end(); }
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
};

std::string why_refused(const std::function<void()>& work) { return test::failure_text(work); }

TEST_F(Owning, TheSecondLearnsOfTheFirst) {
  const std::string path = at("a.wsrun");
  std::unique_ptr<Ownership> in_child;
  Other other([&] { in_child = std::make_unique<Ownership>(path); });
  const std::string who = std::to_string(other.process());
  EXPECT_THAT(why_refused([&] { Ownership second(path); }), HasSubstr("is being written by process " + who));
  EXPECT_THAT(owner_of(path), HasSubstr(who));
  EXPECT_EQ(unowned(path), at("a-2.wsrun"));
  prof::write_whole(at("a-2.wsrun"), "x");
  EXPECT_EQ(unowned(path), at("a-2.wsrun")) << "no process has it";
  EXPECT_EQ(unused_name(path), at("a-3.wsrun"));
  EXPECT_THAT(why_refused([&] { prof::write_whole(path, "x"); }), HasSubstr("process " + who));
  fs::create_symlink(path, at("link"));
  EXPECT_THAT(why_refused([&] { Ownership second(at("link")); }), HasSubstr(who)) << "another name of the same file";
  other.end();
  EXPECT_EQ(owner_of(path), "");
  EXPECT_EQ(why_refused([&] { Ownership second(path); }), "") << "a killed process owns nothing";
  EXPECT_FALSE(fs::exists(at(".a.wsrun.owner")));
}

TEST_F(Owning, TheNextClaimRemovesWhatKilledProcessesLeft) {
  std::unique_ptr<Ownership> in_child, second_in_child;
  Other killed([&] {
    in_child = std::make_unique<Ownership>(at("killed.wsrun"), kMaker);
    second_in_child = std::make_unique<Ownership>(at("killed.wsrun"));
  });
  Other lives([&] { in_child = std::make_unique<Ownership>(at("lives.wsrun"), kMaker); });
  std::ofstream(folder_ / ".elsewhere.wsrun.maker") << "another-boot 12 34\nfarm7\n12 warpsight\n";
  std::ofstream(folder_ / ".no-claim.owner") << "";
  killed.end();
  ASSERT_TRUE(fs::exists(at(".killed.wsrun.maker")));
  Ownership next(at("next.wsrun"));
  EXPECT_FALSE(fs::exists(at(".killed.wsrun.maker")));
  EXPECT_FALSE(fs::exists(at(".killed.wsrun.owner")));
  for (const char* kept : {".lives.wsrun.maker", ".elsewhere.wsrun.maker", ".no-claim.owner", ".next.wsrun.owner"})
    EXPECT_TRUE(fs::exists(at(kept))) << kept;
  EXPECT_THAT(owner_of(at("lives.wsrun"), kMaker), HasSubstr(std::to_string(lives.process())));
}

// Many take names of a folder at once in which a killed process left its claims: none is refused for that.
TEST_F(Owning, ClaimsAtOnceAreNotRefusedBecauseOfADeadOne) {
  std::unique_ptr<Ownership> in_child;
  constexpr int kRounds = 30;
  int refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (const char* name : {"a", "b"}) Other([&] { in_child = std::make_unique<Ownership>(at(name)); });
    std::vector<pid_t> children;
    for (const char* name : {"a", "b", "c", "d"}) {
      children.push_back(fork());
      if (children.back() == 0) _exit(why_refused([&] { Ownership mine(at(name)); }).empty() ? 0 : 1);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      refused += status != 0;
    }
  }
  EXPECT_EQ(refused, 0);
}

TEST_F(Owning, AForkedChildDoesNotKeepTheClaimOfItsParent) {
  const std::string path = at("b.wsrun");
  auto claim = std::make_unique<Ownership>(path);
  Other child([] {});  // like the workers of a Python program
  claim.reset();
  EXPECT_EQ(owner_of(path), "");
  claim = std::make_unique<Ownership>(path);
  Other second([&] { claim.reset(); });
  EXPECT_NE(owner_of(path), "") << "a child that cleans up does not take it away either";
}

TEST_F(Owning, AFolderHasOneOwner) {
  Ownership mine(folder_.string());
  EXPECT_THAT(why_refused([&] { Ownership second(folder_.string()); }), HasSubstr(std::to_string(getpid())));
  EXPECT_NO_THROW(Ownership(at("file in it")));
}

class OwningWithoutLocks : public Owning {
 protected:
  void SetUp() override { Owning::SetUp(); no_locks = true; }
  void TearDown() override { no_locks = false; Owning::TearDown(); }
  void mark(const char* name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
};

TEST_F(OwningWithoutLocks, AProcessOfThisMachineOwnsWhileItLives) {
  const std::string path = at("a.wsrun");
  std::unique_ptr<Ownership> in_child;
  Other other([&] { in_child = std::make_unique<Ownership>(path); });
  const std::string refusal = why_refused([&] { Ownership second(path); });
  EXPECT_THAT(refusal, HasSubstr("is being written by process " + std::to_string(other.process())));
  EXPECT_THAT(refusal, ::testing::Not(HasSubstr("delete")));
  EXPECT_EQ(unowned(path), at("a-2.wsrun"));
  other.end();
  EXPECT_EQ(owner_of(path), "");
  EXPECT_EQ(why_refused([&] { Ownership second(path); }), "");
}

TEST_F(OwningWithoutLocks, AnotherMachinesClaimHolds) {
  mark(".a.wsrun.owner", "another-boot 12 34\nfarm7\n12 warpsight\n");
  EXPECT_EQ(owner_of(at("a.wsrun")), "12 (warpsight) on farm7");
  EXPECT_THAT(why_refused([&] { Ownership second(at("a.wsrun")); }),
              HasSubstr("process 12 (warpsight) on farm7. Stop it first, or choose another name. If it no longer runs, delete " +
                        at(".a.wsrun.owner")));
  no_locks = false;  // where locks work, nobody holds this one
  EXPECT_EQ(why_refused([&] { Ownership second(at("a.wsrun")); }), "");
}

TEST_F(OwningWithoutLocks, AMarkThatWasNotWrittenHoldsNothing) {
  mark(".a.wsrun.owner", "");
  EXPECT_EQ(owner_of(at("a.wsrun")), "");
  EXPECT_EQ(why_refused([&] { Ownership first(at("a.wsrun")); }), "");
}

// Another machine has put its own file in the place of ours.
TEST_F(OwningWithoutLocks, AChangedFileIsNotRemoved) {
  auto mine = std::make_unique<Ownership>(at("a.wsrun"));
  fs::remove(at(".a.wsrun.owner"));
  mark(".a.wsrun.owner", "another-boot 12 34\nfarm7\n12 warpsight\n");
  mine.reset();
  EXPECT_EQ(owner_of(at("a.wsrun")), "12 (warpsight) on farm7");
}

TEST_F(Owning, NoSpecialFileIsReplaced) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(why_refused([&] { prof::write_whole_file(at("pipe"), [](const std::string&) {}); }), HasSubstr("a pipe"));
  EXPECT_THAT(why_refused([&] { prof::file_to_write("/dev/null"); }), HasSubstr("a device"));
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
  EXPECT_NO_THROW(prof::write_whole("/dev/null", "x"));
  EXPECT_THAT(why_refused([&] { prof::write_whole("/dev/full", "x"); }), HasSubstr("No space left"));
  prof::write_whole(at("file"), "old");
  fs::create_symlink("file", at("link"));
  prof::write_whole(at("link"), "new");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  std::string text;
  std::ifstream(at("file")) >> text;
  EXPECT_EQ(text, "new");
  EXPECT_THAT(why_refused([&] { prof::write_whole(folder_.string(), "x"); }), HasSubstr("it is a folder"));
}

}  // namespace
}  // namespace ws
