// Opens files in a recorded program without touching its descriptors: on a thread whose table of descriptors is its own. The
// program may close any number meanwhile, and sees none of ours.
#pragma once
#include <cstdint>
#include <functional>

namespace ws::prof {

// Starts the thread, once. Without it, and in a forked child, work is done where it is asked for.
void begin_own_files();

// Does the work on that thread, and waits for it. Work must open and close its files itself. Returns the CPU time in ns that
// the other thread took. Calls inside of work are direct.
int64_t with_own_files(const std::function<void()>& work);

}  // namespace ws::prof
