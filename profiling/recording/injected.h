// Inside a recorded program: the one recorder of this process, which the driver or the program's Python begins.
#pragma once
#include "profiling/recording/program_writer.h"

namespace ws::prof {

// Begins the recording that the environment asks for, once. From the driver while it starts, or before.
void begin_recording(bool by_driver);
// nullptr: nothing is recorded, or this process was forked from one that is: it has none of the threads.
ProgramWriter* recorder();
bool in_forked_child();

}  // namespace ws::prof
