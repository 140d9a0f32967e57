// CUPTI with as little around it as possible: the yardstick for what the collector adds.
#pragma once
#include <cstdint>

namespace ws::prof::testing {

// Records: kernels, copies, memsets. Joined: those and what tells which op launched them: call records and pushed ids.
enum class BareKinds { GraphRuns, Records, Joined, Full };
void bare_start(BareKinds kinds);
void bare_push(uint64_t id);
void bare_pop();
uint64_t bare_stop();  // records seen

}  // namespace ws::prof::testing
