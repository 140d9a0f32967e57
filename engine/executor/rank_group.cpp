#include "engine/executor/rank_group.h"

#include "profiling/base/text.h"

namespace ws {

std::string late_ranks_text(const std::string& ranks, std::chrono::milliseconds waited) {
  return "Rank " + ranks + " does not finish its step. The others have waited for " +
         duration_text(std::chrono::duration<double>(waited).count()) + ".";
}

}  // namespace ws
