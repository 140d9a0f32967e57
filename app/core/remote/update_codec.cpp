#include "app/core/remote/update_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_map>

#include "profiling/annotate/annotate.h"
#include "profiling/annotate/code_stack.h"
#include "profiling/base/byte_reader.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/run_file/run_schema.h"
#include "profiling/run_file/span_codec.h"
#include "profiling/trace/batch_codec.h"

namespace ws::app {
namespace {

using nlohmann::json;

enum class NewsKind : uint8_t { Steps = 1, News = 2, Ops = 3, Trace = 4, Epochs = 5 };

constexpr size_t kMostInFrame = 4096;  // steps or epochs; small enough for a slow line
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string frame(NewsKind kind, std::string_view payload) { return frame_of(static_cast<uint8_t>(kind), payload); }

// NaN is null in JSON.
double real(const JsonInput& value) { return value.there() && !value.is_null() ? value.number(kUnknown) : kUnknown; }

// Stores the same byte of all values together, because the high bytes hardly differ.
void put_planes(ByteWriter& to, const std::vector<uint32_t>& values) {
  for (int shift = 24; shift >= 0; shift -= 8)
    for (const uint32_t value : values) to.value(static_cast<uint8_t>(value >> shift));
}

std::vector<uint32_t> take_planes(ByteReader& from, size_t count, const char* what) {
  std::vector<uint32_t> values(count);
  for (int shift = 24; shift >= 0; shift -= 8) {
    const std::string_view plane = from.raw(count, what);
    for (size_t i = 0; i < count; ++i) values[i] |= static_cast<uint32_t>(static_cast<uint8_t>(plane[i])) << shift;
  }
  return values;
}

constexpr double kTick = 1e-7;  // seconds; resolution of the times

// About 6 bytes per step. The losses are exact, the times have a resolution of 0.1 µs.
std::string packed_steps(std::span<const StepResult> steps) {
  ByteWriter to;
  int64_t step = 0, time = 0;
  std::vector<uint32_t> losses, accuracies;
  for (const StepResult& s : steps) {
    const int64_t now = std::llround(s.finished_s / kTick);
    to.signed_varint(s.step - step - 1);
    to.signed_varint(now - time);
    step = s.step, time = now;
    losses.push_back(std::bit_cast<uint32_t>(s.loss)), accuracies.push_back(std::bit_cast<uint32_t>(s.accuracy));
  }
  put_planes(to, losses);
  put_planes(to, accuracies);
  return prof::quickly_packed(to.bytes());
}

void read_steps(std::string_view payload, std::vector<StepResult>& steps) {
  ByteReader head(payload, "The losses");
  const auto count = head.value<uint32_t>("their number");
  const std::string plain = prof::unpacked(head.raw(head.left(), "the values"));
  ByteReader from(plain, "The losses");
  if (count > kMostInFrame || count > plain.size()) from.fail("claims too many of them");
  uint64_t step = 0, time = 0;  // unsigned: hostile values may wrap around
  std::vector<StepResult> read(count);
  for (StepResult& s : read) {
    s.step = static_cast<int64_t>(step += static_cast<uint64_t>(from.signed_varint("a step")) + 1);
    s.finished_s = static_cast<double>(static_cast<int64_t>(time += static_cast<uint64_t>(from.signed_varint("a time")))) * kTick;
  }
  const auto losses = take_planes(from, count, "losses"), accuracies = take_planes(from, count, "accuracies");
  from.expect_end();
  for (size_t i = 0; i < count; ++i)
    read[i].loss = std::bit_cast<float>(losses[i]), read[i].accuracy = std::bit_cast<float>(accuracies[i]);
  steps.insert(steps.end(), read.begin(), read.end());
}

std::string packed_epochs(std::span<const EpochResult> epochs) {
  ByteWriter to;
  for (const EpochResult& e : epochs) {
    to.signed_varint(e.epoch);
    to.signed_varint(e.step);
    for (const double value : {e.wall_s, e.train_loss, e.train_accuracy}) to.value(value);
    to.value(static_cast<uint8_t>(e.test.has_value()));
    if (!e.test) continue;
    to.value(e.test->loss);
    to.value(e.test->accuracy);
    to.signed_varint(e.test->rows);
  }
  return prof::quickly_packed(to.bytes());
}

EpochResult read_epoch(ByteReader& from) {
  EpochResult e{from.signed_varint("an epoch"), from.signed_varint("a step"), from.value<double>("a time"),
                from.value<double>("a loss"), from.value<double>("an accuracy"), {}};
  if (from.value<uint8_t>("a mark") == 0) return e;
  const auto loss = from.value<double>("a loss"), accuracy = from.value<double>("an accuracy");
  e.test = Evaluation{loss, accuracy, from.signed_varint("rows")};
  return e;
}

void read_epochs(std::string_view payload, std::vector<EpochResult>& epochs) {
  const std::string plain = prof::unpacked(payload);
  ByteReader from(plain, "The epochs");
  for (size_t i = 0; from.left() > 0; ++i) {
    if (i == kMostInFrame) from.fail("has too many of them");
    epochs.push_back(read_epoch(from));
  }
}

json to_json(const AllocatorCalls& c) { return {c.allocate, c.free, c.device_allocate, c.device_free}; }

AllocatorCalls calls_of(const JsonInput& in) {
  const auto numbers = in.items();
  if (numbers.size() != 4) in.refuse("four numbers");
  return {numbers[0].whole(0), numbers[1].whole(0), numbers[2].whole(0), numbers[3].whole(0)};
}

json to_json(const Progress& p) {
  return {{"epoch", p.epoch},
          {"epochs", p.epochs},
          {"step", p.step},
          {"steps", p.steps},
          {"elapsed_s", p.elapsed_s},
          {"left_s", p.left_s},
          {"samples_per_s", p.samples_per_s},
          {"memory", {p.memory.used, p.memory.reserved, p.memory.peak, p.memory.peak_reserved, p.memory.parameter_bytes}},
          {"calls", to_json(p.calls)},
          {"paused", p.paused},
          {"started", p.started}};
}

Progress progress_of(const JsonInput& in) {
  Progress p{in.at("epoch").whole(0), in.at("epochs").whole(0), in.at("step").whole(0), in.at("steps").whole(0),
             real(in.at("elapsed_s")), real(in.at("left_s")), real(in.at("samples_per_s"))};
  const auto memory = in.at("memory").items();
  if (memory.size() != 5) in.at("memory").refuse("five numbers");
  p.memory = {memory[0].whole(0), memory[1].whole(0), memory[2].whole(0), memory[3].whole(0), memory[4].whole(0)};
  p.calls = calls_of(in.required("calls"));
  p.paused = in.at("paused").flag(false);
  p.started = in.at("started").whole(0);
  return p;
}

json to_json(const Summary& s) {
  return {{"status", to_string(s.status)},
          {"message", s.message},
          {"steps", s.steps},
          {"epochs", s.epochs},
          {"loss", s.final_train_loss},
          {"test_loss", s.test_loss},
          {"test_accuracy", s.test_accuracy},
          {"wall_s", s.wall_s},
          {"prepare_s", s.prepare_s},
          {"us_per_step", s.us_per_step},
          {"samples_per_s", s.samples_per_s},
          {"peak_bytes", s.peak_bytes},
          {"calls", to_json(s.calls)},
          {"device", s.device},
          {"spec", ws::to_json(s.spec)}};
}

RunStatus status_of(const JsonInput& in) {
  const std::string text = in.text();
  for (RunStatus status :
       {RunStatus::Finished, RunStatus::Stopped, RunStatus::Failed, RunStatus::TargetReached, RunStatus::TimeUp})
    if (to_string(status) == text) return status;
  in.refuse("how a run ended");
}

Summary summary_of(const JsonInput& in) {
  Summary s;
  s.status = status_of(in.required("status"));
  s.message = in.at("message").text();
  s.steps = in.at("steps").whole(0), s.epochs = in.at("epochs").whole(0);
  s.final_train_loss = real(in.at("loss")), s.test_loss = real(in.at("test_loss"));
  s.test_accuracy = real(in.at("test_accuracy")), s.wall_s = real(in.at("wall_s"));
  s.prepare_s = in.at("prepare_s").number(0);
  s.us_per_step = real(in.at("us_per_step")), s.samples_per_s = real(in.at("samples_per_s"));
  s.peak_bytes = in.at("peak_bytes").whole(0);
  s.calls = calls_of(in.required("calls"));
  s.device = in.at("device").text();
  s.spec = parse_spec(dumped(in.required("spec").value()));
  return s;
}

json to_json(const prof::FollowStatus& f) {
  return {{"programs", f.programs}, {"running", f.running}, {"spans", f.spans},     {"steps", f.steps},
          {"kernels", f.kernels},   {"copies", f.copies},   {"calls", f.calls},     {"allocations", f.allocations},
          {"dropped", f.dropped},   {"left_out", f.left_out}, {"problem", f.problem}};
}

prof::FollowStatus follow_status_of(const JsonInput& in) {
  const auto number = [&in](const char* key) { return static_cast<uint64_t>(in.at(key).whole(0, 0)); };
  prof::FollowStatus f;
  f.programs = static_cast<int>(in.at("programs").whole(0, 0, 1 << 20));
  f.running = static_cast<int>(in.at("running").whole(0, 0, 1 << 20));
  f.spans = number("spans"), f.steps = number("steps"), f.kernels = number("kernels"), f.copies = number("copies");
  f.calls = number("calls"), f.allocations = number("allocations"), f.dropped = number("dropped");
  f.left_out = number("left_out"), f.problem = in.at("problem").text();
  return f;
}

json news_of(const RemoteUpdate& u) {
  json out = json::object();
  for (const Change& c : u.run.changes)
    out["changes"].push_back({{"step", c.step}, {"key", c.key}, {"from", c.from}, {"to", c.to}});
  for (const RunMessage& m : u.run.messages) out["messages"].push_back({{"text", m.text}, {"problem", m.problem}});
  if (u.run.plan || u.recompiled) out["recompiled"] = true;
  if (u.run.summary) out["summary"] = to_json(*u.run.summary), out["account"] = prof::to_meta(u.run.account);
  if (!u.results.empty()) out["results"] = u.results;
  if (!u.files.empty()) out["files"] = u.files;
  if (u.exit_status) out["exit_status"] = *u.exit_status;
  return out;
}

prof::RunSummary account_of(const JsonInput& in) {
  prof::MetaMap meta;
  for (const auto& [key, value] : in.entries()) meta[key] = value.text();
  return prof::from_meta(std::move(meta));
}

bool can_be_set(const Change& change) {
  try {
    RunSpec tried;
    set_field(tried, change.key, change.to);
    return true;
  } catch (const Failure&) {
    return false;
  }
}

// Another version may have choices that this one does not know. They are only reported.
void read_change(const JsonInput& in, RunUpdate& run) {
  const Change change{in.at("step").whole(0), in.at("key").text(), in.at("from").text(), in.at("to").text()};
  if (can_be_set(change)) return run.changes.push_back(change);
  run.messages.push_back({"Step " + std::to_string(change.step) + ": " + change.key + " is now " + change.to +
                          ". This version of Warpsight does not know that choice."});
}

void read_news(std::string_view text, RemoteUpdate& u) {
  const json parsed = parse_json(text, "News");
  const JsonInput in(parsed, "");
  for (const JsonInput& change : in.at("changes").items()) read_change(change, u.run);
  for (const JsonInput& m : in.at("messages").items())
    u.run.messages.push_back({m.at("text").text(), m.at("problem").flag(false)});
  if (const JsonInput progress = in.at("progress"); progress.there()) u.run.progress = progress_of(progress);
  if (const JsonInput recording = in.at("recording"); recording.there()) u.recording = follow_status_of(recording);
  u.recompiled |= in.at("recompiled").flag(false);
  if (const JsonInput summary = in.at("summary"); summary.there()) {
    u.run.summary = summary_of(summary);
    u.run.account = account_of(in.at("account"));
  }
  for (const JsonInput& entry : in.at("results").items()) u.results.push_back(entry.text());
  for (const JsonInput& file : in.at("files").items()) u.files.push_back(file.text());
  if (const JsonInput status = in.at("exit_status"); status.there()) u.exit_status = static_cast<int>(status.whole(0, -1, 1000));
}

json to_json(const prof::OpInfo& op) {
  return {op.name, op.detail, op.layer, op.phase, static_cast<int>(op.meaning), op.flops, op.bytes};
}

json to_json(const prof::CodeStack& stack) {
  json frames = {stack.own};
  for (const prof::CodeFrame& frame : stack.frames) frames.push_back({frame.path, frame.line, frame.function});
  return frames;
}

std::shared_ptr<const prof::CodeStack> stack_of(const JsonInput& in) {
  const auto parts = in.items();
  if (parts.size() < 2) in.refuse("a stack");
  auto stack = std::make_shared<prof::CodeStack>();
  stack->own = static_cast<size_t>(parts[0].whole(0, 0, static_cast<int64_t>(parts.size()) - 1));
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto frame = parts[i].items();
    if (frame.size() != 3) in.refuse("a frame of a stack");
    stack->frames.push_back({frame[0].text(), static_cast<int>(frame[1].whole(0, 0, std::numeric_limits<int>::max())), frame[2].text()});
  }
  return stack;
}

// Each stack once; an op that has one names its number as the eighth part.
json ops_message(size_t first, size_t end) {
  json message = {{"first", first}, {"ops", json::array()}, {"stacks", json::array()}};
  std::unordered_map<const prof::CodeStack*, size_t> numbers;
  for (; first < end; ++first) {
    const prof::OpInfo op = prof::op_info(static_cast<prof::OpTag>(first));
    json& entry = message["ops"].emplace_back(to_json(op));
    if (!op.stack) continue;
    const auto [at, fresh] = numbers.try_emplace(op.stack.get(), numbers.size());
    if (fresh) message["stacks"].push_back(to_json(*op.stack));
    entry.push_back(at->second);
  }
  return message;
}

prof::OpInfo op_of(const JsonInput& in, const std::vector<std::shared_ptr<const prof::CodeStack>>& stacks) {
  const auto parts = in.items();
  if (parts.size() != 7 && parts.size() != 8) in.refuse("an op");
  prof::OpInfo op{parts[0].text(), parts[1].text(), parts[2].text(), parts[3].text(),
                  static_cast<prof::Meaning>(parts[4].whole(0, 0, static_cast<int64_t>(prof::kMeanings) - 1)), parts[5].whole(0),
                  parts[6].whole(0)};
  if (parts.size() == 8) op.stack = stacks.at(static_cast<size_t>(parts[7].whole(0, 0, static_cast<int64_t>(stacks.size()) - 1)));
  return op;
}

}  // namespace

std::string UpdateWriter::news(const RemoteUpdate& update) {
  std::string frames;
  if (const size_t known = prof::registered_ops(); known > ops_sent_) {
    frames = frame(NewsKind::Ops, dumped(ops_message(ops_sent_, known)));
    ops_sent_ = known;
  }
  if (const json rest = news_of(update); !rest.empty()) frames += frame(NewsKind::News, dumped(rest));
  return frames;
}

std::string UpdateWriter::now(const RemoteUpdate& update) {
  json state = json::object();
  if (update.run.progress) state["progress"] = to_json(*update.run.progress);
  if (update.recording) state["recording"] = to_json(*update.recording);
  return state.empty() ? std::string() : frame(NewsKind::News, dumped(state));
}

std::string UpdateWriter::curves(const Curves& curves) {
  std::string frames;
  for (size_t at = 0; at < curves.steps.size(); at += kMostInFrame) {
    const auto part = std::span(curves.steps).subspan(at, std::min(kMostInFrame, curves.steps.size() - at));
    ByteWriter to;
    to.value(static_cast<uint32_t>(part.size()));
    to.raw(packed_steps(part));
    frames += frame(NewsKind::Steps, to.bytes());
  }
  for (size_t at = 0; at < curves.epochs.size(); at += kMostInFrame)
    frames += frame(NewsKind::Epochs,
                    packed_epochs(std::span(curves.epochs).subspan(at, std::min(kMostInFrame, curves.epochs.size() - at))));
  return frames;
}

std::string UpdateWriter::trace(const prof::TraceBatch& batch) {
  return frame(NewsKind::Trace, prof::quickly_packed(prof::encode_batch(batch)));
}

void UpdateReader::read_ops(std::string_view text) {
  const json parsed = parse_json(text, "Ops");
  const JsonInput in(parsed, "");
  const auto first = static_cast<size_t>(in.required("first").whole(0, 1, 0xffff));
  std::vector<prof::OpInfo> ops;
  std::vector<std::shared_ptr<const prof::CodeStack>> stacks;
  for (const JsonInput& stack : in.at("stacks").items()) stacks.push_back(stack_of(stack));
  for (const JsonInput& op : in.required("ops").items()) {
    if (stacks.empty() && op.items().size() == 8) op.refuse("an op without a stack");
    ops.push_back(op_of(op, stacks));
  }
  if (first + ops.size() > 0xffff) in.refuse("fewer ops");
  const size_t count = ops.size();
  const prof::OpTag here = prof::register_ops(std::move(ops));
  ops_.resize(std::max(ops_.size(), first + count), prof::kNoOp);
  for (size_t i = 0; i < count; ++i) ops_[first + i] = static_cast<prof::OpTag>(here + i);
}

void UpdateReader::read(const Frame& frame, RemoteUpdate& into) {
  switch (static_cast<NewsKind>(frame.kind)) {
    case NewsKind::Steps: return read_steps(frame.payload, into.run.steps);
    case NewsKind::Epochs: return read_epochs(frame.payload, into.run.epochs);
    case NewsKind::News: return read_news(frame.payload, into);
    case NewsKind::Ops: return read_ops(frame.payload);
    case NewsKind::Trace:
      into.run.traces.push_back(prof::decode_batch(prof::unpacked(frame.payload), ops_));
      return;
  }
  // Ignore other frames: a newer version may send more kinds.
}

}  // namespace ws::app
