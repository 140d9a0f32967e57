// How many ranks share the batches of a run.
#pragma once

namespace ws::app {

class Run;

int rank_count(const Run& run);  // from its trace, else from its choices; 1: it has no ranks

}  // namespace ws::app
