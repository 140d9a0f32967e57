// Opens files in a recorded program without touching its descriptors: on a thread whose table of descriptors is its own. The
// program may close any number meanwhile, and sees none of ours. Work does not call malloc() (see own_memory.cpp): it reads
// with read(), because a stream or a folder of the C library has a buffer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace ws::prof {

// Starts the thread, once. Without it, and in a forked child, work is done where it is asked for.
void begin_own_files();

// Does the work on that thread, and waits for it. Work must open and close its files itself. Returns the CPU time in ns that
// the other thread took. Calls inside of work are direct.
int64_t with_own_files(const std::function<void()>& work);

// Writes a line to the program's stderr. A program that closed it may have opened a file of its own under that number: such a file
// gets nothing.
void report(const std::string& text);

// Closes all descriptors of the calling thread's table. Does not call malloc().
void close_descriptors();

int64_t worked_ns();  // CPU time of this thread
std::string first_bytes(const std::string& path, size_t most);  // empty if the file cannot be read

}  // namespace ws::prof
