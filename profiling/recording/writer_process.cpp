#include "profiling/recording/writer_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "profiling/base/failure.h"
#include "profiling/recording/own_files.h"

namespace ws::prof {
namespace {

class Stack {
 public:
  Stack() : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {
    if (memory_ == MAP_FAILED) throw Failure(std::string("no memory for another process: ") + std::strerror(errno));
  }
  ~Stack() { munmap(memory_, kBytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  void* top() const { return static_cast<char*>(memory_) + kBytes; }

 private:
  static constexpr size_t kBytes = 64 << 10;
  void* memory_;
};

// What the two processes between the program and its writer share with it: they run in its memory, while it waits.
struct Start {
  const char* program;
  char* const* words;
  char* const* settings;
  void* second_stack;
  int error = 0;
  int writer = 0;
};

// The program's handlers must not run here.
void forget_handlers() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      action = {};
      action.sa_handler = SIG_DFL;
      sigaction(number, &action, nullptr);
    }
  }
}

int become_writer(void* data) {
  Start& start = *static_cast<Start*>(data);
  forget_handlers();
  close_descriptors();
  open("/dev/null", O_RDWR);  // 0
  dup2(0, 1), dup2(0, 2);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(start.program, start.words, start.settings);
  start.error = errno;
  _exit(1);
}

// Leaves at once, so that the writer is nobody's child. Its own session keeps the signals of a terminal from it.
int become_starter(void* data) {
  Start& start = *static_cast<Start*>(data);
  setsid();
  if (chdir("/") != 0) start.error = errno;
  start.writer = clone(become_writer, start.second_stack, CLONE_VM | CLONE_VFORK, data);
  if (start.writer < 0) start.error = errno;
  _exit(0);
}

// Nothing of the program's environment but where temporary files go: what it preloads is not for us.
std::vector<std::string> settings() {
  std::vector<std::string> all;
  for (const char* name : {"TMPDIR", "HOME"})
    if (const char* value = std::getenv(name)) all.push_back(std::string(name) + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

int start_writer(const std::string& program, const FrameRing& ring) {
  const Stack first, second;
  std::vector<std::string> words{program, std::to_string(ring.number())}, all = settings();
  const std::vector<char*> word_list = pointers(words), setting_list = pointers(all);
  Start start{program.c_str(), word_list.data(), setting_list.data(), second.top()};
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  const int starter = clone(become_starter, first.top(), CLONE_VM | CLONE_VFORK, &start);  // without a signal at its end
  const int error = starter < 0 ? errno : 0;
  while (starter > 0 && waitpid(starter, nullptr, __WCLONE) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0 && start.error == 0) return start.writer;
  throw Failure(program + " cannot be started: " + std::strerror(error != 0 ? error : start.error) + ".");
}

}  // namespace ws::prof
