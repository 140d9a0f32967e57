// A plan with device addresses: what an executor needs to run its ops repeatedly.
#pragma once
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/executor/own_kernel.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/plan/op_tags.h"
#include "engine/plan/plan.h"

namespace ws::cuda {

// How the batch buffers get their rows.
enum class Feed : uint8_t {
  Whole,   // the batch is the whole data set, used in place
  View,    // the rows are adjacent in the shuffled set; the host sets the address
  Clock,   // as View, but kernels find the rows by the device clock, so one graph serves every batch
  Gather,  // a kernel gathers the rows into the batch buffers
  Staged,  // the host gathers and copies
};

// Identifies what a captured graph was made for.
struct GraphKey {
  int64_t steps = 1;
  const void* rows = nullptr;   // address of the rows, or of the first rows with Feed::Clock
  const void* order = nullptr;  // Feed::Gather
  bool marked = false;          // captured while a profiler was recording, so that it knows every node
  bool operator==(const GraphKey&) const = default;
};

struct CapturedGraph {
  GraphKey key;
  GraphExec exec;
};

struct DevicePlan {
  Plan plan;
  OpTags tags;
  std::vector<void*> address;                  // by buffer
  std::vector<std::vector<UpdateItem>> items;  // by op, for Update and UpdateAll
  std::vector<std::string> notes;              // by op: the kernels that a product uses
  std::vector<std::shared_ptr<const OwnKernel>> own;  // by op: kernels of a person; empty or null: built in
  BufferId x = BufferId::None, y = BufferId::None;
  Feed feed = Feed::Gather;
  DeviceBlock<char> own_x, own_y;   // Feed::Gather, and the converted rows of Feed::Staged
  std::list<CapturedGraph> graphs;  // most recently used first

  bool all_rows = false;  // the batch is the whole set, the same in every step

  int64_t rows() const { return plan.batch; }
  int64_t rows_onward() const { return all_rows ? 0 : plan.batch; }  // row offset from one step to the next
  // A graph holds one step if the host has work between two steps.
  int64_t steps_a_graph() const {
    const bool host_between = feed == Feed::Staged || plan.spec.exec.sync != SyncPolicy::OnRead;
    return host_between ? 1 : plan.spec.exec.graph_steps;
  }
  bool is_persistent() const { return plan.spec.exec.launch == Launch::Persistent; }
  bool launches_graphs() const { return plan.spec.exec.launch == Launch::Graph; }
};

}  // namespace ws::cuda
