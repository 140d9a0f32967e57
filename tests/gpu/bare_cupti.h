// CUPTI with as little around it as possible: the yardstick for what the collector adds.
#pragma once
#include <cstdint>
#include <string_view>

namespace ws::prof::testing {

// Records: kernels, copies, memsets. Joined: those and what shows which op launched them: call records, and an id
// pushed for each op that the program marks.
enum class BareKinds { GraphRuns, Records, Joined, Full };
BareKinds bare_kinds(std::string_view name);  // "bare-graph", "bare-records", "bare-joined" or "bare-full"
void bare_start(BareKinds kinds);
uint64_t bare_stop();  // how many records came

}  // namespace ws::prof::testing
