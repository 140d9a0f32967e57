#include "app/core/lab/first_call.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/devices/device_workloads.h"
#include "engine/lab/lab.h"
#include "profiling/base/whole_file.h"
#include "profiling/collectors/collector.h"
#include "profiling/cupti/gpu_source.h"
#include "profiling/trace/batch_codec.h"

namespace ws::app {
namespace {

struct Order {
  std::string file;
  int64_t origin_ns = 0;
};

Order order_of(std::string_view text) {
  Order order;
  const size_t space = text.find(' ');
  const std::string_view origin = text.substr(0, space);
  if (space != std::string_view::npos &&
      std::from_chars(origin.data(), origin.data() + origin.size(), order.origin_ns).ec == std::errc())
    order.file = text.substr(space + 1);
  return order;
}

// Appends the batches, each after its length. Several calls share a file.
void add_to_file(const std::string& file, prof::Collector& collector) {
  std::ofstream out(file, std::ios::binary | std::ios::app);
  for (prof::TraceBatch batch = collector.take(); !batch.empty(); batch = collector.take()) {
    const std::string bytes = prof::encode_batch(batch);
    const auto size = static_cast<uint64_t>(bytes.size());
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
}

// Gives the batches their own rows, and correlation numbers that no call of this process has.
void set_apart(prof::TraceBatch& batch, uint32_t which) {
  batch.losses = {};
  for (prof::BatchTrack& track : batch.tracks) {
    track.group = kFirstCallRows + track.group;
    for (prof::Span& span : track.spans)
      if (span.correlation != 0) span.correlation = (0x80 + which % 0x80) << 24 | (span.correlation & 0xffffff);
  }
}

}  // namespace

bool run_first_call_if_asked() {
  const char* text = std::getenv(lab::kChildTrace);
  const Order order = order_of(text ? text : "");
  if (order.file.empty()) return lab::run_cold_call_if_asked();
  prof::Collector collector;
  try {
    prof::CollectorOptions options{.gpu = prof::cupti_gpu_source(), .level = prof::TraceLevel::Full};
    options.poll_memory = false;
    options.origin_ns = order.origin_ns;
    collector.start(options);
  } catch (const std::exception&) {
    return lab::run_cold_call_if_asked();  // the call matters more than its trace
  }
  const bool asked = lab::run_cold_call_if_asked();
  collector.stop();
  if (asked) add_to_file(order.file, collector);
  return asked;
}

std::string first_call_order(const std::string& file, int64_t origin_ns) {
  return std::to_string(origin_ns) + " " + file;
}

std::vector<prof::TraceBatch> take_first_calls(const std::string& file) {
  const std::string all = prof::whole_text(file);
  std::error_code none;
  std::filesystem::remove(file, none);
  std::vector<prof::TraceBatch> batches;
  uint64_t size = 0;
  for (std::string_view left = all; left.size() >= sizeof size;) {
    std::copy_n(left.data(), sizeof size, reinterpret_cast<char*>(&size));
    left.remove_prefix(sizeof size);
    if (size > left.size()) break;  // the process ended during the write
    batches.push_back(prof::decode_batch(left.substr(0, size)));
    set_apart(batches.back(), static_cast<uint32_t>(batches.size()));
    left.remove_prefix(size);
  }
  return batches;
}

}  // namespace ws::app
