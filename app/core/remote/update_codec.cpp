#include "app/core/remote/update_codec.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "profiling/annotate/annotate.h"
#include "profiling/base/byte_reader.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_fields.h"
#include "profiling/run_file/run_schema.h"
#include "profiling/run_file/span_codec.h"
#include "profiling/trace/batch_codec.h"

namespace ws::app {
namespace {

using nlohmann::json;

enum class NewsKind : uint8_t { Steps = 1, News = 2, Ops = 3, Trace = 4, Epochs = 5 };

constexpr size_t kMostInFrame = 4096;  // steps or epochs; small enough for a slow line

std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string frame(NewsKind kind, std::string_view payload) { return frame_of(static_cast<uint8_t>(kind), payload); }

// The losses are exact, the times have a resolution of 0.1 µs.
std::string packed_steps(std::span<const StepResult> steps) {
  std::vector<prof::Metric> metrics;
  for (const StepResult& s : steps)
    metrics.push_back({s.step, s.finished_s, static_cast<double>(s.loss), static_cast<double>(s.accuracy)});
  return prof::encode_metrics(metrics);
}

void read_steps(std::string_view payload, std::vector<StepResult>& steps) {
  ByteReader from(payload, "The losses");
  const auto count = from.value<uint32_t>("their number");
  if (count > kMostInFrame) from.fail("claims too many of them");
  for (const prof::Metric& m : prof::decode_metrics(from.raw(from.left(), "the values"), count)) steps.push_back(step_of(m));
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

void list(JsonFields& f, AllocatorCalls& c) { f.numbers("calls", {&c.allocate, &c.free, &c.device_allocate, &c.device_free}); }

void list(JsonFields& f, Progress& p) {
  f("epoch", p.epoch), f("epochs", p.epochs), f("step", p.step), f("steps", p.steps);
  f.real("elapsed_s", p.elapsed_s), f.real("left_s", p.left_s), f.real("samples_per_s", p.samples_per_s);
  MemoryUse& m = p.memory;
  f.numbers("memory", {&m.used, &m.reserved, &m.peak, &m.peak_reserved, &m.parameter_bytes});
  list(f, p.calls);
  f("paused", p.paused), f("started", p.started);
}

RunStatus status_of(const JsonInput& in) {
  const std::string text = in.text();
  for (RunStatus status :
       {RunStatus::Finished, RunStatus::Stopped, RunStatus::Failed, RunStatus::TargetReached, RunStatus::TimeUp})
    if (to_string(status) == text) return status;
  in.refuse("how a run ended");
}

void list(JsonFields& f, Summary& s) {
  f.as("status", to_string(s.status), [&s](const JsonInput& in) { s.status = status_of(in); });
  f("message", s.message), f("steps", s.steps), f("epochs", s.epochs);
  f.real("loss", s.final_train_loss), f.real("test_loss", s.test_loss), f.real("test_accuracy", s.test_accuracy);
  f.real("wall_s", s.wall_s), f("prepare_s", s.prepare_s);
  f.real("us_per_step", s.us_per_step), f.real("samples_per_s", s.samples_per_s);
  f("peak_bytes", s.peak_bytes);
  list(f, s.calls);
  f("device", s.device);
  f.as("spec", ws::to_json(s.spec), [&s](const JsonInput& in) {
    if (!in.there()) in.refuse("the settings of the run");
    s.spec = parse_spec(dumped(in.value()));
  });
}

void list(JsonFields& f, prof::FollowStatus& s) {
  f("programs", s.programs, 0, 1 << 20), f("running", s.running, 0, 1 << 20);
  f("spans", s.spans, 0), f("steps", s.steps, 0), f("kernels", s.kernels, 0), f("copies", s.copies, 0), f("calls", s.calls, 0);
  f("allocations", s.allocations, 0), f("dropped", s.dropped, 0), f("left_out", s.left_out, 0), f("problem", s.problem);
}

json news_of(const RemoteUpdate& u) {
  json out = json::object();
  for (const Change& c : u.run.changes)
    out["changes"].push_back({{"step", c.step}, {"key", c.key}, {"from", c.from}, {"to", c.to}});
  for (const RunMessage& m : u.run.messages) out["messages"].push_back({{"text", m.text}, {"problem", m.problem}});
  if (u.run.plan || u.recompiled) out["recompiled"] = true;
  if (u.run.summary) out["summary"] = written(*u.run.summary, list), out["account"] = prof::to_meta(u.run.account);
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
                          ". This version of Warpsight does not know that setting."});
}

void read_news(std::string_view text, RemoteUpdate& u) {
  const json parsed = parse_json(text, "News");
  const JsonInput in(parsed, "");
  for (const JsonInput& change : in.at("changes").items()) read_change(change, u.run);
  for (const JsonInput& m : in.at("messages").items())
    u.run.messages.push_back({m.at("text").text(), m.at("problem").flag(false)});
  if (const JsonInput progress = in.at("progress"); progress.there()) u.run.progress = read_from<Progress>(progress, list);
  if (const JsonInput recording = in.at("recording"); recording.there()) u.recording = read_from<prof::FollowStatus>(recording, list);
  u.recompiled |= in.at("recompiled").flag(false);
  if (const JsonInput summary = in.at("summary"); summary.there()) {
    u.run.summary = read_from<Summary>(summary, list);
    u.run.account = account_of(in.at("account"));
  }
  for (const JsonInput& entry : in.at("results").items()) u.results.push_back(entry.text());
  for (const JsonInput& file : in.at("files").items()) u.files.push_back(file.text());
  if (const JsonInput status = in.at("exit_status"); status.there()) u.exit_status = static_cast<int>(status.whole(0, -1, 1000));
}

}  // namespace

std::string UpdateWriter::news(const RemoteUpdate& update) {
  std::string frames;
  if (const size_t known = prof::registered_ops(); known > ops_sent_) {
    std::vector<prof::OpInfo> ops;
    for (size_t op = ops_sent_; op < known; ++op) ops.push_back(prof::op_info(static_cast<prof::OpTag>(op)));
    frames = frame(NewsKind::Ops, prof::quickly_packed(prof::encode_ops(static_cast<prof::OpTag>(ops_sent_), ops)));
    ops_sent_ = known;
  }
  if (const json rest = news_of(update); !rest.empty()) frames += frame(NewsKind::News, dumped(rest));
  return frames;
}

std::string UpdateWriter::now(const RemoteUpdate& update) {
  json state = json::object();
  if (update.run.progress) state["progress"] = written(*update.run.progress, list);
  if (update.recording) state["recording"] = written(*update.recording, list);
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

void UpdateReader::read(const Frame& frame, RemoteUpdate& into) {
  switch (static_cast<NewsKind>(frame.kind)) {
    case NewsKind::Steps: return read_steps(frame.payload, into.run.steps);
    case NewsKind::Epochs: return read_epochs(frame.payload, into.run.epochs);
    case NewsKind::News: return read_news(frame.payload, into);
    case NewsKind::Ops: return prof::decode_ops(prof::unpacked(frame.payload), ops_);
    case NewsKind::Trace:
      into.run.traces.push_back(prof::decode_batch(prof::unpacked(frame.payload), ops_));
      return;
  }
  // Ignore other frames: a newer version may send more kinds.
}

}  // namespace ws::app
