// A plan's ops by name, in order.
#pragma once
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace ws {

inline std::vector<std::string> kinds(const Plan& plan) {
  std::vector<std::string> out;
  for (const Op& op : plan.ops) out.emplace_back(to_string(op.kind));
  return out;
}

}  // namespace ws
