// The executor that the trainer uses: binds plans, passes steps to the stream, graph or persistent executor, and turns
// failures into sentences.
#include "engine/cuda/executor/cuda_executor.h"

#include <algorithm>
#include <unordered_map>

#include "engine/cuda/executor/advice.h"
#include "engine/cuda/executor/evaluator.h"
#include "engine/cuda/executor/graph_executor.h"
#include "engine/cuda/executor/persistent_executor.h"
#include "engine/plan/model.h"

namespace ws::cuda {
namespace {

// The first member, so it is destroyed last: after a sticky error it resets the context when all its objects are gone.
struct ContextGuard {
  ContextGuard() = default;
  ~ContextGuard() { reset_lost_context(); }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;
};

constexpr size_t kPlansKept = 6;

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(std::string name, std::unique_ptr<RankLink> link) : link_(std::move(link)), name_(std::move(name)) {
    if (link_) CUDA_CHECK(cudaSetDevice(link_->device()));
  }
  ~CudaExecutor() override {
    if (place_) cudaStreamSynchronize(place_->stream);  // wait, so that running work does not lose its memory
    cudaGetLastError();
  }

  std::string device_name() const override { return name_; }

  void load(const Model& model, const data::Dataset& data, const RunSpec& spec) override {
    model_ = model;
    spec_ = spec;
    try {
      place_ = std::make_unique<Workplace>();
      place_->create(model_, data, spec);
      place_->ranks.link = link_.get();
      stream_ = std::make_unique<StreamExecutor>(*place_);
      graphs_ = std::make_unique<GraphExecutor>(*place_, *stream_);
      persistent_ = std::make_unique<PersistentExecutor>(*place_, model_, data);
      evaluator_ = std::make_unique<Evaluator>(*place_, model_, data);
    } catch (const OutOfMemory& problem) {
      throw OutOfMemory(problem.call, problem.code, advice_for_load(model_, data, spec));
    }
  }

  void set_state(const TrainState& state) override {
    place_->storage.set(place_->stream, state);
    place_->tables.restart(state.step);
    next_step_ = state.step;
  }

  TrainState state() override {
    TrainState state;
    place_->storage.get(place_->stream, state);
    persistent_->check_fault();
    state.step = next_step_;
    return state;
  }

  void bind(const Plan& plan) override {
    if (current_ && current_->plan.id == plan.id) return;
    guarded(plan, [&] { current_ = &bound_for(plan); });
  }

  std::vector<std::string> notes() const override { return current_ ? current_->notes : std::vector<std::string>(); }

  void begin_epoch(std::span<const uint32_t> order) override { place_->feed.order(place_->stream, order); }

  void run(int64_t first_step, int64_t first_row, std::span<const float> lrs) override {
    DevicePlan& bound = *current_;
    guarded(bound.plan, [&] {
      const int64_t most = StepTables::kCapacity / 2;
      for (size_t done = 0; done < lrs.size();) {
        const auto part = lrs.subspan(done, std::min(lrs.size() - done, static_cast<size_t>(most)));
        const int64_t step = first_step + static_cast<int64_t>(done),
                      row = first_row + static_cast<int64_t>(done) * bound.rows_onward();
        place_->tables.announce(place_->stream, step, part);
        const auto count = static_cast<int64_t>(part.size());
        if (bound.is_persistent())
          persistent_->run(bound, step, row, count);
        else
          bound.launches_graphs() ? graphs_->run(bound, *memory_, step, row, count)
                                  : stream_->run(bound, *memory_, step, row, count);
        done += part.size();
      }
      next_step_ = first_step + static_cast<int64_t>(lrs.size());
    });
  }

  void results(std::vector<StepResult>& out, bool wait) override {
    place_->tables.results(place_->stream, out, wait);
    persistent_->check_fault();
  }

  void catch_up(std::vector<StepResult>& out, int64_t steps) override {
    place_->tables.catch_up(place_->stream, out, steps);
    persistent_->check_fault();
  }

  Evaluation evaluate(Part part, RankRows rows) override { return evaluator_->evaluate(spec_, part, rows); }
  std::vector<float> predict(std::span<const float> x, int64_t rows) override {
    return evaluator_->predict(spec_, x, rows);
  }

  MemoryUse memory() const override {
    MemoryUse use;
    if (memory_) memory_->add_to(use);
    use.peak = std::max(use.peak, earlier_peak_);
    if (!evaluator_) return use;  // never loaded, or the load failed: a failed run still asks for this summary
    use.parameter_bytes = place_->storage.bytes() + place_->feed.bytes() + place_->tables.bytes() + evaluator_->bytes() +
                          persistent_->bytes();
    return use;
  }

  AllocatorCalls allocator_calls() const override {
    AllocatorCalls calls = earlier_calls_;
    if (memory_) memory_->add_to(calls);
    return calls;
  }

 private:
  // Adds to an out-of-memory error of a step which buffers are biggest and which batch would fit.
  template <class Work>
  void guarded(const Plan& plan, Work&& work) {
    try {
      work();
    } catch (const OutOfMemory& problem) {
      MemoryUse use;
      if (memory_) memory_->add_to(use);
      throw OutOfMemory(problem.call, problem.code, advice_for_step(plan, model_, use.reserved));
    }
  }

  DevicePlan& bound_for(const Plan& plan) {
    const ExecSpec& exec = plan.spec.exec;
    if (!memory_ || memory_->kind() != exec.allocator) change_allocator(exec);
    if (!(spec_.exec == exec)) evaluator_->forget();
    spec_.exec = exec;
    if (const auto found = plans_.find(plan.id); found != plans_.end()) return found->second;
    if (plans_.size() >= kPlansKept) forget_plans();
    if (exec.allocator == Allocator::Arena) grow_arena(plan);
    DevicePlan& bound = plans_[plan.id];
    try {
      fill(bound, plan);
    } catch (...) {
      plans_.erase(plan.id);
      throw;
    }
    return bound;
  }

  void change_allocator(const ExecSpec& exec) {
    if (memory_) {
      forget_plans();
      memory_->add_to(earlier_calls_);
      MemoryUse use;
      memory_->add_to(use);
      earlier_peak_ = std::max(earlier_peak_, use.peak);
      memory_.reset();
    }
    memory_ = std::make_unique<AllocatorStack>(exec.allocator, exec);
  }

  // Captured graphs hold addresses, so they are destroyed before the memory.
  void forget_plans() {
    CUDA_CHECK(cudaStreamSynchronize(place_->stream));
    current_ = nullptr;
    plans_.clear();
    memory_->pin(false);
  }

  void fill(DevicePlan& bound, const Plan& plan) {
    check_kernels(plan);
    bound.plan = plan;
    bound.tags = OpTags(plan);
    bound.items.resize(plan.ops.size());
    for (size_t i = 0; i < plan.ops.size(); ++i) {
      const Op& op = plan.ops[i];
      if (op.kind == OpKind::Update || op.kind == OpKind::UpdateAll) bound.items[i] = update_items(plan, op);
      if (op.kind == OpKind::LoadBatch) bound.x = op.out[0], bound.y = op.out[1];
    }
    fill_shadows(plan);
    bound.address.assign(plan.buffers.size(), nullptr);
    place_buffers(bound);
    std::string why_not_persistent;
    if (plan.spec.exec.launch == Launch::Auto) choose_launch(bound, why_not_persistent);
    if (bound.is_persistent()) {
      if (plan.spec.exec.launch == Launch::Persistent) persistent_->bind(bound);
      return;
    }
    place_->feed.attach(bound, prepare_products(bound));
    if (plan.spec.exec.launch != Launch::Auto || bound.notes.empty()) return;
    std::string& note = bound.notes.front();
    note += (note.empty() ? "" : "; ") + std::string("auto runs ") +
            (bound.launches_graphs() ? "graphs: " : "op by op: ") + why_not_persistent;
  }

  // Decides what `auto` means for this plan. It is a fixed rule, not a measurement: two runs of one spec give the same
  // bits.
  void choose_launch(DevicePlan& bound, std::string& why_not_persistent) {
    RunSpec& spec = bound.plan.spec;
    const auto allowed = [&](Launch launch) {
      spec.exec.launch = launch;
      const auto reason = why_invalid(spec, true);
      if (reason && launch == Launch::Persistent) why_not_persistent = reason->text;
      return !reason;
    };
    if (allowed(Launch::Persistent)) {
      try {
        persistent_->bind_if_fastest(bound);
        return;
      } catch (const Failure& reason) {
        why_not_persistent = reason.what();
      }
    }
    if (!allowed(Launch::Graph)) spec.exec.launch = Launch::Eager;
  }

  void fill_shadows(const Plan& plan) {
    for (const Buffer& b : plan.buffers)
      if (b.role == Role::Shadow) place_->storage.need_shadows(b.type);
    place_->storage.refresh_shadows({place_->stream.get()});
  }

  void place_buffers(DevicePlan& bound) {
    for (size_t i = 0; i < bound.plan.buffers.size(); ++i) {
      const Buffer& b = bound.plan.buffers[i];
      if (b.role == Role::Parameter) bound.address[i] = place_->storage.parameter(b.param);
      if (b.role == Role::Shadow) bound.address[i] = place_->storage.shadow(b.param);
      if (b.role == Role::State) bound.address[i] = place_->storage.moment(b.slot, b.param);
      if (b.role == Role::Temp && b.offset >= 0) bound.address[i] = memory_->in_arena(b.offset);
    }
  }

  // A larger arena has a new address: every plan gets new addresses and graphs are captured again. If the allocation
  // fails, the old arena is gone too, so every plan that uses its address is dropped.
  void grow_arena(const Plan& plan) {
    try {
      if (!memory_->reserve_arena(place_->stream, plan.arena_bytes)) return;
    } catch (...) {
      current_ = nullptr;
      plans_.clear();  // freeing the arena has waited for the work that used it
      throw;
    }
    for (auto& [id, bound] : plans_) {
      bound.graphs.clear();
      if (!bound.address.empty()) place_buffers(bound);
    }
  }

  // Lets the library choose its algorithms. Returns true if every reader of x can find its rows by the device clock.
  bool prepare_products(DevicePlan& bound) {
    DevicePlan shapes;  // placeholder addresses with the usual alignment
    shapes.plan = bound.plan;
    shapes.address.assign(bound.plan.buffers.size(), reinterpret_cast<void*>(uintptr_t{1} << 20));
    const Launching with{shapes, {place_->stream.get()}, {}, place_->blas, {}, place_->storage};
    bool views = true;
    bound.notes.assign(bound.plan.ops.size(), {});
    for (size_t i = 0; i < bound.plan.ops.size(); ++i) {
      const Op& op = bound.plan.ops[i];
      if (op.own) {
        bound.own.resize(bound.plan.ops.size());
        bound.own[i] = std::make_shared<OwnKernel>(own::contract_of(bound.plan, i), op.own);
        bound.notes[i] = bound.own[i]->note();
        // A batch that is a view moves with the device's clock, which only our own kernels read.
        for (BufferId id : op.in) views = views && bound.plan.buffer(id).role != Role::Batch;
        continue;
      }
      if (op.kind == OpKind::AllReduce && link_) bound.notes[i] = "by " + std::string(link_->name());
      if (convolves(op.kind)) bound.notes[i] = describe(convolution_of(with, op));
      if (op.kind != OpKind::MatMul) continue;
      const Product product = product_of(with, op);
      prepare(place_->blas, bound.plan.spec.exec.matmul, product);
      bound.notes[i] = describe(bound.plan.spec.exec.matmul, product);
      const bool reads_x = op.in[0] == bound.x || op.in[1] == bound.x;
      views = views && (!reads_x || takes_views(bound.plan.spec.exec.matmul, product));
    }
    return views;
  }

  ContextGuard guard_;
  std::unique_ptr<RankLink> link_;
  Model model_;
  RunSpec spec_;
  std::unique_ptr<Workplace> place_;
  std::unique_ptr<AllocatorStack> memory_;
  std::unordered_map<std::string, DevicePlan> plans_;  // by plan id
  DevicePlan* current_ = nullptr;
  std::unique_ptr<StreamExecutor> stream_;
  std::unique_ptr<GraphExecutor> graphs_;
  std::unique_ptr<PersistentExecutor> persistent_;
  std::unique_ptr<Evaluator> evaluator_;
  std::string name_;
  int64_t next_step_ = 0;
  AllocatorCalls earlier_calls_;
  int64_t earlier_peak_ = 0;
};

}  // namespace

bool gpu_lost() { return context_is_lost(); }

std::unique_ptr<Executor> make_cuda_executor(const std::string& device_name, std::unique_ptr<RankLink> link) {
  reset_lost_context();
  if (context_is_lost())
    throw Failure(
        "A GPU fault ended an earlier run, and the driver gives this process no new context. Start the program again to "
        "use the GPU, or choose device cpu.");
  return std::make_unique<CudaExecutor>(device_name, std::move(link));
}

}  // namespace ws::cuda
