#include "profiling/trace/batch_codec.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "profiling/base/byte_reader.h"
#include "profiling/trace/code_places.h"

namespace ws::prof {

namespace {

struct PlainDetail {
  int grid[3], block[3], registers, static_shared, dynamic_shared;
  uint64_t bytes;
};

void write(ByteWriter& to, const Detail& d) {
  to.value(PlainDetail{{d.grid[0], d.grid[1], d.grid[2]},
                       {d.block[0], d.block[1], d.block[2]},
                       d.registers,
                       d.static_shared,
                       d.dynamic_shared,
                       d.bytes});
  to.text(d.copy_kind);
}

Detail read_detail(ByteReader& from) {
  const auto plain = from.value<PlainDetail>("details");
  Detail d;
  for (int i = 0; i < 3; ++i) d.grid[i] = plain.grid[i], d.block[i] = plain.block[i];
  d.registers = plain.registers;
  d.static_shared = plain.static_shared;
  d.dynamic_shared = plain.dynamic_shared;
  d.bytes = plain.bytes;
  d.copy_kind = from.text("details");
  return d;
}

template <class Kind>
Kind read_kind(ByteReader& from, Kind last, const char* what) {
  const auto number = from.value<uint8_t>(what);
  if (number > static_cast<uint8_t>(last)) from.fail("holds an unknown kind of " + std::string(what));
  return static_cast<Kind>(number);
}

// Returns "no op" once the tags of this process are used up. The run file still has the op.
OpTag tag_here(OpInfo op) {
  try {
    return register_ops({std::move(op)});
  } catch (const Failure&) {
    return kNoOp;
  }
}

OpTag known_op(OpTag there, std::span<const OpTag> ops) { return there < ops.size() ? ops[there] : OpTag{kNoOp}; }

// Indices into lists must be within bounds.
void check(TraceBatch& batch, std::span<const OpTag> ops, const ByteReader& from) {
  if (batch.details.empty()) from.fail("holds no details");
  for (BatchTrack& track : batch.tracks) {
    for (Span& span : track.spans) {
      if (static_cast<size_t>(span.name) >= batch.names.size()) from.fail("refers to a name that it lacks");
      if (static_cast<size_t>(span.detail) >= batch.details.size()) from.fail("refers to details that it lacks");
      if (span.kind > static_cast<uint64_t>(SpanKind::Other) || span.meaning >= kMeanings)
        from.fail("holds a span of an unknown kind");
      span.op = known_op(span.op, ops);
    }
  }
  for (MemoryEvent& event : batch.memory) {
    if (event.source >= batch.memory_sources.size() || event.kind > MemoryAction::Release)
      from.fail("holds an unknown memory event");
    event.op = known_op(event.op, ops);
  }
  for (StepAllocations& calls : batch.allocations) calls.op = known_op(calls.op, ops);
  for (const SampledInstruction& one : batch.sampled)
    for (const NameId name : {one.function, one.file})
      if (static_cast<size_t>(name) >= batch.names.size()) from.fail("refers to a name that it lacks");
  for (const SampledCode& code : batch.sampled_code)
    if (static_cast<size_t>(code.function) >= batch.names.size()) from.fail("refers to a name that it lacks");
}

}  // namespace

std::string encode_batch(const TraceBatch& batch) {
  ByteWriter to;
  const auto text = [&to](const std::string& one) { to.text(one); };
  to.each(batch.names, text);
  to.each(batch.stacks, [&to](const auto& one) { to.value(one.first); to.text(encode_stack(*one.second)); });
  to.each(batch.details, [&to](const Detail& one) { write(to, one); });
  to.each(batch.tracks, [&to](const BatchTrack& track) {
    to.value(static_cast<uint8_t>(track.kind));
    to.value(static_cast<int32_t>(track.depth));
    to.value(static_cast<int32_t>(track.rank));
    to.value(track.replaces);
    to.text(track.name);
    to.text(track.group);
    to.list(track.spans);
  });
  to.each(batch.counters, [&to](const BatchCounter& counter) {
    to.text(counter.name);
    to.text(counter.unit);
    to.value(static_cast<uint8_t>(counter.kind));
    to.list(counter.points);
  });
  to.list(batch.memory);
  to.each(batch.memory_sources, text);
  to.list(batch.allocations);
  to.list(batch.sampled);
  to.list(batch.sampled_windows);
  to.value(batch.losses);
  to.each(batch.sampled_code, [&to](const SampledCode& code) {
    to.value(code.module);
    to.value(code.function);
    to.value(code.compute);
    to.text(code.bytes);
    to.text(code.calls);
  });
  return to.take();
}

std::string encode_stack(const CodeStack& stack) {
  ByteWriter to;
  to.varint(stack.own);
  to.varint(stack.frames.size());
  for (const CodeFrame& frame : stack.frames) {
    to.varint(static_cast<uint64_t>(std::max(frame.line, 0)));
    for (const std::string* text : {&frame.path, &frame.function}) to.varint(text->size()), to.raw(*text);
  }
  return to.take();
}

// What the recording itself costs is no riddle of the program.
constexpr std::string_view kRecorderFile = "libwarpsight_inject";

CodeStack decode_stack(std::string_view bytes) {
  ByteReader from(bytes, "A stack of the recorded program");
  CodeStack stack;
  stack.own = from.varint("stacks");
  const uint64_t count = from.varint("stacks");
  if (count > kMostStackFrames) from.fail("claims too many frames");
  for (uint64_t i = 0; i < count; ++i) {
    CodeFrame& frame = stack.frames.emplace_back();
    frame.line = static_cast<int>(std::min<uint64_t>(from.varint("stacks"), std::numeric_limits<int>::max()));
    for (std::string* text : {&frame.path, &frame.function}) *text = from.raw(from.varint("stacks"), "stacks");
    if (frame.function == "?" && frame.path.starts_with(kRecorderFile)) frame.function = "Warpsight's recording";
  }
  if (stack.own > stack.frames.size()) from.fail("refers to a frame that it lacks");
  from.expect_end();
  return stack;
}

std::string encode_ops(OpTag first, const std::vector<OpInfo>& ops) {
  ByteWriter to;
  to.value(first);
  std::vector<const CodeStack*> stacks;
  std::unordered_map<const CodeStack*, uint32_t> numbers{{nullptr, 0}};
  for (const OpInfo& op : ops)
    if (numbers.try_emplace(op.stack.get(), stacks.size() + 1).second) stacks.push_back(op.stack.get());
  to.each(stacks, [&to](const CodeStack* stack) { to.text(encode_stack(*stack)); });
  to.each(ops, [&](const OpInfo& op) {
    for (const std::string* text : {&op.name, &op.detail, &op.layer, &op.phase}) to.text(*text);
    to.value(static_cast<uint8_t>(op.meaning));
    to.value(op.flops);
    to.value(op.bytes);
    to.value(numbers[op.stack.get()]);
  });
  return to.take();
}

void decode_ops(std::string_view bytes, std::vector<OpTag>& tags) {
  ByteReader from(bytes, "Ops of the recorded program");
  size_t there = from.value<OpTag>("ops");
  std::vector<std::shared_ptr<const CodeStack>> stacks{nullptr};
  from.each(sizeof(uint64_t), "stacks",
            [&] { stacks.push_back(std::make_shared<CodeStack>(decode_stack(from.text("stacks")))); });
  constexpr size_t kSmallest = 4 * sizeof(uint64_t) + 1 + 2 * sizeof(int64_t) + sizeof(uint32_t);
  from.each(kSmallest, "ops", [&] {
    OpInfo op;
    for (std::string* text : {&op.name, &op.detail, &op.layer, &op.phase}) *text = from.text("ops");
    const auto meaning = from.value<uint8_t>("ops");
    if (meaning >= kMeanings) from.fail("holds an unknown kind of op");
    op.meaning = static_cast<Meaning>(meaning);
    op.flops = from.value<int64_t>("ops");
    op.bytes = from.value<int64_t>("ops");
    const auto stack = from.value<uint32_t>("ops");
    if (stack >= stacks.size()) from.fail("refers to a stack that it lacks");
    op.stack = stacks[stack];
    if (there > 0xffff) from.fail("holds too many ops");
    if (tags.size() <= there) tags.resize(there + 1, kNoOp);
    tags[there++] = tag_here(std::move(op));
  });
  from.expect_end();
}

TraceBatch decode_batch(std::string_view bytes, std::span<const OpTag> ops) {
  ByteReader from(bytes, "A batch from the recorded program");
  TraceBatch batch;
  batch.details.clear();
  from.each(1, "names", [&] { batch.names.emplace_back(from.text("names")); });
  from.each(sizeof(NameId) + sizeof(uint64_t), "stacks", [&] {
    const auto name = from.value<NameId>("stacks");
    if (static_cast<size_t>(name) >= batch.names.size()) from.fail("refers to a name that it lacks");
    batch.stacks.emplace_back(name, std::make_shared<CodeStack>(decode_stack(from.text("stacks"))));
  });
  from.each(sizeof(PlainDetail), "details", [&] { batch.details.push_back(read_detail(from)); });
  from.each(1, "tracks", [&] {
    BatchTrack& track = batch.tracks.emplace_back();
    track.kind = read_kind(from, kLastTrackKind, "track");
    track.depth = std::clamp(from.value<int32_t>("a track"), 0, 64);
    track.rank = std::clamp(from.value<int32_t>("a track"), -1, kMostRanks - 1);
    track.replaces = from.value<uint32_t>("a track");
    track.name = from.text("a track");
    track.group = from.text("a track");
    track.spans = from.list<Span>("spans");
  });
  from.each(1, "counters", [&] {
    BatchCounter& counter = batch.counters.emplace_back();
    counter.name = from.text("a counter");
    counter.unit = from.text("a counter");
    counter.kind = read_kind(from, kLastCounterKind, "counter");
    counter.points = from.list<CounterPoint>("points");
  });
  batch.memory = from.list<MemoryEvent>("memory events");
  from.each(1, "allocators", [&] { batch.memory_sources.emplace_back(from.text("allocators")); });
  batch.allocations = from.list<StepAllocations>("allocations");
  batch.sampled = from.list<SampledInstruction>("samples");
  batch.sampled_windows = from.list<SampledWindow>("samples");
  batch.losses = from.value<Losses>("losses");
  const auto read_code = [&] {
    SampledCode& code = batch.sampled_code.emplace_back();
    code.module = from.value<uint64_t>("machine code");
    code.function = from.value<NameId>("machine code");
    code.compute = from.value<int32_t>("machine code");
    code.bytes = from.text("machine code");
    code.calls = from.text("machine code");
  };
  constexpr size_t kSmallest = 3 * sizeof(uint64_t) + sizeof(NameId) + sizeof(int32_t);
  from.each(kSmallest, "machine code", read_code);
  from.expect_end();
  check(batch, ops, from);
  return batch;
}

}  // namespace ws::prof
