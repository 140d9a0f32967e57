#include "app/cli/interrupt.h"

#include <chrono>
#include <csignal>

namespace ws::cli {
namespace {

std::atomic<bool> g_interrupted{false};  // set by a signal handler on any thread
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

std::atomic<bool> g_terminal_closed{false};

void note(int signal) {
  if (signal == SIGHUP) g_terminal_closed = true;
  g_interrupted = true;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second signal has its default effect
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // under nohup the program must continue
}

bool interrupted() { return g_interrupted; }
bool terminal_closed() { return g_terminal_closed; }

void catch_again() {
  g_interrupted = false;
  catch_interrupts();
}

CancelOnInterrupt::CancelOnInterrupt() {
  catch_interrupts();
  watch_ = std::jthread([this](const std::stop_token& done) {
    while (!done.stop_requested()) {
      if (interrupted()) cancel = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
}

}  // namespace ws::cli
