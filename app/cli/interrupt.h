// Ctrl+C or a closed terminal asks for a clean stop. A second Ctrl+C ends the program at once.
#pragma once
#include <atomic>
#include <thread>

namespace ws::cli {

void catch_interrupts();
bool interrupted();
bool terminal_closed();  // True if the interrupt was a closed terminal or a lost login
void catch_again();  // call after an interrupt was handled, to catch the next one

// Turns Ctrl+C into a stop that keeps the results so far.
class CancelOnInterrupt {
 public:
  CancelOnInterrupt();
  std::atomic<bool> cancel{false};

 private:
  std::jthread watch_;
};

}  // namespace ws::cli
