#include "engine/cpu/rank_average.h"

#include "engine/cpu/cpu_ops.h"

namespace ws::cpu {

// Ranks already share the processor. A product on several threads would only make them wait for each other. One thread
// also gives the same bits in each process.
RankAverage::RankAverage() { products_on_one_thread(true); }
RankAverage::~RankAverage() { products_on_one_thread(false); }

}  // namespace ws::cpu
