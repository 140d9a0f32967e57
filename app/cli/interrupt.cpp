#include "app/cli/interrupt.h"

#include <csignal>

namespace ws::cli {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void note(int) { g_interrupted = 1; }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one has its usual effect
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return g_interrupted != 0; }

}  // namespace ws::cli
