// The files of a recorded program that runs in several processes.
#pragma once
#include <string>
#include <vector>

namespace ws::prof {

// "rank 1 of 2", from what torchrun, mpirun or srun put into the environment; empty for a program that none of them started.
std::string rank_text();

// Removes the files of processes that gave the GPU no work: launchers, unless none gave any, and workers of data loaders. If the
// file that was asked for, which is the first, goes, the next takes its name. Files that are still written stay as they are.
void fold_processes(const std::vector<std::string>& files);

}  // namespace ws::prof
