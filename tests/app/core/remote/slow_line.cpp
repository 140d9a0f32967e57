// slow_line MS BITS COMMAND…: the command's standard streams, as if it stood far away: each byte comes MS later, and BITS
// a second come at most. A megabyte may wait on the way, as it does in the buffers of a real line.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

// One direction.
class Way {
 public:
  Way(int from, int to, double delay_s, double bits_a_s) : from_(from), to_(to), delay_s_(delay_s), bits_a_s_(bits_a_s) {}

  void run() {
    constexpr size_t kOnTheWay = 1 << 20;
    bool open = true;
    while (open || !pieces_.empty()) {
      pollfd in{from_, POLLIN, 0};
      const bool room = open && bytes_ < kOnTheWay;
      if (room) poll(&in, 1, pieces_.empty() ? 100 : 1);
      else std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (room && in.revents != 0) open = take();
      if (!give()) break;
    }
    close(to_);
  }

 private:
  struct Piece {
    Clock::time_point arrives;
    std::string bytes;
  };
  static Clock::duration seconds(double s) { return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s)); }

  bool take() {
    std::array<char, 4096> part;
    const ssize_t got = read(from_, part.data(), part.size());
    if (got <= 0) return false;
    free_ = std::max(free_, Clock::now()) + seconds(8.0 * static_cast<double>(got) / bits_a_s_);
    pieces_.push_back({free_ + seconds(delay_s_), {part.data(), static_cast<size_t>(got)}});
    bytes_ += static_cast<size_t>(got);
    return true;
  }

  bool give() {
    for (; !pieces_.empty() && pieces_.front().arrives <= Clock::now(); pieces_.pop_front()) {
      const std::string& bytes = pieces_.front().bytes;
      for (size_t at = 0; at < bytes.size();) {
        const ssize_t went = write(to_, bytes.data() + at, bytes.size() - at);
        if (went <= 0) return false;
        at += static_cast<size_t>(went);
      }
      bytes_ -= bytes.size();
    }
    return true;
  }

  int from_, to_;
  double delay_s_, bits_a_s_;
  size_t bytes_ = 0;
  Clock::time_point free_;
  std::deque<Piece> pieces_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  signal(SIGPIPE, SIG_IGN);
  const double delay_s = std::atof(argv[1]) * 1e-3, bits_a_s = std::atof(argv[2]);
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return 2;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  pid_t child = 0;
  if (posix_spawnp(&child, argv[3], &actions, nullptr, argv + 3, environ) != 0) return 127;
  close(in[0]), close(out[1]);
  std::thread there([&] { Way(STDIN_FILENO, in[1], delay_s, bits_a_s).run(); });
  Way(out[0], STDOUT_FILENO, delay_s, bits_a_s).run();
  there.detach();
  int status = 0;
  waitpid(child, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
