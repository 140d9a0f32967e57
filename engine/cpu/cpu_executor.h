// The reference interpreter: runs every plan with plain loops, op by op.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "engine/cpu/rank_average.h"
#include "engine/executor/executor.h"

namespace ws {

// One of several ranks; without a group it works alone.
struct HostRank {
  std::shared_ptr<cpu::RankAverage> group;
  int rank = 0;
};

// `name` is the result of device_name().
std::unique_ptr<Executor> make_cpu_executor(std::string name = "CPU", HostRank rank = {});
std::unique_ptr<Executor> make_oracle(HostRank rank = {});  // the same interpreter in float64

// Called behind each op of an evaluation or a prediction. `values` reads the operands of this op only.
using OperandValues = std::function<std::span<float>(BufferId)>;
using OpWatch = std::function<void(const Plan& plan, const Op& op, const OperandValues& values)>;
// An interpreter beside a training: it is in no trace, and leaves the training's threads alone.
std::unique_ptr<Executor> make_watched_cpu_executor(OpWatch watch);
// Runs one op of a plan in float64, at the first step with the learning rate kAloneRate. `values`: by buffer; those that the
// op does not use may be empty. Returns the values afterwards.
inline constexpr double kAloneRate = 0.0625;
std::vector<std::vector<float>> run_one_op(const Plan& plan, size_t op, std::vector<std::vector<float>> values);

}  // namespace ws
