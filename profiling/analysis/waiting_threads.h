// Takes out of sampled stacks what threads do that wait for others: in a lock, for a queue, a socket or a pipe.
#pragma once
#include <cstddef>
#include <string>

#include "profiling/analysis/program_tables.h"

namespace ws::prof {

struct WorkingStacks {
  HostStacks stacks;      // all of the main thread, also where it waits, and the work of others
  size_t waiting = 0;     // threads that waited
  int64_t waited_ns = 0;  // the time that is not in `stacks`
};
WorkingStacks without_waits(HostStacks stacks);
// True if most of its newest samples are waits. False for the main thread.
bool mostly_waits(const Trace& trace, const Track& samples);
std::string waiting_text(const WorkingStacks& stacks);  // "2 waiting threads, 3.54 s"; empty: none waited

}  // namespace ws::prof
