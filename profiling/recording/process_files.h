// Handles the run files of a recorded program that runs in several processes.
#pragma once
#include <string>
#include <vector>

namespace ws::prof {

// "rank 1 of 2", from the environment that torchrun, mpirun or srun sets. Empty if none of them started the program.
std::string rank_text();

// Removes the files of processes without GPU work: launchers, and workers of data loaders. If no process did GPU work,
// launchers stay. If the first file, which the user asked for, is removed, the next one takes its name. Does nothing
// while a file is still written.
void fold_processes(const std::vector<std::string>& files);

}  // namespace ws::prof
