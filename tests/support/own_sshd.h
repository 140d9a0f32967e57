// A real sshd that a test starts and ends itself.
#pragma once
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "profiling/base/process.h"

namespace ws::test {

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string quiet_output(const std::vector<std::string>& command) {
  Process process(command, Process::Output::CapturedWithErrors);
  std::string text;
  while (const auto more = process.output(1000)) text += *more;
  process.wait();
  return text;
}

// A free port; another program could take it before sshd does, which then does not start.
inline int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address);
  getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
  close(probe);
  return ntohs(address.sin_port);
}

// Where it listens, and what runs it and its ssh there: "ip netns exec NAME".
struct SshdPlace {
  std::string address = "127.0.0.1";
  std::vector<std::string> there, here;
  bool passwords = false;  // of the accounts, through PAM
};

// A place where root has a password, which the rest of the machine does not see. Needs root.
inline std::optional<SshdPlace> place_with_password(const std::filesystem::path& folder, const std::string& password) {
  const std::string hash = quiet_output({"sh", "-c", "openssl passwd -6 \"$1\"", "sh", password}), shadow = (folder / "shadow").string();
  if (geteuid() != 0 || !hash.starts_with("$6$") || !std::filesystem::exists("/etc/pam.d/sshd")) return std::nullopt;
  std::ofstream to(shadow);
  std::ifstream accounts("/etc/shadow");
  for (std::string line; std::getline(accounts, line);)
    to << (line.starts_with("root:") ? "root:" + hash.substr(0, hash.find('\n')) + line.substr(line.find(':', 5)) : line) << '\n';
  to.close();
  std::filesystem::permissions(shadow, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  SshdPlace place{.there = {"unshare", "-m", "sh", "-c", "mount --bind " + shadow + " /etc/shadow && exec \"$@\"", "sh"}};
  place.passwords = true;
  if (!quiet_output({"unshare", "-m", "sh", "-c", "mount --bind " + shadow + " /etc/shadow && grep -c '^root:.6' /etc/shadow"}).starts_with("1"))
    return std::nullopt;
  return place;
}

// sshd with keys and settings of its own, and a program `ssh` in front of the real one that uses them.
class OwnSshd {
 public:
  explicit OwnSshd(const std::filesystem::path& folder, const SshdPlace& place = {})
      : folder_(folder), address_(place.address), port_(free_port()) {
    std::filesystem::create_directories(folder_ / "bin");
    if (geteuid() == 0 && !std::filesystem::exists("/run/sshd")) made_ = std::filesystem::create_directory("/run/sshd");  // sshd insists on it
    for (const char* key : {"host", "user", "stranger"})
      quiet_output({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", (folder_ / key).string()});
    quiet_output({"ssh-keygen", "-q", "-t", "ed25519", "-N", "a secret", "-f", at("locked")});
    write("authorized", bytes_of(at("user.pub")) + bytes_of(at("locked.pub")));
    write("banner", "Authorized persons only. warpsight-serve is watched.\n");
    write("sshd_config", "Port " + std::to_string(port_) + "\nListenAddress " + address_ + "\nHostKey " + at("host") +
                             "\nAuthorizedKeysFile " + at("authorized") + "\nPidFile none\nStrictModes no\nUsePAM " + yes_or_no(place.passwords) +
                             "\nPasswordAuthentication " + yes_or_no(place.passwords) + "\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\nBanner " + at("banner") + "\n" +
                             "ForceCommand . " + at("profile") + "; eval \"$SSH_ORIGINAL_COMMAND\"\n");
    set_home("", "");
    std::string host_key = bytes_of(at("host.pub"));
    write("known", "[" + address_ + "]:" + std::to_string(port_) + " " + host_key);
    write("known_wrong", "[" + address_ + "]:" + std::to_string(port_) + " " + bytes_of(at("stranger.pub")));
    write_config("user", "known");
    write("bin/ssh", "#!/bin/sh\nexec " + joined(place.here) + "/usr/bin/ssh -F " + at("ssh_config") + " \"$@\"\n");
    std::filesystem::permissions(folder_ / "bin/ssh", std::filesystem::perms::owner_all);
    std::vector<std::string> command = place.there;
    command.insert(command.end(), {"/usr/sbin/sshd", "-D", "-e", "-f", at("sshd_config"), "-E", at("sshd.log")});
    sshd_.emplace(command);
  }
  ~OwnSshd() {
    if (sshd_) sshd_->signal(SIGTERM), sshd_->wait();
    if (made_) std::filesystem::remove("/run/sshd");
  }
  static bool there() { return std::filesystem::exists("/usr/sbin/sshd") && std::filesystem::exists("/usr/bin/ssh"); }
  void write_config(const std::string& key, const std::string& known, const std::string& more = "") const {
    write("ssh_config", more + "Host jumped\n  ProxyJump there\nHost lost\n  ProxyJump 127.0.0.1:1\nHost behind\n  ProxyJump there\n  HostName " +
                            address_ + "\n  Port 1\nHost there jumped lost\n  HostName " + address_ +
                            "\n  Port " + std::to_string(port_) + "\nHost *\n  IdentityFile " + at(key) +
                            "\n  IdentitiesOnly yes\n  UserKnownHostsFile " + at(known) + "\n  StrictHostKeyChecking yes\n  BatchMode " +
                            (key == "locked" ? "no" : "yes") + "\n");
  }
  // Another home there, and what its shell does first.
  void set_home(const std::string& home, const std::string& first) const {
    write("profile", (home.empty() ? "" : "export HOME=" + home + "\n") + first + "\n");
  }
  // What a program of the system says there.
  void set_program(const std::string& home, const std::string& name, const std::string& script) const {
    const std::filesystem::path path = folder_ / "stand-in" / name;
    std::filesystem::remove_all(path.parent_path());
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    set_home(home, "export PATH=" + path.parent_path().string() + ":$PATH");
  }
  std::string bin() const { return at("bin"); }
  bool answers() const {
    for (int i = 0; i < 3000; ++i, usleep(20'000))
      if (quiet_output({at("bin/ssh"), "there", "echo", "up"}).ends_with("up\n")) return true;
    return false;
  }

 private:
  static std::string yes_or_no(bool value) { return value ? "yes" : "no"; }
  static std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += word + " ";
    return text;
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::filesystem::path folder_;
  std::string address_;
  int port_;
  bool made_ = false;
  std::optional<Process> sshd_;
};

}  // namespace ws::test
