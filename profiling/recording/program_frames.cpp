#include "profiling/recording/program_frames.h"

#include "profiling/annotate/annotate.h"
#include "profiling/base/byte_reader.h"
#include "profiling/trace/batch_codec.h"

namespace ws::prof {
namespace {

constexpr uint32_t kLayout = 1;  // of the frames between a program and its writer; they are parts of one installation

constexpr auto kBegin = [](auto& f, auto& begin) {
  f("text", begin.path, begin.name, begin.follower, begin.process, begin.mark, begin.traced);
  f("a number", begin.number, begin.origin_ns, begin.began_ns, begin.device, begin.file, begin.rank, begin.captures);
};

constexpr auto kStatus = [](auto& f, auto& status) {
  f("device", status.gpu, status.captures, status.clock_width_ns, status.device, status.driver, status.compute, status.kept);
};

using Name = std::variant<std::string, std::shared_ptr<const CodeStack>>;

void list_name(ByteWriter& to, const Name& name) {
  const auto* const text = std::get_if<std::string>(&name);
  to.value(text != nullptr), to.text(text ? *text : encode_stack(*std::get<1>(name)));
}

void list_name(ByteReader& from, Name& name) {
  const bool is_text = from.value<uint8_t>("names") != 0;
  const std::string_view bytes = from.text("names");
  if (is_text) name = std::string(bytes);
  else name = std::make_shared<CodeStack>(decode_stack(bytes));
}

constexpr auto kNotes = [](auto& f, auto& notes) {
  f("count", notes.refused);
  f.each(4 * sizeof(int64_t), "scalars", notes.scalars, [&](auto& one) { f("scalars", one.time, one.step, one.value, one.name); });
  f.each(sizeof(uint64_t) + 1, "names", notes.names, [&](auto& one) { list_name(f, one); });
  f.each(3 * sizeof(uint64_t), "samples", notes.samples, [&](auto& one) { f("samples", one.begin, one.end, one.name, one.row); });
  f("captures", notes.captures);
  f("facts", notes.facts);
};

constexpr auto kCurves = [](auto& f, auto& curves) { f("losses and tests", curves.metrics, curves.evaluations); };

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
  kBegin(to, begin);
  return to.take();
}

ProgramBegin decode_begin(std::string_view bytes) {
  ByteReader from(bytes, "The beginning of a recording");
  if (from.value<uint32_t>("version") != kLayout || from.value<uint32_t>("spans") != sizeof(Span))
    throw Failure("The library in the recorded program and the program that writes the run file are of different versions. Install Warpsight again.");
  ProgramBegin begin;
  kBegin(from, begin);
  from.expect_end();
  return begin;
}

ProgramStatus status_of(const CollectorStatus& status) {
  ProgramStatus said{status.gpu, status.captures, status.clock_width_ns, status.device, status.driver, status.compute, {}};
  keep_status(status, said.kept);
  return said;
}

std::string encode(const ProgramStatus& status) { return bytes_with(status, kStatus); }
ProgramStatus decode_status(std::string_view bytes) { return whole_from<ProgramStatus>(bytes, "The state of a recording", kStatus); }

std::string encode(const HostNotes::Taken& notes) { return bytes_with(notes, kNotes); }
HostNotes::Taken decode_notes(std::string_view bytes) { return whole_from<HostNotes::Taken>(bytes, "Notes of the recorded program", kNotes); }

std::string encode(const LiveCurves& curves) { return bytes_with(curves, kCurves); }
LiveCurves decode_curves(std::string_view bytes) { return whole_from<LiveCurves>(bytes, "Curves from the recorded program", kCurves); }

}  // namespace ws::prof
