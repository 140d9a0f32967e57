// The passes: Plan → Plan, each switchable.
#pragma once
#include "engine/plan/plan.h"

namespace ws {

Plan insert_all_reduce(Plan plan);  // nothing for one rank
Plan fuse(Plan plan, Fusion level);
Plan place_memory(Plan plan, Allocator allocator);
Plan insert_sync(Plan plan, SyncPolicy policy);

}  // namespace ws
