#include "engine/cpu/inspector.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/cpu/attention.h"
#include "engine/cpu/cpu_executor.h"
#include "profiling/base/philox.h"

namespace ws {

// The network for texts of one length; for other data there is one length only.
struct Inspector::Sized {
  std::shared_ptr<const Model> model;
  std::vector<BufferId> outputs;
  std::unique_ptr<Executor> executor;
  Inspection* keep = nullptr;  // while a row is inspected
  bool current = false;        // it has the newest weights

  void watch(const Op& op, const OperandValues& values) {
    if (!keep) return;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (std::ranges::find(op.out, outputs[i]) != op.out.end()) {
        const std::span<float> v = values(outputs[i]);
        keep->outputs[i].assign(v.begin(), v.end());
      }
    if (op.kind == OpKind::Attention) keep_shares(op, values);
  }

  void keep_shares(const Op& op, const OperandValues& values) {
    const Heads& h = op.heads;
    const auto of_op = [&](const NetworkLayer& l) { return l.layer.kind == LayerKind::Attention && l.number == op.layer; };
    const auto layer = std::ranges::find_if(model->layers, of_op) - model->layers.begin();
    std::vector<float>& shares = keep->attention[static_cast<size_t>(layer)];
    shares.resize(static_cast<size_t>(h.heads * h.time * h.time));
    const cpu::Matrix<float> qkv{values(op.in[0]).data(), h.time, 3 * h.heads * h.head_width};
    const cpu::Matrix<float> lse{values(op.out[1]).data(), h.heads, h.time};
    for (int64_t head = 0; head < h.heads; ++head)
      cpu::attention_shares<float>(h, head, qkv, lse, {shares.data() + head * h.time * h.time, h.time, h.time});
  }
};

namespace {

constexpr int64_t kShortestText = 32;
constexpr uint64_t kWritingStream = 0x7772697465;

// The lengths that networks are made for: powers of two up to the context.
int64_t fitting_time(int64_t symbols, int64_t context) {
  int64_t time = kShortestText;
  while (time < symbols) time *= 2;
  return std::min(time, context);
}

RunSpec on_cpu_without_fusion(RunSpec spec) {
  spec.exec = ExecSpec{};
  spec.exec.device = Device::Cpu;
  spec.exec.fusion = Fusion::Off;
  return spec;
}

// `chance` from 0 to 1 decides among the symbols by their shares.
int32_t drawn_symbol(std::span<const float> scores, double temperature, double chance) {
  const auto best = std::ranges::max_element(scores);
  if (!(temperature > 0)) return static_cast<int32_t>(best - scores.begin());
  std::vector<double> shares;
  double sum = 0;
  for (const float score : scores) {
    shares.push_back(std::exp(static_cast<double>(score - *best) / temperature));
    sum += shares.back();
  }
  double left = chance * sum;
  for (size_t i = 0; i + 1 < shares.size(); ++i)
    if ((left -= shares[i]) < 0) return static_cast<int32_t>(i);
  return static_cast<int32_t>(shares.size() - 1);
}

// The first `time` symbols of what the layers of a longer text give.
void cut(Inspection& made, int64_t time, int64_t inspected) {
  for (size_t i = 0; i < made.outputs.size(); ++i) {
    const int64_t each = static_cast<int64_t>(made.outputs[i].size()) / inspected;
    made.outputs[i].resize(static_cast<size_t>(each * time));
    const std::vector<float> all = std::exchange(made.attention[i], {});
    const int64_t heads = static_cast<int64_t>(all.size()) / (inspected * inspected);
    for (int64_t row = 0; row < heads * inspected; ++row)
      if (row % inspected < time)
        made.attention[i].insert(made.attention[i].end(), all.begin() + row * inspected, all.begin() + row * inspected + time);
  }
}

}  // namespace

Inspector::Inspector(const RunSpec& spec, const data::Dataset& data)
    : spec_(on_cpu_without_fusion(spec)), input_(input_shape(data)), outputs_(data.outputs), pixels_(make_model(spec.model, data).pixels) {
  nothing_.task = spec.model.loss == LossKind::CrossEntropy ? data::Task::Classification : data::Task::Regression;
  nothing_.outputs = outputs_;
}

Inspector::~Inspector() = default;

void Inspector::set_parameters(std::vector<std::vector<float>> parameters) {
  state_.parameters = std::move(parameters);
  for (auto& [time, net] : by_time_) net->current = false;
}

Inspector::Sized& Inspector::sized(int64_t time) {
  std::unique_ptr<Sized>& net = by_time_[time];
  if (!net) {
    net = std::make_unique<Sized>();
    const LayerShape input = input_.is_text() ? LayerShape::symbols(time) : input_;
    Model model = make_model(spec_.model, input, outputs_);
    model.pixels = pixels_;
    net->model = std::make_shared<const Model>(std::move(model));
    net->outputs = layer_outputs(spec_, *net->model, 1);
    net->executor = make_watched_cpu_executor(
        [of = net.get()](const Plan&, const Op& op, const OperandValues& values) { of->watch(op, values); });
    net->executor->load(*net->model, nothing_, spec_);
  }
  if (net->current) return *net;
  TrainState state = state_;  // a shorter text needs the first positions only
  for (size_t i = 0; i < state.parameters.size(); ++i)
    state.parameters[i].resize(static_cast<size_t>(net->model->parameters[i].elements()));
  net->executor->set_state(state);
  net->current = true;
  return *net;
}

std::vector<float> Inspector::predict(Sized& net, std::span<const float> row) {
  std::vector<float> whole(row.begin(), row.end());
  whole.resize(static_cast<size_t>(net.model->inputs));  // what stands behind a text does not change what is before it
  return net.executor->predict(whole, 1);
}

Inspection Inspector::inspect(std::span<const float> row) {
  const auto symbols = static_cast<int64_t>(row.size());
  Sized& net = sized(input_.is_text() ? fitting_time(symbols, input_.time) : 0);
  Inspection made;
  made.model = net.model;
  made.outputs.resize(net.model->layers.size());
  made.attention.resize(net.model->layers.size());
  net.keep = &made;
  predict(net, row);
  net.keep = nullptr;
  if (input_.is_text() && symbols < net.model->input.time) cut(made, symbols, net.model->input.time);
  return made;
}

int32_t Inspector::next_symbol(const std::vector<int32_t>& text, const Sampling& how, uint64_t at) {
  const auto seen = std::min(static_cast<int64_t>(text.size()), input_.time);
  const std::vector<float> row(text.end() - seen, text.end());
  const std::vector<float> scores = predict(sized(fitting_time(seen, input_.time)), row);
  const auto last = std::span(scores).subspan(static_cast<size_t>((seen - 1) * outputs_), static_cast<size_t>(outputs_));
  return drawn_symbol(last, how.temperature, static_cast<double>(data::uniform_at(how.seed, kWritingStream, at)));
}

std::vector<int32_t> Inspector::write(std::vector<int32_t> text, const Sampling& how, const std::function<bool()>& more) {
  const size_t given = text.size();
  if (given == 0 || !input_.is_text()) return {};
  for (int64_t i = 0; i < how.symbols && more(); ++i) text.push_back(next_symbol(text, how, static_cast<uint64_t>(i)));
  return {text.begin() + static_cast<std::ptrdiff_t>(given), text.end()};
}

}  // namespace ws
