// packet_line NEAR FAR MS BITS LOST: joins two network namespaces by a line that passes each packet on MS later, at most
// BITS a second, and loses LOST percent of them: what tc netem does, for kernels without it. The kernel's own TCP runs over
// it. Each end is the device "line". Prints a line once both are there; ends with its standard input.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

int device_in(const std::string& space) {
  const int name = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (name < 0 || setns(name, CLONE_NEWNET) != 0) return -1;
  close(name);
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq wanted{};
  wanted.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strcpy(wanted.ifr_name, "line");
  return device >= 0 && ioctl(device, TUNSETIFF, &wanted) == 0 ? device : -1;
}

// One direction.
class Way {
 public:
  Way(int from, int to, double delay_s, double bits_a_s, double lost, unsigned seed)
      : from_(from), to_(to), delay_(seconds(delay_s)), bits_a_s_(bits_a_s), lost_(lost), random_(seed) {}

  void take() {
    std::array<char, 2048> packet;
    for (ssize_t got; (got = read(from_, packet.data(), packet.size())) > 0;) {
      if (queue_.size() >= kMostQueued || std::bernoulli_distribution(lost_)(random_)) continue;
      free_ = std::max(free_, Clock::now()) + seconds(8.0 * static_cast<double>(got) / bits_a_s_);
      queue_.push_back({free_ + delay_, {packet.data(), static_cast<size_t>(got)}});
    }
  }
  void give() {
    for (; !queue_.empty() && queue_.front().arrives <= Clock::now(); queue_.pop_front())
      if (write(to_, queue_.front().bytes.data(), queue_.front().bytes.size()) < 0) continue;  // a packet that is lost
  }
  bool empty() const { return queue_.empty(); }

 private:
  static constexpr size_t kMostQueued = 1000;  // packets, as netem's
  struct Packet {
    Clock::time_point arrives;
    std::string bytes;
  };
  static Clock::duration seconds(double s) { return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s)); }

  int from_, to_;
  Clock::duration delay_;
  double bits_a_s_, lost_;
  std::mt19937 random_;
  Clock::time_point free_;
  std::deque<Packet> queue_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int near = device_in(argv[1]), far = device_in(argv[2]);
  if (near < 0 || far < 0) {
    std::perror("packet_line");
    return 1;
  }
  std::puts("up");
  std::fflush(stdout);
  const double delay_s = std::atof(argv[3]) * 1e-3, bits_a_s = std::atof(argv[4]), lost = std::atof(argv[5]) / 100;
  Way there(near, far, delay_s, bits_a_s, lost, 1), back(far, near, delay_s, bits_a_s, lost, 2);
  for (;;) {
    std::array<pollfd, 3> ends{pollfd{near, POLLIN, 0}, pollfd{far, POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
    poll(ends.data(), ends.size(), there.empty() && back.empty() ? -1 : 1);
    if (ends[2].revents != 0) return 0;
    for (Way* way : {&there, &back}) way->take(), way->give();
  }
}
