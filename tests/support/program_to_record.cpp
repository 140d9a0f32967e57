// Stands in for a CUDA program and its driver: starts what is loaded into recorded programs, as the driver would, and
// marks steps. Ends with 0 whatever becomes of the recording.
#include <chrono>
#include <thread>

#include "profiling/annotate/annotate.h"

extern "C" int InitializeInjection();

int main() {
  if (InitializeInjection() != 1) return 1;
  for (int step = 0; step < 50; ++step) {
    const ws::prof::StepScope scope(step);
    const ws::prof::PhaseScope phase("forward");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}
