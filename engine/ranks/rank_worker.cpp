#include "engine/ranks/rank_worker.h"

#include <cstring>
#include <new>
#include <utility>

#include "profiling/base/byte_reader.h"

namespace ws {
namespace {

constexpr const char* kQuestion = "a question of rank 0";

class ChannelAverage final : public cpu::RankAverage {
 public:
  explicit ChannelAverage(RankChannel& channel) : channel_(channel) {}
  void average(int, double share, const Tensors<float>& tensors) override { exchange(share, tensors); }
  void average(int, double share, const Tensors<double>& tensors) override { exchange(share, tensors); }

 private:
  template <class Real>
  void exchange(double share, const Tensors<Real>& tensors) {
    channel_.send(MessageKind::Average, encode(share, tensors));
    const RankMessage averaged = channel_.receive();
    ByteReader in(averaged.bytes, kQuestion);
    for (const auto& tensor : tensors)
      std::memcpy(tensor.data(), in.raw(tensor.size_bytes(), "an average").data(), tensor.size_bytes());
  }
  RankChannel& channel_;
};

template <class T>
T value_in(std::string_view bytes) {
  return ByteReader(bytes, kQuestion).value<T>("a value");
}

std::string encode(const std::vector<StepResult>& results) {
  ByteWriter out;
  out.list(results);
  return out.take();
}

}  // namespace

std::shared_ptr<cpu::RankAverage> average_through(RankChannel& channel) {
  return std::make_shared<ChannelAverage>(channel);
}

std::string RankWorker::run() {
  RankChannel& channel = processes_.channel(0);
  for (;;) {
    const RankMessage question = channel.receive();
    if (question.kind == MessageKind::End) return question.bytes;
    std::string text;
    try {
      text = answer(question);
    } catch (const std::bad_alloc&) {
      channel.send(MessageKind::Failed, "There was not enough memory.");
      continue;
    } catch (const std::exception& problem) {
      channel.send(MessageKind::Failed, problem.what());
      continue;
    }
    ByteWriter out;
    if (executor_) use_ = {executor_->memory(), executor_->allocator_calls()};
    out.value(use_), out.raw(text);
    channel.send(MessageKind::Done, out.bytes());
  }
}

std::string RankWorker::answer(const RankMessage& question) {
  const std::string_view bytes = question.bytes;
  std::vector<StepResult> results;
  ByteWriter out;
  switch (question.kind) {
    case MessageKind::Prepare:
      prepare(bytes);
      return "";
    case MessageKind::Connect:
      executor_ = connect_();
      return device_ = executor_->device_name();
    case MessageKind::Load:
      load(bytes);
      return "";
    case MessageKind::SetState:
      executor_->set_state(decode_state(bytes));
      return "";
    case MessageKind::Bind:
      bind(bytes);
      return "";
    case MessageKind::Order:
      executor_->begin_epoch(ByteReader(bytes, kQuestion).list<uint32_t>("the order"));
      return "";
    case MessageKind::Run:
      run_steps(bytes);
      return "";
    case MessageKind::Results:
      executor_->results(results, value_in<bool>(bytes));
      return encode(results);
    case MessageKind::CatchUp:
      executor_->catch_up(results, value_in<int64_t>(bytes));
      return encode(results);
    case MessageKind::Evaluate: {
      ByteReader in(bytes, kQuestion);
      const auto part = in.value<Part>("the part");
      out.value(executor_->evaluate(part, in.value<RankRows>("the rows")));
      return out.take();
    }
    case MessageKind::Release:
      executor_.reset();
      return "";
    default:
      throw Failure("Rank 0 sent an unknown request.");
  }
}

void RankWorker::prepare(std::string_view request) {
  const RankRequest wanted = decode_request(request);
  spec_ = wanted.spec;
  connect_ = prepare_(wanted);
}

void RankWorker::load(std::string_view bytes) {
  if (value_in<uint32_t>(bytes) != processes_.fingerprint_of(data_))
    throw Failure("its data set " + data_.name + " is not the one of rank 0. Give every host the same data.");
  model_ = make_model(spec_.model, data_);
  executor_->load(model_, data_, spec_);
}

void RankWorker::bind(std::string_view bytes) {
  ByteReader in(bytes, kQuestion);
  const auto rows = in.value<int64_t>("the rows of a step");
  const CompiledPlan compiled = compile(parse_spec(in.text("the choices")), model_, rows, processes_.rank());
  if (const Started started = std::exchange(started_, nullptr)) started(compiled, model_, *executor_);
  executor_->bind(compiled.plan);
}

void RankWorker::run_steps(std::string_view bytes) {
  ByteReader in(bytes, kQuestion);
  const auto step = in.value<int64_t>("the step"), row = in.value<int64_t>("the row");
  const auto rates = in.list<float>("the learning rates");
  executor_->run(step, row, rates);
  steps_ += static_cast<int64_t>(rates.size());
}

}  // namespace ws
