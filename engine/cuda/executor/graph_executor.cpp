#include "engine/cuda/executor/graph_executor.h"

#include <algorithm>

namespace ws::cuda {
namespace {

constexpr size_t kGraphsKept = 24;  // per plan: full graphs, the rest of the epoch, and parts cut off by pauses

// Ends the capture on every exit from the scope, so the stream is usable after a failure inside.
class Capture {
 public:
  Capture(cudaStream_t stream, AllocatorStack& memory) : stream_(stream), memory_(memory) {
    // Relaxed mode: during the capture a caching pool may need a new segment from the device.
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    open_ = true;
    memory_.recording(true);
  }
  ~Capture() {
    memory_.recording(false);
    if (!open_) return;
    Graph broken;
    if (cudaStreamEndCapture(stream_, broken.out()) != cudaSuccess) cudaGetLastError();
  }
  Graph end() {
    Graph graph;
    CUDA_CHECK(cudaStreamEndCapture(stream_, graph.out()));
    open_ = false;
    return graph;
  }

 private:
  cudaStream_t stream_;
  AllocatorStack& memory_;
  bool open_ = false;
};

// The kernel that advances the graph's step counter belongs to no op of the plan. This tag names it in a trace.
prof::OpTag clock_tag() {
  static const prof::OpTag tag =
      prof::register_ops({{"advance", "advances the step counter of the graph", "", "input", prof::Meaning::Other}});
  return tag;
}

}  // namespace

void GraphExecutor::run(DevicePlan& bound, AllocatorStack& memory, int64_t first_step, int64_t row, int64_t steps) {
  const int64_t most = std::clamp<int64_t>(bound.steps_a_graph(), 1, StepTables::kCapacity / 4);
  for (int64_t done = 0; done < steps;) {
    const int64_t count = std::min(most, steps - done);
    launch(bound, memory, first_step + done, row + done * bound.rows_onward(), count);
    done += count;
    place_.tables.steps_enqueued(first_step + done);
  }
}

void GraphExecutor::launch(DevicePlan& bound, AllocatorStack& memory, int64_t first_step, int64_t row, int64_t steps) {
  const cudaStream_t stream = place_.stream;
  const int slot = place_.feed.stage(bound, stream, row);
  const BufferId rows =
      bound.feed == Feed::Staged ? bound.y : bound.x;  // x may be a converted copy, which is the same for each slot
  const GraphKey key{steps, bound.address[index(rows)],
                     bound.feed == Feed::Gather ? place_.feed.order_address() : nullptr, prof::listener() != nullptr};
  const bool first_time = std::ranges::find(bound.graphs, key, &CapturedGraph::key) == bound.graphs.end();
  const cudaGraphExec_t exec = find_or_capture(bound, memory, key);
  place_.tables.set_clock({stream}, {first_step, row});
  if (auto* listener = prof::listener()) listener->steps_launched(first_step, steps);
  const prof::StepScope scope(first_step);
  CUDA_CHECK(cudaGraphLaunch(exec, stream));
  if (first_time) memory.graph_launched();
  place_.tables.clock_moved(steps, steps * bound.rows_onward());
  place_.feed.staged_step_enqueued(stream, slot);
  if (bound.plan.spec.exec.sync != SyncPolicy::OnRead) CUDA_CHECK(cudaStreamSynchronize(stream));
}

cudaGraphExec_t GraphExecutor::find_or_capture(DevicePlan& bound, AllocatorStack& memory, const GraphKey& key) {
  auto& graphs = bound.graphs;
  const auto found = std::ranges::find(graphs, key, &CapturedGraph::key);
  if (found != graphs.end()) {
    graphs.splice(graphs.begin(), graphs, found);
    return graphs.front().exec;
  }
  graphs.push_front({key, capture(bound, memory, key.steps)});
  if (graphs.size() > kGraphsKept) {
    CUDA_CHECK(cudaStreamSynchronize(place_.stream));
    graphs.pop_back();
  }
  return graphs.front().exec;
}

GraphExec GraphExecutor::capture(DevicePlan& bound, AllocatorStack& memory, int64_t steps) {
  const prof::PhaseScope phase("capture");
  Capture scope(place_.stream, memory);
  const int64_t together = takes_many_steps(bound) ? steps : 1;
  for (int64_t i = 0; i < steps; i += together) {
    stream_.step(bound, memory, place_.tables.at(i), true, together);
    // The rows of step i + 1 follow the rows of step i.
    if (bound.feed == Feed::View) {
      for (BufferId id : {bound.x, bound.y})
        bound.address[index(id)] = static_cast<char*>(bound.address[index(id)]) + bound.plan.buffer(id).bytes();
    }
  }
  {
    const prof::OpScope scope_of_clock(clock_tag());
    advance({place_.stream.get(), true}, place_.tables.clock(), steps, steps * bound.rows_onward());
  }
  const Graph graph = scope.end();
  memory.pin(true);
  GraphExec exec;
  CUDA_CHECK(cudaGraphInstantiate(exec.out(), graph, 0));
  CUDA_CHECK(cudaGraphUpload(exec, place_.stream));
  return exec;
}

}  // namespace ws::cuda
