#include "engine/cpu/rank_average.h"

#include "engine/cpu/cores.h"

namespace ws::cpu {

RankAverage::RankAverage() { keep_to_one_core(true); }
RankAverage::~RankAverage() { keep_to_one_core(false); }

}  // namespace ws::cpu
