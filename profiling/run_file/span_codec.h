// Compresses the columns of a block: differences as variable-length integers, then zstd. Data that repeats every step
// costs almost nothing.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/trace_batch.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

std::string encode_spans(std::span<const Span> spans);
std::string encode_points(std::span<const CounterPoint> points);
std::string encode_memory(std::span<const MemoryEvent> events);
std::string encode_allocations(std::span<const StepAllocations> steps);
std::string encode_metrics(std::span<const Metric> metrics);  // times are rounded to 0.1 µs
double seconds_in_run(double seconds);  // 0 for what is no number, at most 285 years otherwise

// Compresses any bytes fast, for use while the machine has other work.
std::string quickly_packed(const std::string& plain);
std::string unpacked(std::string_view packed);  // throws Failure

// These throw Failure if the bytes are damaged. They return at most `count` items.
std::vector<Span> decode_spans(std::string_view bytes, size_t count);
// Size of the encoded block that begins there; throws Failure if there is none.
size_t packed_bytes(std::string_view bytes);
std::vector<CounterPoint> decode_points(std::string_view bytes, size_t count);
std::vector<MemoryEvent> decode_memory(std::string_view bytes, size_t count);
std::vector<StepAllocations> decode_allocations(std::string_view bytes, size_t count);
std::vector<Metric> decode_metrics(std::string_view bytes, size_t count);

}  // namespace ws::prof
