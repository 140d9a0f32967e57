// Executes bound plans. Parameters, optimizer state and data belong to the executor, not to a plan, so the plan can
// change between two steps.
#pragma once
#include <cstdint>
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
  double finished_s = 0;  // end of the step in seconds of the host's steady clock, as exactly as known
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
  int64_t parameter_bytes = 0;  // weights, shadows, optimizer state, data: memory outside the step
};

struct AllocatorCalls {
  int64_t allocate = 0, free = 0;                // calls of the plan's ops to the allocator
  int64_t device_allocate = 0, device_free = 0;  // calls that reached the driver
  AllocatorCalls& operator+=(const AllocatorCalls& more) {
    allocate += more.allocate, free += more.free;
    device_allocate += more.device_allocate, device_free += more.device_free;
    return *this;
  }
};

// The values that survive a step: another executor can continue exactly from them.
struct TrainState {
  int64_t step = 0;                            // steps done
  std::vector<std::vector<float>> parameters;  // by ParamId
  std::vector<std::vector<float>> moments[2];  // by ParamId; empty if the optimizer has none
  double loss_scale = 65536;
  int64_t good_steps = 0;  // steps since the loss scale last changed
};

enum class Part { Train, Test };
inline constexpr RankRows kAllRows{0, -1};  // all rows of a part of the data set
inline RankRows whole(RankRows rows, int64_t all) { return rows.count < 0 ? RankRows{0, all} : rows; }

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string device_name() const = 0;

  // Call once, before anything else. The data set must outlive the executor.
  virtual void load(const Model& model, const data::Dataset& data, const RunSpec& spec) = 0;
  virtual void set_state(const TrainState& state) = 0;
  virtual TrainState state() = 0;  // waits for the device

  // Selects the plan that run() executes. Cheap if the same plan id was bound before.
  virtual void bind(const Plan& plan) = 0;
  // Returns notes on the ops of the bound plan, indexed by op, that only binding can know. An empty entry means no
  // note; the vector may be shorter than the ops.
  virtual std::vector<std::string> notes() const { return {}; }
  // Sets the row order from here on, a permutation of the training rows. Call before the first step and whenever the
  // order changes.
  virtual void begin_epoch(std::span<const uint32_t> order) = 0;
  // Runs `lrs.size()` steps of the bound plan. Step i trains on rows order[first_row + i·batch ...]; a batch of all
  // rows is the same in every step. Returns when the host is free; with SyncPolicy::OnRead the device may still be
  // working.
  virtual void run(int64_t first_step, int64_t first_row, std::span<const float> lrs) = 0;
  // Appends the results known so far, in order. With `wait`, waits for all results.
  virtual void results(std::vector<StepResult>& out, bool wait) = 0;
  // Like results(), but waits only for steps below `steps`. Later steps continue meanwhile.
  virtual void catch_up(std::vector<StepResult>& out, int64_t) { results(out, true); }

  virtual Evaluation evaluate(Part part, RankRows rows = kAllRows) = 0;
  // Returns predictions (rows, outputs) for the caller's feature rows: sample pictures, decision boundary, fitted line.
  virtual std::vector<float> predict(std::span<const float> x, int64_t rows) = 0;

  virtual MemoryUse memory() const = 0;
  virtual AllocatorCalls allocator_calls() const = 0;
};

// Appends an executor's notes to the ops of its plan. Returns false if no note was new.
bool add_notes(Plan& plan, const std::vector<std::string>& notes);

}  // namespace ws
