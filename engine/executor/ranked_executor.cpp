#include "engine/executor/ranked_executor.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "engine/passes/compile.h"
#include "profiling/annotate/annotate.h"
#include "profiling/base/text.h"

namespace ws {
namespace {

// True if the plans of ranks with as many rows differ: each rank has its own random numbers.
bool has_numbers_of_a_rank(const Plan& plan) {
  return std::ranges::any_of(plan.ops, [](const Op& op) { return op.kind == OpKind::Dropout || op.preparation.is_random(); });
}

// A thread that does one task at a time for a rank.
class RankThread {
 public:
  RankThread() : thread_([this] { loop(); }) {}
  ~RankThread() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  RankThread(const RankThread&) = delete;
  RankThread& operator=(const RankThread&) = delete;

  void start(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
    wake_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !work_; });
  }
  // Returns false if the task still runs after this time.
  bool wait_for(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    return wait_awake(most, [&](auto slice) { return wake_.wait_for(lock, slice, [this] { return !work_; }); });
  }

 private:
  void loop() {
    prof::marks_steps() = false;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return work_ || ended_; });
      if (!work_) return;
      const auto work = work_;
      lock.unlock();
      work();
      lock.lock();
      work_ = nullptr;
      wake_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::function<void()> work_;
  bool ended_ = false;
  std::thread thread_;
};

// Mean weighted by rows; NaN stays NaN.
struct Mean {
  double loss = 0, accuracy = 0;
  int64_t rows = 0;
  void add(double rank_loss, double rank_accuracy, int64_t count) {
    if (count == 0) return;
    loss += rank_loss * static_cast<double>(count);
    accuracy += rank_accuracy * static_cast<double>(count);
    rows += count;
  }
  double mean(double sum) const { return sum / static_cast<double>(std::max<int64_t>(1, rows)); }
};

class RankedExecutor final : public Executor {
 public:
  RankedExecutor(int ranks, std::shared_ptr<RankGroup> group, const MakeRank& make)
      : group_(std::move(group)), ranks_(static_cast<size_t>(ranks)), threads_(static_cast<size_t>(ranks) - 1) {
    for (auto& thread : threads_) thread = std::make_unique<RankThread>();
    try {
      each([&](int rank, Rank& r) { r.executor = make(rank); });
    } catch (...) {
      release();
      throw;
    }
  }
  ~RankedExecutor() override { release(); }

  std::string device_name() const override {
    return several_text(ranks_.size(), ranks_[0].executor->device_name());
  }

  void load(const Model& model, const data::Dataset& data, const RunSpec& spec) override {
    model_ = model;
    data_ = &data;
    full_rows_ = spec.train.batch == 0 ? data.train.rows : std::min(spec.train.batch, data.train.rows);
    each([&](int, Rank& r) { r.executor->load(model, data, spec); });
  }
  void set_state(const TrainState& state) override {
    each([&](int, Rank& r) { r.executor->set_state(state); });
  }
  TrainState state() override { return ranks_[0].executor->state(); }  // equal on every rank

  // Binding a new plan allocates memory. Waits for all results first, because an average may wait for this rank.
  void bind(const Plan& plan) override {
    if (seen_.insert(plan.id).second) each([&](int, Rank& r) { r.executor->results(r.results, true); });
    each([&](int rank, Rank& r) {
      const bool same = rank == 0 || (rank_rows(rank, plan.step_rows).count == plan.batch && !has_numbers_of_a_rank(plan));
      r.executor->bind(same ? plan : compile(plan.spec, model_, plan.step_rows, rank).plan);
    });
  }
  std::vector<std::string> notes() const override { return ranks_[0].executor->notes(); }

  // Gives each rank its own order: its share of the first step, then of the second step, and so on.
  void begin_epoch(std::span<const uint32_t> order) override {
    const auto rows = static_cast<int64_t>(order.size());
    each([&](int rank, Rank& r) {
      std::vector<uint32_t> mine;
      for (int64_t first = 0; first < rows; first += full_rows_) {
        const RankRows part = rank_rows(rank, std::min(full_rows_, rows - first));
        const auto share = order.subspan(static_cast<size_t>(first + part.first), static_cast<size_t>(part.count));
        mine.insert(mine.end(), share.begin(), share.end());
      }
      r.executor->begin_epoch(mine);
    });
  }

  void run(int64_t first_step, int64_t first_row, std::span<const float> lrs) override {
    const int64_t rows_onward = full_rows_ < data_->train.rows ? full_rows_ : 0;
    for (size_t done = 0; done < lrs.size();) {
      const auto before = static_cast<int64_t>(done);
      const auto part = lrs.subspan(done, steps_at_once(first_step + before, lrs.size() - done));
      const int64_t row = first_row + before * rows_onward;
      const auto steps = [&](int rank, Rank& r) {
        r.executor->run(first_step + before, row / full_rows_ * rank_rows(rank, full_rows_).count, part);
      };
      each(steps, true);
      done += part.size();
    }
  }

  void results(std::vector<StepResult>& out, bool wait) override {
    each([&](int, Rank& r) { r.executor->results(r.results, wait); });
    join_results(out);
  }
  void catch_up(std::vector<StepResult>& out, int64_t steps) override {
    each([&](int, Rank& r) { r.executor->catch_up(r.results, steps); });
    join_results(out);
  }

  Evaluation evaluate(Part part, RankRows wanted) override {
    const RankRows rows = whole(wanted, (part == Part::Test ? data_->test : data_->train).rows);
    std::vector<Evaluation> parts(ranks_.size());
    each([&](int rank, Rank& r) {
      const RankRows mine = rank_rows(rank, rows.count);
      if (mine.count > 0)
        parts[static_cast<size_t>(rank)] = r.executor->evaluate(part, {rows.first + mine.first, mine.count});
    });
    Mean mean;
    for (const Evaluation& e : parts) mean.add(e.loss, e.accuracy, e.rows);
    return {mean.mean(mean.loss), mean.mean(mean.accuracy), mean.rows};
  }
  std::vector<float> predict(std::span<const float> x, int64_t rows) override {
    return ranks_[0].executor->predict(x, rows);
  }

  // Sum over all ranks.
  MemoryUse memory() const override {
    MemoryUse sum;
    for (const Rank& r : ranks_) {
      const MemoryUse use = r.executor->memory();
      sum.used += use.used, sum.reserved += use.reserved;
      sum.peak += use.peak, sum.peak_reserved += use.peak_reserved;
      sum.parameter_bytes += use.parameter_bytes;
    }
    return sum;
  }
  AllocatorCalls allocator_calls() const override {
    AllocatorCalls sum;
    for (const Rank& r : ranks_) sum += r.executor->allocator_calls();
    return sum;
  }

 private:
  struct Rank {
    std::unique_ptr<Executor> executor;
    std::deque<StepResult> waiting;   // results that are still missing on other ranks
    std::vector<StepResult> results;  // new results
  };

  // Runs work(rank, state) for all ranks at once and waits for all of them. Rethrows the first failure that a rank
  // caused itself. `of_steps`: every rank needs about the same time.
  template <class Work>
  void each(Work&& work, bool of_steps = false) {
    const auto guarded = [&](size_t i) {
      const prof::RankScope here(static_cast<int>(i));
      try {
        work(static_cast<int>(i), ranks_[i]);
      } catch (const std::exception& problem) {
        const std::lock_guard lock(problem_mutex_);
        if (!first_problem_) first_problem_ = std::current_exception();
        const std::string what = problem.what();
        group_->abandon(what.starts_with("Rank ") ? what : "Rank " + std::to_string(i) + " failed: " + what);
      }
    };
    for (size_t i = 1; i < ranks_.size(); ++i) threads_[i - 1]->start([&guarded, i] { guarded(i); });
    guarded(0);
    if (group_->patience() && of_steps) time_out_late(*group_->patience());
    for (auto& thread : threads_) thread->wait();
    if (const auto problem = std::exchange(first_problem_, nullptr)) std::rethrow_exception(problem);
  }

  // The ranks meet where the trace begins or ends to record: otherwise it would hold a part of a step of some ranks.
  static size_t steps_at_once(int64_t step, size_t left) {
    auto* listener = prof::listener();
    const int64_t alike = listener ? listener->steps_traced_alike(step) : static_cast<int64_t>(left);
    return std::min(left, static_cast<size_t>(std::max<int64_t>(1, alike)));
  }

  void time_out_late(std::chrono::milliseconds patience) {
    for (size_t i = 0; i < threads_.size(); ++i)
      if (!threads_[i]->wait_for(patience)) group_->abandon(late_ranks_text(std::to_string(i + 1), patience));
  }

  void release() noexcept {
    for (size_t i = 1; i < ranks_.size(); ++i) threads_[i - 1]->start([this, i] { ranks_[i].executor.reset(); });
    ranks_[0].executor.reset();
    for (auto& thread : threads_) thread->wait();
  }

  RankRows rank_rows(int rank, int64_t rows) const {
    return rows_of_rank(rows, rank, static_cast<int>(ranks_.size()));
  }
  int64_t rows_of_step(int64_t step) const {
    const int64_t rows = data_->train.rows, steps = (rows + full_rows_ - 1) / full_rows_;
    return (step + 1) % steps ? full_rows_ : rows - (steps - 1) * full_rows_;
  }

  // Joins the results of the steps that every rank has finished.
  void join_results(std::vector<StepResult>& out) {
    size_t ready = SIZE_MAX;
    for (Rank& r : ranks_) {
      r.waiting.insert(r.waiting.end(), r.results.begin(), r.results.end());
      r.results.clear();
      ready = std::min(ready, r.waiting.size());
    }
    for (; ready > 0; --ready) {
      StepResult joined = ranks_[0].waiting.front();
      Mean mean;
      for (size_t i = 0; i < ranks_.size(); ++i) {
        const StepResult& result = ranks_[i].waiting.front();
        mean.add(static_cast<double>(result.loss), static_cast<double>(result.accuracy), rank_rows(static_cast<int>(i), rows_of_step(joined.step)).count);
        joined.finished_s = std::max(joined.finished_s, result.finished_s);
        ranks_[i].waiting.pop_front();
      }
      joined.loss = static_cast<float>(mean.mean(mean.loss));
      joined.accuracy = static_cast<float>(mean.mean(mean.accuracy));
      out.push_back(joined);
    }
  }

  std::shared_ptr<RankGroup> group_;
  std::vector<Rank> ranks_;
  std::vector<std::unique_ptr<RankThread>> threads_;  // for rank 1 and higher
  std::mutex problem_mutex_;
  std::exception_ptr first_problem_;
  Model model_;
  const data::Dataset* data_ = nullptr;
  std::set<std::string> seen_;  // ids of plans bound so far
  int64_t full_rows_ = 1;  // rows of every step except the last of an epoch
};

}  // namespace

std::unique_ptr<Executor> make_ranked_executor(int ranks, std::shared_ptr<RankGroup> group, const MakeRank& make) {
  return std::make_unique<RankedExecutor>(ranks, std::move(group), make);
}

}  // namespace ws
