// The rank of this process, as its launcher says: torchrun, mpirun or srun.
#pragma once
#include <string>

namespace ws {

struct LaunchedRank {
  int rank = -1;  // -1: no launcher started several ranks
  int ranks = 1;
  int local_rank = 0;   // among the ranks of this host
  int local_ranks = 0;  // ranks of this host; 0: unknown
  int restart = 0;      // how often torchrun has started all ranks anew
};

// Reads the variables that the launchers set.
LaunchedRank launched_rank();
// Returns what is wrong with a launcher's variables, if one of rank and number of ranks is missing; "" if nothing is.
std::string incomplete_rank();

}  // namespace ws
