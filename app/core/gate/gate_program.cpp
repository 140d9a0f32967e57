// Runs a program once for the gate, and sees what else used the processors.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include "app/core/gate/gate.h"
#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/base/process.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

// Seconds that all processors have worked since the machine started; NaN without /proc.
struct ProcessorTime {
  double busy = 0, all = 0;
};
ProcessorTime processor_time() {
  std::ifstream file("/proc/stat");
  std::string line, word;
  std::getline(file, line);
  std::istringstream in(line);
  in >> word;
  ProcessorTime time;
  for (int column = 0, ticks = 0; column < 8 && in >> ticks; ++column) {
    time.all += ticks;
    if (column != 3 && column != 4) time.busy += ticks;  // idle, and waiting for disks
  }
  return time;
}

double children_ticks() {
  rusage use{};
  getrusage(RUSAGE_CHILDREN, &use);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
  return 100 * (seconds(use.ru_utime) + seconds(use.ru_stime));  // Linux counts 100 ticks a second
}

std::atomic<pid_t> g_program{0};  // the process group that runs now; 0: none

// A signal that ends us ends the program that we run, and what it started, too. While the program starts, the signal waits.
class EndTogether {
 public:
  EndTogether() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : kSignals) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, &mask_);
    for (size_t i = 0; i < kSignals.size(); ++i) before_[i] = std::signal(kSignals[i], end);
  }
  ~EndTogether() {
    for (size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], before_[i]);
    with(0);
  }
  void with(pid_t program) {
    g_program = program;
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  EndTogether(const EndTogether&) = delete;
  EndTogether& operator=(const EndTogether&) = delete;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  static void end(int number) {
    if (const pid_t program = g_program; program > 0) kill(-program, SIGTERM);
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  std::array<void (*)(int), kSignals.size()> before_{};
  sigset_t mask_{};
};

double last_figure(const std::string& output, const std::regex& figure) {
  double value = std::numeric_limits<double>::quiet_NaN();
  for (std::sregex_iterator at(output.begin(), output.end(), figure), end; at != end; ++at) value = std::strtod((*at)[1].str().c_str(), nullptr);
  return value;
}

// Reads until the program closes its output or the time is over. Looks for its neighbours every fifth of a second, later every second.
bool ran_to_its_end(Process& process, double timeout_s, std::string& output, GpuNeighbours& neighbours) {
  constexpr size_t kMostOutput = size_t{16} << 20;
  const double begin = prof::steady_seconds(), until = begin + timeout_s;
  double next_look = begin + 0.2;
  while (prof::steady_seconds() < until) {
    const auto more = process.output(100);
    if (!more) break;
    if (const double now = prof::steady_seconds(); now >= next_look) neighbours.look(process.id()), next_look = now + (now < begin + 1 ? 0.2 : 1);
    output += *more;
    if (output.size() > kMostOutput) output.erase(0, output.size() - kMostOutput / 2);
  }
  while (prof::steady_seconds() < until)
    if (process.wait(100)) return true;
  process.signal(SIGKILL);
  process.wait();
  return false;
}

}  // namespace

void check_figure(const std::string& figure) {
  try {
    if (std::regex(figure).mark_count() == 1) return;
  } catch (const std::regex_error&) {
    throw Failure("--figure " + figure + ": this is no regular expression.");
  }
  throw Failure("--figure " + figure + ": put one pair of parentheses around the number, as in \"step ([0-9.]+)\".");
}

GateMeasurement run_program(const GateProgram& program) try {
  GateMeasurement result;
  GpuNeighbours neighbours(program.users);
  neighbours.look(0);
  const ProcessorTime before = processor_time();
  const double own_before = children_ticks(), begin = prof::steady_seconds();
  std::string output;
  EndTogether together;
  Process process(program.command, Process::Output::CapturedWithErrors, {}, {.group = true});
  together.with(process.id());
  if (!ran_to_its_end(process, program.timeout_s, output, neighbours)) {
    result.failure = "it did not end within " + duration_text(program.timeout_s) + ".";
    return result;
  }
  const double seconds = prof::steady_seconds() - begin;
  const int status = process.wait();
  const ProcessorTime after = processor_time();
  neighbours.look(0);
  result.shared_gpu = neighbours.any();
  if (after.all > before.all) result.others = std::max(0.0, (after.busy - before.busy - (children_ticks() - own_before)) / (after.all - before.all));
  if (status != 0) {
    const std::string line(last_line(output));
    result.failure = "it ended with status " + std::to_string(status) + (line.empty() ? "." : ": " + line);
    return result;
  }
  result.value = program.figure.empty() ? seconds : last_figure(output, std::regex(program.figure));
  if (std::isnan(result.value)) result.failure = "it printed nothing that matches --figure " + program.figure + ".";
  return result;
} catch (const Failure& failure) {  // it cannot be started
  return {.failure = failure.what()};
}

}  // namespace ws::app
