// Starts the process that writes the run file of a recorded program.
#pragma once
#include <string>

#include "profiling/recording/frame_ring.h"

namespace ws::prof {

// The program notices nothing of it: no signal, no child that it could wait for, no handler of fork() runs, and the writer
// keeps none of its files and no terminal. The writer gets the number of the ring as its argument. Returns the number of the process. Throws Failure.
int start_writer(const std::string& program, const FrameRing& ring);

}  // namespace ws::prof
