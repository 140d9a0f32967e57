// Stands in for a CUDA program and its driver: starts what is loaded into recorded programs, as the driver would, and
// marks steps, 50 or as many as its argument says; "losses" behind it: logs a loss of each. Ends with 0,
// or with its third argument, whatever becomes of the recording.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "profiling/annotate/annotate.h"
#include "profiling/recording/injected.h"

extern "C" int InitializeInjection();

// The part of the recorder that samples stacks is not linked here.
namespace ws::prof {
void sample_native_program() {}
void end_native_samples() {}
}  // namespace ws::prof

int main(int argc, char** argv) {
  if (InitializeInjection() != 1) return 1;
  const int steps = argc > 1 ? std::atoi(argv[1]) : 50;
  ws::prof::ProgramSender* const recorder = argc > 2 ? ws::prof::recorder() : nullptr;
  for (int step = 0; step < steps; ++step) {
    if (recorder) recorder->notes().scalar("loss", 1.0 / (step + 1), step);
    const ws::prof::StepScope scope(step);
    const ws::prof::PhaseScope phase("forward");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return argc > 3 ? std::atoi(argv[3]) : 0;
}
