#include "profiling/recording/program_frames.h"

#include "profiling/annotate/annotate.h"
#include "profiling/base/byte_reader.h"
#include "profiling/trace/batch_codec.h"

namespace ws::prof {
namespace {

constexpr uint32_t kLayout = 1;  // of the frames between a program and its writer; they are parts of one installation

void put_texts(ByteWriter& to, const std::map<std::string, std::string>& texts) {
  to.value(uint64_t{texts.size()});
  for (const auto& [key, value] : texts) to.text(key), to.text(value);
}

std::map<std::string, std::string> texts_in(ByteReader& from, const char* what) {
  std::map<std::string, std::string> texts;
  from.each(2 * sizeof(uint64_t), what, [&] {
    std::string key(from.text(what));
    texts[std::move(key)] = from.text(what);
  });
  return texts;
}

}  // namespace

void add_frame(std::string& to, FrameKind kind, std::string_view payload) {
  FrameHead head;
  head.kind = kind, head.size = payload.size();
  to += bytes_of(head);
  to += payload;
}

void NewOps::add_frame_if_any(std::string& to) {
  const size_t known = registered_ops();
  if (sent_ >= known) return;
  const auto first = static_cast<OpTag>(sent_);
  std::vector<OpInfo> ops;
  for (; sent_ < known; ++sent_) ops.push_back(op_info(static_cast<OpTag>(sent_)));
  add_frame(to, FrameKind::Ops, encode_ops(first, ops));
}

std::string encode(const ProgramBegin& begin) {
  ByteWriter to;
  to.value(kLayout), to.value(static_cast<uint32_t>(sizeof(Span)));
  for (const std::string* text : {&begin.path, &begin.name, &begin.follower, &begin.process, &begin.mark, &begin.traced}) to.text(*text);
  to.value(begin.number), to.value(begin.origin_ns), to.value(begin.began_ns), to.value(begin.device), to.value(begin.file);
  to.value(begin.rank), to.value(begin.captures);
  return to.take();
}

ProgramBegin decode_begin(std::string_view bytes) {
  ByteReader from(bytes, "The beginning of a recording");
  if (from.value<uint32_t>("version") != kLayout || from.value<uint32_t>("spans") != sizeof(Span))
    throw Failure("The library in the recorded program and the program that writes the run file are of different versions. Install Warpsight again.");
  ProgramBegin begin;
  for (std::string* text : {&begin.path, &begin.name, &begin.follower, &begin.process, &begin.mark, &begin.traced}) *text = from.text("text");
  for (int64_t* number : {&begin.number, &begin.origin_ns, &begin.began_ns}) *number = from.value<int64_t>("time");
  begin.device = from.value<uint64_t>("file"), begin.file = from.value<uint64_t>("file");
  begin.rank = from.value<LaunchedRank>("rank"), begin.captures = from.value<uint8_t>("captures") != 0;
  from.expect_end();
  return begin;
}

ProgramStatus status_of(const CollectorStatus& status) {
  ProgramStatus said{status.gpu, status.captures, status.clock_width_ns, status.device, status.driver, status.compute, {}};
  keep_status(status, said.kept);
  return said;
}

std::string encode(const ProgramStatus& status) {
  ByteWriter to;
  to.value(status.gpu), to.value(status.captures), to.value(status.clock_width_ns);
  for (const std::string* text : {&status.device, &status.driver, &status.compute}) to.text(*text);
  put_texts(to, status.kept);
  return to.take();
}

ProgramStatus decode_status(std::string_view bytes) {
  ByteReader from(bytes, "The state of a recording");
  ProgramStatus status;
  status.gpu = from.value<uint8_t>("GPU") != 0, status.captures = from.value<uint64_t>("captures");
  status.clock_width_ns = from.value<int64_t>("clock");
  for (std::string* text : {&status.device, &status.driver, &status.compute}) *text = from.text("device");
  status.kept = texts_in(from, "facts");
  from.expect_end();
  return status;
}

std::string encode(const HostNotes::Taken& notes) {
  ByteWriter to;
  to.value(notes.refused);
  to.each(notes.scalars, [&](const HostNotes::Scalar& scalar) {
    to.value(scalar.time), to.value(scalar.step), to.value(scalar.value), to.text(scalar.name);
  });
  to.each(notes.names, [&](const auto& name) {
    const auto* const text = std::get_if<std::string>(&name);
    to.value(text != nullptr), to.text(text ? *text : encode_stack(*std::get<1>(name)));
  });
  to.each(notes.samples, [&](const HostNotes::Sample& sample) {
    to.value(sample.begin), to.value(sample.end), to.value(sample.name), to.text(sample.row);
  });
  to.list(notes.captures);
  put_texts(to, notes.facts);
  return to.take();
}

HostNotes::Taken decode_notes(std::string_view bytes) {
  ByteReader from(bytes, "Notes of the recorded program");
  HostNotes::Taken notes;
  notes.refused = from.value<uint64_t>("count");
  from.each(4 * sizeof(int64_t), "scalars", [&] {
    HostNotes::Scalar scalar;
    scalar.time = from.value<int64_t>("scalars"), scalar.step = from.value<int64_t>("scalars");
    scalar.value = from.value<double>("scalars"), scalar.name = from.text("scalars");
    notes.scalars.push_back(std::move(scalar));
  });
  from.each(sizeof(uint64_t) + 1, "names", [&] {
    const bool is_text = from.value<uint8_t>("names") != 0;
    const std::string_view name = from.text("names");
    if (is_text)
      notes.names.emplace_back(std::string(name));
    else
      notes.names.emplace_back(std::make_shared<CodeStack>(decode_stack(name)));
  });
  from.each(3 * sizeof(uint64_t), "samples", [&] {
    HostNotes::Sample sample;
    sample.begin = from.value<int64_t>("samples"), sample.end = from.value<int64_t>("samples");
    sample.name = from.value<uint32_t>("samples"), sample.row = from.text("samples");
    notes.samples.push_back(std::move(sample));
  });
  notes.captures = from.list<HostNotes::Capture>("captures");
  notes.facts = texts_in(from, "facts");
  from.expect_end();
  return notes;
}

std::string encode(const LiveCurves& curves) {
  ByteWriter to;
  to.list(curves.metrics);
  to.list(curves.evaluations);
  return to.take();
}

LiveCurves decode_curves(std::string_view bytes) {
  ByteReader from(bytes, "Curves from the recorded program");
  LiveCurves curves{from.list<Metric>("losses"), from.list<Evaluation>("tests")};
  from.expect_end();
  return curves;
}

}  // namespace ws::prof
