#include "profiling/run_file/span_codec.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>

#include "profiling/base/byte_reader.h"

namespace ws::prof {

namespace {

constexpr size_t kMostItems = 1 << 20;  // in one block
constexpr size_t kMostBytesPerItem = 100;

// Reads a column, which is a list of variable-length integers.
struct ColumnReader {
  explicit ColumnReader(std::string_view bytes) : in(bytes, "A block of the run file") {}
  uint64_t number() { return in.varint("a column"); }
  int64_t difference() { return in.signed_varint("a column"); }
  ByteReader in;
};

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

std::string compress(const std::string& plain, int level = 3) {
  static thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  const size_t size = ZSTD_compress2(context.get(), packed.data(), packed.size(), plain.data(), plain.size());
  if (ZSTD_isError(size)) throw Failure(std::string("Compressing a block failed: ") + ZSTD_getErrorName(size) + ".");
  packed.resize(size);
  return packed;
}

std::string decompress_at_most(std::string_view packed, uint64_t most) {
  const unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > most)
    throw Failure("A block of the run file is damaged.");
  static thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  std::string plain(size, '\0');
  const size_t got = ZSTD_decompressDCtx(context.get(), plain.data(), plain.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) || got != size) throw Failure("A block of the run file is damaged.");
  return plain;
}

std::string decompress(std::string_view packed, size_t count) {
  if (count > kMostItems) throw Failure("A block of the run file claims " + std::to_string(count) + " items.");
  return decompress_at_most(packed, count * kMostBytesPerItem);
}

// The previous span of the same name. Steps repeat, so it is the best prediction.
struct Last {
  int64_t duration = 0, gap = 0;
  uint64_t rest = 0, detail = 0, op = 0;
};

uint64_t rest_of(const Span& span) { return uint64_t{span.kind} << 16 | uint64_t{span.meaning} << 8 | span.flags; }

// Stores differences: a number that rises by one each step becomes 0 or 1.
struct Sequence {
  int64_t last = 0;
  int64_t put(int64_t value) {
    const int64_t difference = value - last;
    last = value;
    return difference;
  }
  int64_t take(int64_t difference) { return last = wrapping_add(last, difference); }
};

}  // namespace

std::string quickly_packed(const std::string& plain) { return compress(plain, 1); }

// A wrong size in the header costs at most a multiple of the compressed size.
std::string unpacked(std::string_view packed) {
  return decompress_at_most(packed, std::min<uint64_t>(uint64_t{256} << 20, packed.size() * uint64_t{2000} + 1024));
}

std::string encode_spans(std::span<const Span> spans) {
  ByteWriter out;
  std::unordered_map<uint32_t, Last> known;
  for (const Span& span : spans) out.varint(static_cast<uint32_t>(span.name));
  TimeNs end = 0;
  for (const Span& span : spans) {
    Last& last = known[static_cast<uint32_t>(span.name)];
    const int64_t gap = wrapping_sub(span.start, end);
    out.signed_varint(wrapping_sub(gap, last.gap));
    last.gap = gap;
    end = span.end();
  }
  for (const Span& span : spans) {
    Last& last = known[static_cast<uint32_t>(span.name)];
    out.signed_varint(static_cast<int64_t>(span.duration) - last.duration);
    last.duration = static_cast<int64_t>(span.duration);
  }
  for (const Span& span : spans) {
    Last& last = known[static_cast<uint32_t>(span.name)];
    out.varint(rest_of(span) ^ last.rest);
    out.varint(static_cast<uint64_t>(span.detail) ^ last.detail);
    last.rest = rest_of(span);
    last.detail = static_cast<uint64_t>(span.detail);
  }
  for (const Span& span : spans) {
    Last& last = known[static_cast<uint32_t>(span.name)];
    out.varint(span.op ^ last.op);
    last.op = span.op;
  }
  Sequence correlation, step;
  for (const Span& span : spans) out.signed_varint(correlation.put(span.correlation));
  for (const Span& span : spans) out.signed_varint(step.put(span.step));
  return compress(out.bytes());
}

size_t packed_bytes(std::string_view bytes) {
  const size_t size = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
  if (ZSTD_isError(size)) throw Failure("A block of the run file is damaged.");
  return size;
}

std::vector<Span> decode_spans(std::string_view bytes, size_t count) {
  const std::string plain = decompress(bytes, count);
  ColumnReader in(plain);
  std::unordered_map<uint32_t, Last> known;
  std::vector<Span> spans(count);
  std::vector<TimeNs> gaps(count);
  for (Span& span : spans) span.name = static_cast<NameId>(in.number());
  for (size_t i = 0; i < count; ++i) {
    Last& last = known[static_cast<uint32_t>(spans[i].name)];
    gaps[i] = last.gap = wrapping_add(last.gap, in.difference());
  }
  TimeNs end = 0;
  for (size_t i = 0; i < count; ++i) {
    Last& last = known[static_cast<uint32_t>(spans[i].name)];
    last.duration = wrapping_add(last.duration, in.difference());
    spans[i].duration = static_cast<uint64_t>(last.duration);
    spans[i].start = wrapping_add(end, gaps[i]);
    end = wrapping_add(spans[i].start, static_cast<TimeNs>(spans[i].duration));
  }
  for (Span& span : spans) {
    Last& last = known[static_cast<uint32_t>(span.name)];
    last.rest ^= in.number();
    last.detail ^= in.number();
    span.kind = std::min<uint64_t>((last.rest >> 16) & 0xff, static_cast<uint64_t>(SpanKind::Other));
    span.meaning = std::min<uint64_t>((last.rest >> 8) & 0xff, kMeanings - 1);
    span.flags = static_cast<uint8_t>(last.rest);
    span.detail = static_cast<DetailId>(last.detail);
  }
  for (Span& span : spans) {
    Last& last = known[static_cast<uint32_t>(span.name)];
    span.op = static_cast<OpTag>(last.op ^= in.number());
  }
  Sequence correlation, step;
  for (Span& span : spans) span.correlation = static_cast<uint32_t>(correlation.take(in.difference()));
  for (Span& span : spans) span.step = static_cast<uint32_t>(step.take(in.difference()));
  return spans;
}

std::string encode_points(std::span<const CounterPoint> points) {
  ByteWriter out;
  Sequence time;
  uint64_t last = 0;
  for (const CounterPoint& point : points) out.signed_varint(time.put(point.time));
  for (const CounterPoint& point : points) {
    const auto bits = std::bit_cast<uint64_t>(point.value);
    out.varint(std::rotl(bits ^ last, 16));  // small if the values share sign and exponent and have a short mantissa
    last = bits;
  }
  return compress(out.bytes());
}

std::vector<CounterPoint> decode_points(std::string_view bytes, size_t count) {
  const std::string plain = decompress(bytes, count);
  ColumnReader in(plain);
  std::vector<CounterPoint> points(count);
  Sequence time;
  uint64_t last = 0;
  for (CounterPoint& point : points) point.time = time.take(in.difference());
  for (CounterPoint& point : points) point.value = std::bit_cast<double>(last ^= std::rotr(in.number(), 16));
  return points;
}

std::string encode_memory(std::span<const MemoryEvent> events) {
  ByteWriter out;
  Sequence time, address, step;
  for (const MemoryEvent& event : events) {
    out.signed_varint(time.put(event.time));
    out.signed_varint(wrapping_sub(static_cast<int64_t>(event.address), address.last));
    address.last = static_cast<int64_t>(event.address);
  }
  for (const MemoryEvent& event : events) {
    out.varint(event.bytes);
    out.varint(event.op);
    out.varint(uint64_t{event.source} << 2 | static_cast<uint64_t>(event.kind));
    out.signed_varint(step.put(event.step));
  }
  return compress(out.bytes());
}

std::vector<MemoryEvent> decode_memory(std::string_view bytes, size_t count) {
  const std::string plain = decompress(bytes, count);
  ColumnReader in(plain);
  std::vector<MemoryEvent> events(count);
  Sequence time, address, step;
  for (MemoryEvent& event : events) {
    event.time = time.take(in.difference());
    event.address = static_cast<uint64_t>(address.take(in.difference()));
  }
  for (MemoryEvent& event : events) {
    event.bytes = in.number();
    event.op = static_cast<OpTag>(in.number());
    const uint64_t rest = in.number();
    event.kind = static_cast<MemoryAction>(rest & 3);
    event.source = static_cast<uint8_t>(rest >> 2);
    event.step = static_cast<uint32_t>(step.take(in.difference()));
  }
  return events;
}

std::string encode_allocations(std::span<const StepAllocations> steps) {
  ByteWriter out;
  Sequence step;
  for (const StepAllocations& item : steps) {
    out.signed_varint(step.put(item.step));
    for (const uint32_t value : {uint32_t{item.op}, item.allocations, item.frees, item.async_allocations,
                                 item.async_frees, item.host_allocations, item.host_frees}) {
      out.varint(value);
    }
    out.signed_varint(item.time_ns);
    out.varint(item.bytes);
  }
  return compress(out.bytes());
}

std::vector<StepAllocations> decode_allocations(std::string_view bytes, size_t count) {
  const std::string plain = decompress(bytes, count);
  ColumnReader in(plain);
  std::vector<StepAllocations> steps(count);
  Sequence step;
  for (StepAllocations& item : steps) {
    item.step = static_cast<uint32_t>(step.take(in.difference()));
    item.op = static_cast<OpTag>(in.number());
    for (uint32_t* value : {&item.allocations, &item.frees, &item.async_allocations, &item.async_frees,
                            &item.host_allocations, &item.host_frees}) {
      *value = static_cast<uint32_t>(in.number());
    }
    item.time_ns = in.difference();
    item.bytes = in.number();
  }
  return steps;
}

namespace {

constexpr double kTicksPerSecond = 1e7, kLongestRun = 9e9;

// Losses are floats stored as doubles, whose low bytes are zero. Byte-swapped, these zeros come first and compress to
// nothing.
struct FloatColumn {
  uint64_t last = 0;
  uint64_t put(double value) {
    const uint64_t bits = __builtin_bswap64(std::bit_cast<uint64_t>(value));
    return bits ^ std::exchange(last, bits);
  }
  double take(uint64_t difference) { return std::bit_cast<double>(__builtin_bswap64(last ^= difference)); }
};

}  // namespace

double seconds_in_run(double seconds) {
  return std::isfinite(seconds) ? std::clamp(seconds, -kLongestRun, kLongestRun) : 0;
}

std::string encode_metrics(std::span<const Metric> metrics) {
  ByteWriter out;
  Sequence step, time;
  FloatColumn loss, accuracy;
  for (const Metric& m : metrics) out.signed_varint(step.put(m.step));
  for (const Metric& m : metrics) out.signed_varint(time.put(std::llround(seconds_in_run(m.wall_s) * kTicksPerSecond)));
  for (const Metric& m : metrics) out.varint(loss.put(m.loss));
  for (const Metric& m : metrics) out.varint(accuracy.put(m.accuracy));
  return compress(out.bytes());
}

std::vector<Metric> decode_metrics(std::string_view bytes, size_t count) {
  const std::string plain = decompress(bytes, count);
  ColumnReader in(plain);
  std::vector<Metric> metrics(count);
  Sequence step, time;
  FloatColumn loss, accuracy;
  for (Metric& m : metrics) m.step = step.take(in.difference());
  for (Metric& m : metrics) m.wall_s = static_cast<double>(time.take(in.difference())) / kTicksPerSecond;
  for (Metric& m : metrics) m.loss = loss.take(in.number());
  for (Metric& m : metrics) m.accuracy = accuracy.take(in.number());
  return metrics;
}

}  // namespace ws::prof
