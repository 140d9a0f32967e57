// slow_line MS BITS LOST COMMAND…: passes the command's standard streams on as a distant line would. Each byte comes MS
// later, at most BITS come per second, and LOST percent of the packets are lost: TCP sends such a packet again one
// round trip later, all bytes behind it wait, and the rate falls. Up to a megabyte waits on the way, as in the buffers
// of a real line.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

// One direction.
class Way {
 public:
  Way(int from, int to, double delay_s, double bits_a_s, double lost)
      : from_(from),
        to_(to),
        delay_s_(delay_s),
        bits_a_s_(lost > 0 ? std::min(bits_a_s, lossy_rate(2 * delay_s, lost)) : bits_a_s),
        lost_(lost) {}

  void run() {
    constexpr size_t kOnTheWay = 1 << 20;
    bool open = true;
    while (open || !pieces_.empty()) {
      pollfd in{from_, POLLIN, 0};
      const bool takes = open && bytes_ < kOnTheWay;
      if (takes) poll(&in, 1, pieces_.empty() ? 100 : 1);
      else std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (takes && in.revents != 0) open = take();
      if (!give()) break;
    }
    close(to_);
  }

 private:
  static constexpr size_t kPacket = 1448;
  // What TCP reaches on a line with such losses (Mathis et al., 1997).
  static double lossy_rate(double turn_s, double lost) { return 1.22 * 8 * kPacket / (turn_s * std::sqrt(lost)); }

  struct Piece {
    Clock::time_point arrives;
    std::string bytes;
  };
  static Clock::duration seconds(double s) { return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s)); }

  bool take() {
    std::array<char, 4096> part;
    const ssize_t got = read(from_, part.data(), lost_ > 0 ? kPacket : part.size());
    if (got <= 0) return false;
    free_ = std::max(free_, Clock::now()) + seconds(8.0 * static_cast<double>(got) / bits_a_s_);
    Clock::time_point arrives = free_ + seconds(delay_s_);
    if (std::bernoulli_distribution(lost_)(random_)) arrives += seconds(2 * delay_s_);
    last_ = std::max(last_, arrives);  // in order
    pieces_.push_back({last_, {part.data(), static_cast<size_t>(got)}});
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
  double delay_s_, bits_a_s_, lost_;
  size_t bytes_ = 0;
  Clock::time_point free_, last_;
  std::mt19937 random_{20261123};
  std::deque<Piece> pieces_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  signal(SIGPIPE, SIG_IGN);
  const double delay_s = std::atof(argv[1]) * 1e-3, bits_a_s = std::atof(argv[2]), lost = std::atof(argv[3]) / 100;
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return 2;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  pid_t child = 0;
  if (posix_spawnp(&child, argv[4], &actions, nullptr, argv + 4, environ) != 0) return 127;
  close(in[0]), close(out[1]);
  std::thread there([&] { Way(STDIN_FILENO, in[1], delay_s, bits_a_s, lost).run(); });
  Way(out[0], STDOUT_FILENO, delay_s, bits_a_s, lost).run();
  there.detach();
  int status = 0;
  waitpid(child, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
