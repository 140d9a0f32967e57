#include "engine/ranks/remote_rank.h"

#include "profiling/base/byte_reader.h"

namespace ws {
namespace {

void throw_if_failed(int rank, const RankMessage& message) {
  if (message.kind == MessageKind::Failed) throw Failure("Rank " + std::to_string(rank) + ": " + message.bytes);
}

class RemoteRank final : public Executor {
 public:
  RemoteRank(RankProcesses& processes, int rank, std::shared_ptr<cpu::RankAverage> average)
      : processes_(processes), rank_(rank), average_(std::move(average)) {
    name_ = ask(MessageKind::Connect, {});
  }
  ~RemoteRank() override {
    try {
      ask(MessageKind::Release, {});
    } catch (const std::exception&) {  // that process has ended, and its memory is free
    }
  }

  std::string device_name() const override { return name_; }

  void load(const Model&, const data::Dataset& data, const RunSpec&) override {
    ByteWriter out;
    out.value(processes_.fingerprint_of(data));
    ask(MessageKind::Load, out.bytes());
  }
  void set_state(const TrainState& state) override { ask(MessageKind::SetState, encode(state)); }
  TrainState state() override { throw Failure("Only rank 0 reads the state."); }  // it is equal on every rank

  void bind(const Plan& plan) override {
    ByteWriter out;
    out.value(plan.step_rows), out.text(spec_text(plan.spec));
    ask(MessageKind::Bind, out.bytes());
  }
  void begin_epoch(std::span<const uint32_t> order) override {
    ByteWriter out;
    out.list(std::vector<uint32_t>(order.begin(), order.end()));
    ask(MessageKind::Order, out.bytes());
  }
  void run(int64_t first_step, int64_t first_row, std::span<const float> lrs) override {
    ByteWriter out;
    out.value(first_step), out.value(first_row), out.list(std::vector<float>(lrs.begin(), lrs.end()));
    ask(MessageKind::Run, out.bytes());
  }
  void results(std::vector<StepResult>& out, bool wait) override { take_results(MessageKind::Results, wait, out); }
  void catch_up(std::vector<StepResult>& out, int64_t steps) override {
    take_results(MessageKind::CatchUp, steps, out);
  }

  Evaluation evaluate(Part part, RankRows rows) override {
    ByteWriter out;
    out.value(part), out.value(rows);
    const std::string answer = ask(MessageKind::Evaluate, out.bytes());
    return ByteReader(answer, name_).value<Evaluation>("an evaluation");
  }
  std::vector<float> predict(std::span<const float>, int64_t) override { throw Failure("Only rank 0 predicts."); }

  MemoryUse memory() const override { return use_.memory; }
  AllocatorCalls allocator_calls() const override { return use_.calls; }

 private:
  // Asks the other process and takes part in averages for it until it answers.
  std::string ask(MessageKind kind, std::string_view bytes) {
    RankChannel& channel = processes_.channel(rank_);
    channel.send(kind, bytes);
    for (;;) {
      const RankMessage message = channel.receive();
      throw_if_failed(rank_, message);
      if (message.kind == MessageKind::Done) return answer_in(message.bytes);
      channel.send(MessageKind::Averaged, average_for(rank_, message.bytes, *average_));
    }
  }
  std::string answer_in(std::string_view bytes) {
    ByteReader in(bytes, "an answer of a rank");
    use_ = in.value<RankUse>("the memory use");
    return std::string(in.raw(in.left(), "the answer"));
  }

  template <class Argument>
  void take_results(MessageKind kind, Argument argument, std::vector<StepResult>& out) {
    ByteWriter question;
    question.value(argument);
    const std::string answer = ask(kind, question.bytes());
    const auto results = ByteReader(answer, name_).list<StepResult>("results");
    out.insert(out.end(), results.begin(), results.end());
  }

  RankProcesses& processes_;
  int rank_;
  std::shared_ptr<cpu::RankAverage> average_;
  std::string name_;
  RankUse use_;
};

}  // namespace

void prepare_ranks(RankProcesses& processes, const RankRequest& request) {
  for (int rank = 1; rank < processes.count(); ++rank)
    processes.channel(rank).send(MessageKind::Prepare, encode(request));
  for (int rank = 1; rank < processes.count(); ++rank) throw_if_failed(rank, processes.channel(rank).receive());
}

std::unique_ptr<Executor> make_remote_rank(RankProcesses& processes, int rank,
                                           std::shared_ptr<cpu::RankAverage> average) {
  return std::make_unique<RemoteRank>(processes, rank, std::move(average));
}

}  // namespace ws
