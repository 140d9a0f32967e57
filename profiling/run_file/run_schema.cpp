#include "profiling/run_file/run_schema.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/run_file/span_codec.h"

namespace ws::prof {

namespace {

template <class Number>
std::string text_of(Number value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

template <class Number>
void number_of(const std::string& text, Number& value) {
  std::from_chars(text.data(), text.data() + text.size(), value);
}

// One list of fields for writing and reading.
template <class Summary, class Text, class Number>
void each_field(Summary& s, Text text, Number number) {
  text("name", s.name);
  text("preset", s.preset);
  text("device", s.device);
  text("created", s.created);
  text("status", s.status);
  text("origin", s.origin);
  text("spec", s.spec);
  text("machine", s.machine);
  text("notes", s.notes);
  number("steps", s.steps);
  number("wall_s", s.wall_s);
  number("us_per_step", s.us_per_step);
  number("steps_per_epoch", s.steps_per_epoch);
  number("step_time_us", s.step_time.us.value);
  number("step_time_half_width_us", s.step_time.us.half_width);
  number("step_time_p5_us", s.step_time.p5_us);
  number("step_time_p95_us", s.step_time.p95_us);
  number("train_loss", s.train_loss);
  number("test_loss", s.test_loss);
  number("final_accuracy", s.final_accuracy);
  number("peak_bytes", s.peak_bytes);
  number("allocator_calls_per_step", s.allocator_calls_per_step);
  number("tracing_cost", s.tracing_cost.value);
  number("tracing_cost_half_width", s.tracing_cost.half_width);
}

// Files of earlier versions stored only the loss of the last test. Their tracing cost could be a single comparison,
// which is not a measurement.
void read_old_fields(RunSummary& summary, MetaMap& meta) {
  if (auto node = meta.extract("final_loss")) number_of(node.mapped(), summary.test_loss);
  meta.erase("overhead_share"), meta.erase("overhead_spread");
}

}  // namespace

MetaMap to_meta(const RunSummary& summary) {
  MetaMap meta = summary.extra;
  each_field(
      summary, [&](const char* key, const std::string& value) { meta[key] = value; },
      [&](const char* key, auto value) { meta[key] = text_of(value); });
  meta["tags"] = nlohmann::json(summary.tags).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return meta;
}

RunSummary from_meta(MetaMap meta) {
  RunSummary summary;
  const auto take = [&meta](const char* key) { return meta.extract(key); };
  each_field(
      summary,
      [&](const char* key, std::string& value) {
        if (auto node = take(key)) value = std::move(node.mapped());
      },
      [&](const char* key, auto& value) {
        if (auto node = take(key)) number_of(node.mapped(), value);
      });
  read_old_fields(summary, meta);
  if (auto node = take("tags")) {
    const auto tags = parse_json_or_null(node.mapped());
    for (const auto& tag : tags)
      if (tags.is_array() && tag.is_string()) summary.tags.push_back(tag);
  }
  summary.extra = std::move(meta);
  return summary;
}

MetaMap read_meta(Database& db) {
  MetaMap meta;
  Statement query = db.prepare("SELECT key, value FROM meta");
  while (query.step()) meta.emplace(query.text(0), query.text(1));
  return meta;
}

namespace {

// A file without its first pages looks like a database without tables, or like no database.
void must_have_its_beginning(const std::string& path) {
  constexpr uintmax_t kLeast = 512;
  std::error_code unknown;
  const uintmax_t size = std::filesystem::file_size(path, unknown);
  if (unknown) return;
  if (size == 0) throw Failure(path + " is empty.");
  if (size < kLeast) throw Failure(path + " is too short to be a run.");
}

}  // namespace

Database open_run(const std::string& path) {
  must_have_its_beginning(path);
  Database db(path, Database::Mode::Read);
  if (!db.has_table("meta") && claimed_bytes(path) > static_cast<int64_t>(std::filesystem::file_size(path)))
    throw Failure(path + " is cut off too early to be read.");
  if (!db.has_table("meta")) throw Failure(path + " is a database, but not a Warpsight run.");
  return db;
}

int64_t claimed_bytes(const std::string& path) {
  unsigned char header[32] = {};
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(header), sizeof header);
  const auto big_endian = [&header](int at, int bytes) {
    int64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | header[at + i];
    return value;
  };
  return std::max<int64_t>(big_endian(16, 2), 512) * big_endian(28, 4);
}

RunSummary read_run_summary(const std::string& path) {
  Database db = open_run(path);
  try {
    return from_meta(read_meta(db));
  } catch (const Unavailable& failure) {
    throw Unavailable("Cannot read " + path + ": " + failure.what());
  } catch (const Failure& failure) {
    throw Failure("Cannot read " + path + ": " + failure.what());
  }
}

namespace {

// The block's first span follows the sums. Times that the first version lacked come last, without zeros at the end.
constexpr size_t kSumsBefore = static_cast<size_t>(Meaning::Communication), kSumsSize = kSumsBefore * sizeof(int64_t);

}  // namespace

std::string pack_sums(const SpanBlock& block) {
  std::string packed(kSumsSize, '\0');
  std::memcpy(packed.data(), block.total.data(), packed.size());
  packed += encode_spans(std::span(&block.head, 1));
  size_t end = kMeanings;
  while (end > kSumsBefore && block.total[end - 1] == 0) --end;
  packed.append(reinterpret_cast<const char*>(&block.total[kSumsBefore]), (end - kSumsBefore) * sizeof(int64_t));
  return packed;
}

void unpack_sums(std::string_view bytes, SpanBlock& block) {
  if (bytes.size() < kSumsSize) throw Failure("The sums of a block are damaged.");
  std::memcpy(block.total.data(), bytes.data(), kSumsSize);
  const std::string_view rest = bytes.substr(kSumsSize);
  const size_t span = packed_bytes(rest);
  block.head = decode_spans(rest.substr(0, span), 1)[0];
  constexpr size_t kLater = (kMeanings - kSumsBefore) * sizeof(int64_t);
  std::fill(block.total.begin() + kSumsBefore, block.total.end(), 0);
  std::memcpy(&block.total[kSumsBefore], rest.data() + span, std::min(kLater, rest.size() - span) / sizeof(int64_t) * sizeof(int64_t));
}

}  // namespace ws::prof
