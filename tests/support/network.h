// Two machines in network namespaces of their own, with a line between them as slow as a test wants. Needs root.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/core/remote/pipe_process.h"
#include "tests/support/kill_process.h"
#include "tests/support/own_sshd.h"

namespace ws::test {

class Network {
 public:
  // Throws std::runtime_error that says why there can be none here. `packet_line`: the program.
  Network(const std::string& packet_line, double one_way_ms, double bits_a_s, double lost_percent) {
    if (geteuid() != 0) throw std::runtime_error("network namespaces need root");
    must({"ip", "netns", "add", near_});
    try {
      must({"ip", "netns", "add", far_});
      if (!by_netem(one_way_ms, bits_a_s, lost_percent)) by_packets(packet_line, one_way_ms, bits_a_s, lost_percent);
      begin_device(near_, kNear);
      begin_device(far_, kFar);
    } catch (...) {
      remove();
      throw;
    }
  }
  ~Network() { remove(); }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const char* made_by() const { return line_ ? "packets passed on by the test (no netem here)" : "tc netem"; }
  SshdPlace place() const { return {kFar, {"ip", "netns", "exec", far_}, {"ip", "netns", "exec", near_}}; }

 private:
  static constexpr const char *kNear = "10.77.0.1", *kFar = "10.77.0.2";

  static void must(const std::vector<std::string>& command) {
    std::string said;
    if (status_of(command, said) == 0) return;
    for (const std::string& word : command) said = word + " " + said;
    throw std::runtime_error(said);
  }
  static int status_of(const std::vector<std::string>& command, std::string& said) {
    Process process(command, Process::Output::CapturedWithErrors);
    while (const auto more = process.output(1000)) said += *more;
    return process.wait();
  }

  bool by_netem(double one_way_ms, double bits_a_s, double lost_percent) {
    must({"ip", "-n", near_, "link", "add", "line", "type", "veth", "peer", "name", "line", "netns", far_});
    for (const std::string& space : {near_, far_}) {
      std::string said;
      const int status = status_of({"tc", "-n", space, "qdisc", "add", "dev", "line", "root", "netem", "delay",
                                    std::to_string(one_way_ms) + "ms", "rate", std::to_string(static_cast<long>(bits_a_s)) + "bit",
                                    "loss", std::to_string(lost_percent) + "%"}, said);
      if (status == 0) continue;
      must({"ip", "-n", near_, "link", "del", "line"});
      return false;
    }
    return true;
  }
  void by_packets(const std::string& program, double one_way_ms, double bits_a_s, double lost_percent) {
    line_.emplace(std::vector<std::string>{program, near_, far_, std::to_string(one_way_ms), std::to_string(bits_a_s),
                                           std::to_string(lost_percent)});
    for (int i = 0; i < 12'000; ++i, usleep(5000)) {
      const auto said = line_->read_output();
      if (said && *said == "up\n") return;
      if (!said) throw std::runtime_error("packet_line: " + line_->read_errors().value_or("ended"));
    }
    throw std::runtime_error("packet_line does not begin");
  }
  static void begin_device(const std::string& space, const std::string& address) {
    must({"ip", "-n", space, "addr", "add", address + "/24", "dev", "line"});
    must({"ip", "-n", space, "link", "set", "line", "up"});
    must({"ip", "-n", space, "link", "set", "lo", "up"});
  }
  // A session of sshd would wait for ever for a machine that is gone.
  void remove() {
    line_.reset();
    std::string said, processes;
    for (const std::string& space : {near_, far_}) {
      status_of({"ip", "netns", "pids", space}, processes);
      status_of({"ip", "netns", "del", space}, said);
    }
    std::istringstream in(processes);
    for (pid_t process; in >> process;) kill_process(process, SIGTERM);
  }

  const std::string near_ = "ws-near-" + std::to_string(getpid()), far_ = "ws-far-" + std::to_string(getpid());
  std::optional<app::PipeProcess> line_;
};

}  // namespace ws::test
