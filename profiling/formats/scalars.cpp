#include "profiling/formats/scalars.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "profiling/failure.h"
#include "profiling/whole_file.h"

namespace ws::prof {

namespace {

std::ofstream open_for_writing(const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) throw Failure("Cannot write " + path + ".");
  return file;
}

void finish(std::ofstream& file, const std::string& path) {
  file.close();
  if (!file) throw Failure("Cannot write " + path + ": the disk may be full.");
}

// Protocol buffer fields of an Event: only the few wire types that it needs.
void put_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}
template <class Fixed>
void put_fixed(std::string& to, int field, Fixed value) {
  put_varint(to, static_cast<uint64_t>(field) << 3 | (sizeof(Fixed) == 8 ? 1 : 5));
  char bytes[sizeof(Fixed)];
  std::memcpy(bytes, &value, sizeof bytes);
  to.append(bytes, sizeof bytes);
}
void put_bytes(std::string& to, int field, std::string_view bytes) {
  put_varint(to, static_cast<uint64_t>(field) << 3 | 2);
  put_varint(to, bytes.size());
  to.append(bytes);
}

template <class Number>
std::string little_endian(Number value) {
  char bytes[sizeof(Number)];
  std::memcpy(bytes, &value, sizeof bytes);
  return std::string(bytes, sizeof bytes);
}

void put_record(std::ostream& file, const std::string& data) {
  const std::string length = little_endian<uint64_t>(data.size());
  file << length << little_endian(masked_crc32c(length)) << data << little_endian(masked_crc32c(data));
}

double seconds_of(const std::string& created) {
  std::tm time{};
  const char* end = strptime(created.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (end) return static_cast<double>(timegm(&time));
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void put_scalar(std::ostream& file, double wall, int64_t step, const char* tag, double value) {
  if (std::isnan(value)) return;
  std::string item, summary, event;
  put_bytes(item, 1, tag);
  put_fixed(item, 2, static_cast<float>(value));
  put_bytes(summary, 1, item);
  put_fixed(event, 1, wall);
  put_varint(event, 2 << 3);
  put_varint(event, static_cast<uint64_t>(step));
  put_bytes(event, 5, summary);
  put_record(file, event);
}

std::string events_name(double start) {
  char name[120];
  std::snprintf(name, sizeof name, "events.out.tfevents.%010lld.warpscope.%d.0", static_cast<long long>(start),
                static_cast<int>(getpid()));
  return name;
}

bool parse_number(std::string_view text, double& value) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = t[i] >> 1 ^ (t[i] & 1 ? 0x82f63b78u : 0);
    }
    return t;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

void export_tensorboard(const RunData& run, const std::string& path) {
  const double start = seconds_of(run.summary.created);
  const bool folder = std::filesystem::is_directory(path);
  if (folder)
    return write_whole_file(path + "/" + events_name(start),
                            [&](const std::string& part) { export_tensorboard(run, part); });
  std::ofstream file = open_for_writing(path);
  std::string version;
  put_fixed(version, 1, start);
  put_bytes(version, 3, "brain.Event:2");
  put_record(file, version);
  for (const Metric& m : run.metrics) {
    put_scalar(file, start + m.wall_s, m.step, "train/loss", m.loss);
    put_scalar(file, start + m.wall_s, m.step, "train/accuracy", m.accuracy);
  }
  for (const Evaluation& e : run.evaluations) {
    put_scalar(file, start + e.wall_s, e.step, "test/loss", e.test_loss);
    put_scalar(file, start + e.wall_s, e.step, "test/accuracy", e.test_accuracy);
  }
  finish(file, path);
}

void export_scalars_csv(const RunData& run, const std::string& path) {
  std::ofstream file = open_for_writing(path);
  const double start = seconds_of(run.summary.created);
  file << "Wall time,Step,Value\n";
  char line[120];
  for (const Metric& m : run.metrics) {
    if (std::isnan(m.loss)) continue;
    std::snprintf(line, sizeof line, "%.6f,%lld,%.9g\n", start + m.wall_s, static_cast<long long>(m.step), m.loss);
    file << line;
  }
  finish(file, path);
}

RunData parse_scalars_csv(std::string_view text) {
  RunData run;
  size_t at = 0, bad = 0;
  const auto next_line = [&] {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    return line;
  };
  if (!next_line().starts_with("Wall time,Step,Value"))
    throw Failure("The CSV file does not begin with the columns Wall time,Step,Value.");
  double start = 0;
  while (at < text.size()) {
    const std::string_view line = next_line();
    const size_t first = line.find(','), second = line.find(',', first + 1);
    double wall = 0, step = 0, value = 0;
    const bool good = second != line.npos && parse_number(line.substr(0, first), wall) &&
                      parse_number(line.substr(first + 1, second - first - 1), step) &&
                      parse_number(line.substr(second + 1), value) && std::abs(step) < 9e15;
    if (!good) {
      bad += !line.empty() && line != "\r";
      continue;
    }
    if (run.metrics.empty()) start = wall;
    run.metrics.push_back({static_cast<int64_t>(step), wall - start, value, std::numeric_limits<double>::quiet_NaN()});
  }
  if (bad > 0)
    run.problems.push_back(std::to_string(bad) + (bad == 1 ? " line is" : " lines are") + " not three numbers.");
  run.summary.origin = "tensorboard";
  run.summary.status = "finished";
  if (!run.metrics.empty()) {
    run.summary.final_loss = run.metrics.back().loss;
    run.summary.steps = run.metrics.back().step;
    run.summary.wall_s = run.metrics.back().wall_s;
  }
  return run;
}

RunData import_scalars_csv(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure("Cannot open " + path + ".");
  if (std::filesystem::file_size(path) > (size_t{1} << 30))
    throw Failure(path + " is larger than 1 GB; a list of losses is not.");
  std::stringstream text;
  text << file.rdbuf();
  RunData run = parse_scalars_csv(text.view());
  run.summary.name = std::filesystem::path(path).stem().string();
  return run;
}

}  // namespace ws::prof
