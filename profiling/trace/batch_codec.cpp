#include "profiling/trace/batch_codec.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "profiling/base/failure.h"

namespace ws::prof {

namespace {

class Writer {
 public:
  template <class T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& text) {
    value(static_cast<uint64_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void list(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    value(static_cast<uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  template <class T, class Each>
  void each(const std::vector<T>& values, Each each) {
    value(static_cast<uint64_t>(values.size()));
    for (const T& one : values) each(one);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T value() {
    T value;
    std::memcpy(&value, need(sizeof value), sizeof value);
    return value;
  }
  std::string text() {
    const auto size = count(1);
    return std::string(need(size), size);
  }
  template <class T>
  std::vector<T> list() {
    std::vector<T> values(count(sizeof(T)));
    if (!values.empty()) std::memcpy(values.data(), need(values.size() * sizeof(T)), values.size() * sizeof(T));
    return values;
  }
  // Each element takes a byte at least, so that a lie about their number costs nothing.
  template <class Each>
  void each(Each each) {
    for (size_t left = count(1); left > 0; --left) each();
  }
  void end() const {
    if (!bytes_.empty()) fail();
  }
  [[noreturn]] static void fail() { throw Failure("What came from the recorded program is no batch of records."); }

 private:
  size_t count(size_t each) {
    const auto number = value<uint64_t>();
    if (number > bytes_.size() / each) fail();
    return number;
  }
  const char* need(size_t size) {
    if (size > bytes_.size()) fail();
    const char* at = bytes_.data();
    bytes_.remove_prefix(size);
    return at;
  }
  std::string_view bytes_;
};

struct PlainDetail {
  int grid[3], block[3], registers, static_shared, dynamic_shared;
  uint64_t bytes;
};

void write(Writer& to, const Detail& d) {
  to.value(PlainDetail{{d.grid[0], d.grid[1], d.grid[2]},
                       {d.block[0], d.block[1], d.block[2]},
                       d.registers,
                       d.static_shared,
                       d.dynamic_shared,
                       d.bytes});
  to.text(d.copy_kind);
}

Detail read_detail(Reader& from) {
  const auto plain = from.value<PlainDetail>();
  Detail d;
  for (int i = 0; i < 3; ++i) d.grid[i] = plain.grid[i], d.block[i] = plain.block[i];
  d.registers = plain.registers;
  d.static_shared = plain.static_shared;
  d.dynamic_shared = plain.dynamic_shared;
  d.bytes = plain.bytes;
  d.copy_kind = from.text();
  return d;
}

TrackKind track_kind(uint8_t number) {
  if (number > static_cast<uint8_t>(TrackKind::Other)) Reader::fail();
  return static_cast<TrackKind>(number);
}

// Numbers into lists must lie within them; ops are those of the other process and mean nothing here.
void check(TraceBatch& batch) {
  if (batch.details.empty()) Reader::fail();
  for (BatchTrack& track : batch.tracks) {
    for (Span& span : track.spans) {
      if (static_cast<size_t>(span.name) >= batch.names.size()) Reader::fail();
      if (static_cast<size_t>(span.detail) >= batch.details.size()) Reader::fail();
      span.op = kNoOp;
    }
  }
  for (MemoryEvent& event : batch.memory) {
    if (event.source >= batch.memory_sources.size() || event.kind > MemoryAction::Release) Reader::fail();
    event.op = kNoOp;
  }
}

}  // namespace

std::string encode_batch(const TraceBatch& batch) {
  Writer to;
  const auto text = [&to](const std::string& one) { to.text(one); };
  to.each(batch.names, text);
  to.each(batch.details, [&to](const Detail& one) { write(to, one); });
  to.each(batch.tracks, [&to](const BatchTrack& track) {
    to.value(static_cast<uint8_t>(track.kind));
    to.value(static_cast<int32_t>(track.depth));
    to.text(track.name);
    to.text(track.group);
    to.list(track.spans);
  });
  to.each(batch.counters, [&to](const BatchCounter& counter) {
    to.text(counter.name);
    to.text(counter.unit);
    to.list(counter.points);
  });
  to.list(batch.memory);
  to.each(batch.memory_sources, text);
  to.list(batch.allocations);
  to.value(batch.losses);
  return to.take();
}

TraceBatch decode_batch(std::string_view bytes) {
  Reader from(bytes);
  TraceBatch batch;
  batch.details.clear();
  from.each([&] { batch.names.push_back(from.text()); });
  from.each([&] { batch.details.push_back(read_detail(from)); });
  from.each([&] {
    BatchTrack& track = batch.tracks.emplace_back();
    track.kind = track_kind(from.value<uint8_t>());
    track.depth = std::clamp(from.value<int32_t>(), 0, 64);
    track.name = from.text();
    track.group = from.text();
    track.spans = from.list<Span>();
  });
  from.each([&] {
    BatchCounter& counter = batch.counters.emplace_back();
    counter.name = from.text();
    counter.unit = from.text();
    counter.points = from.list<CounterPoint>();
  });
  batch.memory = from.list<MemoryEvent>();
  from.each([&] { batch.memory_sources.push_back(from.text()); });
  batch.allocations = from.list<StepAllocations>();
  batch.losses = from.value<Losses>();
  from.end();
  check(batch);
  return batch;
}

}  // namespace ws::prof
