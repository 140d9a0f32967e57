// A rank other than rank 0: executes what rank 0 asks until the training is over.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/passes/compile.h"
#include "engine/ranks/rank_messages.h"
#include "engine/ranks/rank_processes.h"

namespace ws {

class RankWorker {
 public:
  // Checks that the request is possible here. The result makes the executor and may wait for the other ranks.
  using Connect = std::function<std::unique_ptr<Executor>()>;
  using Prepare = std::function<Connect(const RankRequest&)>;
  using Started = std::function<void(const CompiledPlan&, const Model&, Executor&)>;  // called at the first plan
  RankWorker(RankProcesses& processes, const data::Dataset& data, Prepare prepare, Started started)
      : processes_(processes), data_(data), prepare_(std::move(prepare)), started_(std::move(started)) {}

  std::string run();  // returns the outcome that rank 0 sends. Throws Failure if rank 0 fails or ends.
  int64_t steps() const { return steps_; }
  const RunSpec& spec() const { return spec_; }
  const RankUse& use() const { return use_; }
  const std::string& device() const { return device_; }

 private:
  std::string answer(const RankMessage& question);
  void prepare(std::string_view request);
  void load(std::string_view bytes);
  void bind(std::string_view bytes);
  void run_steps(std::string_view bytes);

  RankProcesses& processes_;
  const data::Dataset& data_;
  Prepare prepare_;
  Connect connect_;
  Started started_;
  RunSpec spec_;
  Model model_;
  std::unique_ptr<Executor> executor_;
  std::string device_;
  RankUse use_;
  int64_t steps_ = 0;
};

// Averages gradients with the other ranks through the channel to rank 0.
std::shared_ptr<cpu::RankAverage> average_through(RankChannel& channel);

}  // namespace ws
