// Handles the run files of a recorded program that runs in several processes.
#pragma once
#include <string>
#include <vector>

#include "profiling/formats/join_ranks.h"

namespace ws::prof {

std::string rank_text();  // "rank 1 of 2"; empty: no launcher started this process

// Removes the files of processes without GPU work: launchers, and workers of data loaders. If no process did GPU work,
// launchers stay. Files of the ranks of one program become one file. The file that remains has the name of the first
// one, which the user asked for. Does nothing while a file is still written. If the ranks cannot be joined, for example
// because the disk is full, their files stay.
void fold_processes(const std::vector<std::string>& files);

}  // namespace ws::prof
