// Runs bound plans. Parameters, optimizer state and data live in the executor, outside any plan, so that plans can
// change between two steps.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/plan/model.h"

namespace ws {

struct StepResult {
  int64_t step = 0;       // counted over the whole run, from 0
  float loss = 0;         // mean over the step's rows
  float accuracy = 0;     // share of rows; NaN for regression
  double finished_s = 0;  // when the step ended, in seconds of the host's steady clock, as near as that is known
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // NaN for regression
  int64_t rows = 0;
};

struct MemoryUse {
  int64_t used = 0;      // bytes handed out now
  int64_t reserved = 0;  // bytes taken from the device now
  int64_t peak = 0;      // most bytes handed out
  int64_t peak_reserved = 0;
  int64_t parameter_bytes = 0;  // weights, shadows, optimizer state, data: outside the step
};

struct AllocatorCalls {
  int64_t allocate = 0, free = 0;                // calls that the plan's ops made to the allocator
  int64_t device_allocate = 0, device_free = 0;  // calls that reached the driver
};

// The values that survive a step: enough to go on exactly where another executor stopped.
struct TrainState {
  int64_t step = 0;                            // steps done
  std::vector<std::vector<float>> parameters;  // by ParamId
  std::vector<std::vector<float>> moments[2];  // by ParamId; empty when the optimizer has none
  double loss_scale = 65536;
  int64_t good_steps = 0;  // since the loss scale last changed
};

enum class Part { Train, Test };
inline constexpr RankRows kAllRows{0, -1};  // of a part of the data set, however many
inline RankRows whole(RankRows rows, int64_t all) { return rows.count < 0 ? RankRows{0, all} : rows; }

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string device_name() const = 0;

  // Once, before anything else. The data set outlives the executor.
  virtual void load(const Model& model, const data::Dataset& data, const RunSpec& spec) = 0;
  virtual void set_state(const TrainState& state) = 0;
  virtual TrainState state() = 0;  // waits for the device

  // Makes `plan` the one that run() executes; cheap when the same plan id was bound before.
  virtual void bind(const Plan& plan) = 0;
  // What only binding tells about the ops of that plan: by op, empty where there is nothing to say. May be shorter.
  virtual std::vector<std::string> notes() const { return {}; }
  // Row order from here on (a permutation of the training rows); called before the first step and when the order
  // changes.
  virtual void begin_epoch(std::span<const uint32_t> order) = 0;
  // Runs `lrs.size()` steps of the bound plan; step i trains on rows order[first_row + i·batch ...], a batch of all
  // rows on the same in every step. Returns when the
  // host is free again, which under SyncPolicy::OnRead is before the device is done.
  virtual void run(int64_t first_step, int64_t first_row, std::span<const float> lrs) = 0;
  // Appends the results known so far, in order; with `wait`, all of them.
  virtual void results(std::vector<StepResult>& out, bool wait) = 0;
  // The same, waiting for the results of steps below `steps` only: what was launched after them goes on meanwhile.
  virtual void catch_up(std::vector<StepResult>& out, int64_t) { results(out, true); }

  virtual Evaluation evaluate(Part part, RankRows rows = kAllRows) = 0;
  // Predictions (rows, outputs) for rows of features the caller gives: sample pictures, decision boundary, the fitted
  // line.
  virtual std::vector<float> predict(std::span<const float> x, int64_t rows) = 0;

  virtual MemoryUse memory() const = 0;
  virtual AllocatorCalls allocator_calls() const = 0;
};

// Appends an executor's notes to the ops of its plan. False if none was new.
bool add_notes(Plan& plan, const std::vector<std::string>& notes);

}  // namespace ws
