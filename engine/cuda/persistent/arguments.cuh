// The arguments of one launch of a persistent kernel. The host includes this file, and the run-time compiler gets its
// text.
#pragma once

namespace ws::cuda::persistent {

constexpr int kMostLayers = 6;

struct LayerState {
  float *w, *b;      // weights (in, out); biases (1, out), null: none
  float *w_m, *b_m;  // first moments, null: none
  float *w_v, *b_v;  // second moments, null: none
};

// The fp16 loss scale, in the form in which the other launch modes keep it in device memory.
struct ScaleState {
  float scale, inverse;
  int good_steps, found_inf, skipped;
};

// Written by the first thread whose wait exceeds its limit.
struct FaultReport {
  unsigned code;  // 0: none; else what the thread waited for
  unsigned block, thread, step;
};

// The stamps of one lane, which is a group of warps of a block that work together. Begin and end are recorded by two
// clocks: nanoseconds of the GPU's timer, and cycles of the multiprocessor, which are cheaper to read.
struct StampHead {
  unsigned long long begin_ns, end_ns;
  unsigned begin_clock, end_clock;
  unsigned count, multiprocessor;
};
struct Stamp {
  unsigned clock;  // cycles when the part began
  unsigned what;   // step of the launch << 8 | kind of part << 4 | layer, or a value of Waits for a wait
};
// Kinds of parts of a step.
enum Parts { kPartEnd, kPartRows, kPartForward, kPartLosses, kPartBackward, kPartUpdate, kPartWait };

struct Arguments {
  const void* rows;       // prepared features; see each kernel
  const void* targets;    // int labels (rows), or float targets (rows, outputs)
  const unsigned* order;  // null: rows in stored order
  LayerState layers[kMostLayers];
  const float* rates;  // ring over the step number
  float* metrics;      // ring of (loss sum, correct rows, rows)
  float* partials;     // (steps, blocks, 2): loss sum and correct rows of each block
  void* exchange;         // buffer through which blocks of different clusters exchange data
  unsigned exchange_base;  // messages of this launch have larger numbers; earlier launches used none of these
  ScaleState* scale;
  FaultReport* fault;
  long long first_step;      // counted over the run
  long long first_row;       // of the first step, as a position in the order
  long long rows_onward;     // row offset from one step to the next
  long long ring;            // number of entries in rates and metrics
  unsigned long long limit;  // maximum clock cycles of a wait
  int steps, batch;          // batch: rows of a step
  StampHead* stamp_heads;    // one per lane; written only by kernels compiled with stamps
  Stamp* stamps;             // (lanes, stamps_each)
  int stamps_each, stamped_steps;
  int lose_message_at;       // for tests: the step in which block 1 sends nothing; -1: none
  float momentum, beta1, beta2, epsilon, weight_decay;
};

}  // namespace ws::cuda::persistent
