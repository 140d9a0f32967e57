// Decides where the weights of a network live while one kernel trains many steps. Explains with numbers why a network
// does not fit. Needs no CUDA.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/executor/device_info.h"
#include "engine/plan/plan.h"

namespace ws::cuda::persistent {

enum class Residency {
  None,     // does not fit
  Rows,     // every thread holds all weights and some rows of the batch
  Block,    // weights in the shared memory of one block
  Cluster,  // weights in the registers of 16 blocks; several such clusters share a larger batch
  Copies,   // first layer as in Cluster, the other layers in every block
  Grid,     // weights in the shared memory of most multiprocessors
  Flow,     // weights in the L2 cache, and the rows of the whole data set flow through all multiprocessors
};
std::string_view to_string(Residency residency);

// The properties that the kernel is specialised for.
struct Network {
  std::vector<int64_t> widths;  // inputs, hidden..., outputs
  int64_t batch = 0;            // rows of a step
  bool all_rows = false;        // the batch is the whole training set
  bool bias = true;
  Activation activation = Activation::Relu;
  LossKind loss = LossKind::CrossEntropy;
  Optimizer optimizer = Optimizer::Sgd;
  Precision precision = Precision::Fp32;
  bool decays = false;
  // The largest magnitude of each input over the rows: the largest of these, and the smallest that is not zero.
  float largest_input = 1, smallest_input = 1;
};
Network network_of(const RunSpec& spec, const Plan& plan, int64_t train_rows);

struct Limits {
  int compute = 90;           // capability times ten
  int shared_bytes = 232448;  // per block
  int registers = 65536;      // per multiprocessor
  int multiprocessors = 132;
  // Maximum number of clusters of four and of eight blocks that run at the same time, with one block per
  // multiprocessor. Some multiprocessors of a group stay unused: an H200 with 132 multiprocessors runs 30 and 15.
  int clusters_of_4 = 30, clusters_of_8 = 15;
  int clusters_of_16 = 4;  // a power of two; an H100 with 132 multiprocessors would run 7
  int64_t l2_bytes = 50 << 20;
};

Limits limits_of(const DeviceInfo& device);

struct Constant {
  std::string name;
  int64_t value;
};

// One line of the budget: "shared memory  118 KB of 227 KB".
struct BudgetLine {
  std::string what, text;
  int64_t used = 0, limit = 0;
};

struct Placement {
  Residency residency = Residency::None;
  std::string why_not;   // one sentence if nothing fits
  std::string why_slow;  // one sentence if a CUDA graph is at least as fast
  std::string remark;    // a line for text() about how the kernel computes
  int blocks = 1, threads = 0;
  int cluster = 1;  // blocks per cluster
  int64_t shared_bytes = 0;
  int64_t exchange_bytes = 0;       // size of the buffer through which clusters communicate
  int64_t row_bytes = 0;            // size of a prepared row over all blocks; 0: the kernel reads rows in place
  int64_t row_group = 1;            // prepared rows come in groups of so many
  std::vector<Constant> constants;  // constants in the source
  std::vector<BudgetLine> budget;
  int64_t most_steps = 2048;  // maximum per launch, so that a launch ends within about 20 ms
};
Placement place(const Network& network, const Limits& limits);

std::string summary(const Placement& placement);  // "cluster of 16 blocks of 384 threads"
// Returns several lines for the plan page and `warpsight plan`.
std::string text(const Placement& placement);

}  // namespace ws::cuda::persistent
