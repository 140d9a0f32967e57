#include "app/window/end_signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

namespace ws::app {
namespace {

int g_event = -1;  // the signal handler writes it, the event loop of the window waits for it

void note(int) {
  const int before = errno;
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = write(g_event, &one, sizeof one);
  errno = before;
}

int open_event() { return g_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

}  // namespace

EndSignals::EndSignals() : notifier_(open_event(), QSocketNotifier::Read) {
  connect(&notifier_, &QSocketNotifier::activated, this, [this] {
    notifier_.setEnabled(false);
    emit received();
  });
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // under nohup the program must continue
  }
}

}  // namespace ws::app
