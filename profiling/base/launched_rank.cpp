#include "profiling/base/launched_rank.h"

#include <algorithm>
#include <cstdlib>

namespace ws {
namespace {

struct RankNames {
  const char *rank, *ranks, *local_rank, *local_ranks;
};
// Slurm: SLURM_NTASKS is set in a batch script as well, where only one process runs. The step's variables belong to
// srun. SLURM_STEP_TASKS_PER_NODE may be "4(x2)": the first number counts.
constexpr RankNames kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"}};

int number(const char* name) {
  const char* value = std::getenv(name);
  return value && *value >= '0' && *value <= '9' ? std::atoi(value) : -1;
}

}  // namespace

LaunchedRank launched_rank() {
  for (const RankNames& names : kLaunchers)
    if (number(names.rank) >= 0 && number(names.ranks) > 1)
      return {number(names.rank), number(names.ranks), std::max(0, number(names.local_rank)),
              std::max(0, number(names.local_ranks)), std::max(0, number("TORCHELASTIC_RESTART_COUNT"))};
  return {};
}

std::string incomplete_rank() {
  const auto said = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(name) + (value ? "=" + std::string(value) : " is not set");
  };
  for (const RankNames& names : kLaunchers) {
    const bool rank = number(names.rank) >= 0, several = number(names.ranks) > 1;
    const bool other_rank = std::getenv(names.rank) && number(names.rank) != 0;  // rank 0 of one may be alone
    if ((several && !rank) || (other_rank && !several)) return said(names.rank) + ", " + said(names.ranks);
  }
  return {};
}

}  // namespace ws
