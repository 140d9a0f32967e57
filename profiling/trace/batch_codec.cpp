#include "profiling/trace/batch_codec.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "profiling/base/byte_reader.h"
#include "profiling/trace/code_places.h"

namespace ws::prof {

namespace {

void list(ByteWriter& to, const std::shared_ptr<const CodeStack>& stack) { to.text(encode_stack(*stack)); }
void list(ByteReader& from, std::shared_ptr<const CodeStack>& stack) { stack = std::make_shared<CodeStack>(decode_stack(from.text("stacks"))); }

constexpr auto kBatch = [](auto& f, auto& batch) {
  constexpr size_t kDetail = 48, kCode = 3 * sizeof(uint64_t) + sizeof(NameId) + sizeof(int32_t);  // bytes at least
  const auto list_names = [&f](const char* what, auto& names) { f.each(1, what, names, [&](auto& name) { f(what, name); }); };
  list_names("names", batch.names);
  f.each(sizeof(NameId) + sizeof(uint64_t), "stacks", batch.stacks, [&](auto& one) {
    f("stacks", one.first);
    list(f, one.second);
  });
  f.each(kDetail, "details", batch.details, [&](auto& d) {
    uint32_t unused = 0;
    f("details", d.grid, d.block, d.registers, d.static_shared, d.dynamic_shared, unused, d.bytes, d.copy_kind);
  });
  f.each(1, "tracks", batch.tracks, [&](auto& track) {
    f("a track", track.kind, track.depth, track.rank, track.replaces, track.name, track.group, track.spans);
  });
  f.each(1, "counters", batch.counters, [&](auto& counter) { f("a counter", counter.name, counter.unit, counter.kind, counter.points); });
  f("memory events", batch.memory);
  list_names("allocators", batch.memory_sources);
  f("allocations", batch.allocations);
  f("samples", batch.sampled, batch.sampled_windows);
  f("losses", batch.losses);
  f.each(kCode, "machine code", batch.sampled_code, [&](auto& code) { f("machine code", code.module, code.function, code.compute, code.bytes, code.calls); });
};

void list_op(auto& f, auto& op, auto& stack) {
  f("ops", op.name, op.detail, op.layer, op.phase, op.meaning, op.flops, op.bytes, stack);
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

// Indices into lists must be within bounds, and kinds known.
void check(TraceBatch& batch, std::span<const OpTag> ops, const ByteReader& from) {
  const auto check_name = [&](NameId name) {
    if (static_cast<size_t>(name) >= batch.names.size()) from.fail("refers to a name that it lacks");
  };
  if (batch.details.empty()) from.fail("holds no details");
  for (const auto& [name, stack] : batch.stacks) check_name(name);
  for (const BatchCounter& counter : batch.counters)
    if (counter.kind > kLastCounterKind) from.fail("holds an unknown kind of counter");
  for (BatchTrack& track : batch.tracks) {
    if (track.kind > kLastTrackKind) from.fail("holds an unknown kind of track");
    track.depth = std::clamp(track.depth, 0, 64), track.rank = std::clamp(track.rank, -1, kMostRanks - 1);
    for (Span& span : track.spans) {
      check_name(span.name);
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
  for (const SampledInstruction& one : batch.sampled) check_name(one.function), check_name(one.file);
  for (const SampledCode& code : batch.sampled_code) check_name(code.function);
}

}  // namespace

std::string encode_batch(const TraceBatch& batch) { return bytes_with(batch, kBatch); }

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
  to.each(0, "", stacks, [&to](const CodeStack* stack) { to.text(encode_stack(*stack)); });
  to.each(0, "", ops, [&](const OpInfo& op) { list_op(to, op, numbers[op.stack.get()]); });
  return to.take();
}

void decode_ops(std::string_view bytes, std::vector<OpTag>& tags) {
  ByteReader from(bytes, "Ops of the recorded program");
  size_t there = from.value<OpTag>("ops");
  std::vector<std::shared_ptr<const CodeStack>> stacks{nullptr};
  from.each(sizeof(uint64_t), "stacks", stacks, [&](auto& stack) { list(from, stack); });
  constexpr size_t kSmallest = 4 * sizeof(uint64_t) + 1 + 2 * sizeof(int64_t) + sizeof(uint32_t);
  from.each(kSmallest, "ops", [&] {
    OpInfo op;
    uint32_t stack = 0;
    list_op(from, op, stack);
    if (static_cast<size_t>(op.meaning) >= kMeanings) from.fail("holds an unknown kind of op");
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
  kBatch(from, batch);
  from.expect_end();
  check(batch, ops, from);
  return batch;
}

}  // namespace ws::prof
