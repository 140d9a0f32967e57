#include "app/core/runs/run_owner.h"

#include <unistd.h>

#include <fstream>
#include <iterator>

namespace ws::app {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The 22nd field of /proc/PID/stat; the name before it may hold spaces and brackets.
std::string start_of(const std::string& pid) {
  const std::string line = first_line("/proc/" + pid + "/stat");
  size_t at = line.rfind(')');
  for (int field = 2; at != std::string::npos && field < 22; ++field) at = line.find(' ', at + 1);
  if (at == std::string::npos) return {};
  const size_t end = line.find(' ', at + 1);
  return line.substr(at + 1, end - at - 1);
}

std::string mark_of(const std::string& pid) {
  const std::string start = start_of(pid);
  return start.empty() ? std::string() : first_line("/proc/sys/kernel/random/boot_id") + " " + pid + " " + start;
}

}  // namespace

std::string writer_mark() { return mark_of(std::to_string(getpid())); }

bool writer_is_alive(const std::string& mark) {
  const size_t first = mark.find(' '), second = mark.find(' ', first + 1);
  if (mark.empty() || second == std::string::npos) return false;
  return mark_of(mark.substr(first + 1, second - first - 1)) == mark;
}

}  // namespace ws::app
