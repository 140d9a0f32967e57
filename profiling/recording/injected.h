// The one recorder inside a recorded program. The driver or the Python hook starts it.
#pragma once
#include <cstdint>

#include "profiling/recording/program_sender.h"

namespace ws::prof {

inline constexpr uint64_t kPythonRanges = 1;  // domain of Python ranges; NVTX domains are addresses

// Begins the recording that the environment requests, once. The driver calls this while it starts, or the Python hook
// before. If it cannot begin, it says why, and the program goes on.
void begin_recording(bool by_driver);
// nullptr if nothing is recorded, or in a forked child, which has none of the recorder's threads.
ProgramSender* recorder();
// The same, and outside of capture ranges nullptr, too.
ProgramSender* active_recorder();
bool in_forked_child();

// Samples the native stacks of a program without Python, at level lines; see warpsight_sampler_start() for others.
void sample_native_program();
void end_native_samples();

}  // namespace ws::prof
