// What one launch of a persistent kernel is given. The host includes this file; the run-time compiler reads its text.
#pragma once

namespace ws::cuda::persistent {

constexpr int kMostLayers = 6;

struct LayerState {
  float *w, *b;      // weights (in, out); biases (1, out), null: none
  float *w_m, *b_m;  // first moments, null: none
  float *w_v, *b_v;  // second moments, null: none
};

// The loss scale of fp16, as the other launch modes keep it in device memory.
struct ScaleState {
  float scale, inverse;
  int good_steps, found_inf, skipped;
};

// Written by the first thread whose wait outlasts its limit.
struct FaultReport {
  unsigned code;  // 0: none; else what the thread waited for
  unsigned block, thread, step;
};

// Stamps of one lane: some warps of a block that work together. The first and the last moment stand there by both
// clocks: nanoseconds of the GPU's timer, and cycles of the multiprocessor, which cost less to read.
struct StampHead {
  unsigned long long begin_ns, end_ns;
  unsigned begin_clock, end_clock;
  unsigned count, multiprocessor;
};
struct Stamp {
  unsigned clock;  // cycles when the part began
  unsigned what;   // step of the launch << 8 | kind of part << 4 | layer, or what a wait is for
};
// Kinds of parts of a step.
enum Parts { kPartEnd, kPartRows, kPartForward, kPartLosses, kPartBackward, kPartUpdate, kPartWait };

struct Arguments {
  const void* rows;       // prepared features; see each kernel
  const void* targets;    // int labels (rows), or float targets (rows, outputs)
  const unsigned* order;  // null: the rows as they lie
  LayerState layers[kMostLayers];
  const float* rates;  // ring over the step number
  float* metrics;      // ring of (loss sum, correct rows, rows)
  float* partials;     // (steps, blocks, 2): loss sum and correct rows of each block
  void* exchange;         // where blocks of different clusters write to each other
  unsigned exchange_base;  // messages of this launch carry numbers above it, and none did before
  ScaleState* scale;
  FaultReport* fault;
  long long first_step;      // of the run
  long long first_row;       // of the first step, in the order
  long long rows_onward;     // from one step to the next
  long long ring;            // entries of rates and metrics
  unsigned long long limit;  // clock cycles that a wait may last
  int steps, batch;          // batch: rows of a step
  StampHead* stamp_heads;    // one of each lane; only kernels compiled with stamps write any
  Stamp* stamps;             // (lanes, stamps_each)
  int stamps_each, stamped_steps;
  int lose_message_at;       // for tests: the step in which block 1 sends nothing; -1: none
  float momentum, beta1, beta2, epsilon, weight_decay;
};

}  // namespace ws::cuda::persistent
