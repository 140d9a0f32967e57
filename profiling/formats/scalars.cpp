#include "profiling/formats/scalars.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "profiling/base/failure.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/base/whole_file.h"

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

// Writes the protocol buffer fields of an Event, which needs three wire types. The protobuf library and its compiler
// would be one more dependency for everybody who builds, for a message of five fields.
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
  return formatted("events.out.tfevents.{:010}.warpsight.{}.0", static_cast<int64_t>(start), getpid());
}

// All measured values of a run under the tags of the events file, grouped by tag.
struct Scalar {
  const char* tag;
  double wall_s;
  int64_t step;
  double value;
};
std::vector<Scalar> scalars_of(const RunData& run) {
  std::vector<Scalar> list;
  const auto add = [&list](const auto& rows, const char* tag, auto value) {
    for (const auto& row : rows)
      if (!std::isnan(row.*value)) list.push_back({tag, row.wall_s, row.step, row.*value});
  };
  add(run.metrics, "train/loss", &Metric::loss);
  add(run.metrics, "train/accuracy", &Metric::accuracy);
  add(run.evaluations, "test/loss", &Evaluation::test_loss);
  add(run.evaluations, "test/accuracy", &Evaluation::test_accuracy);
  return list;
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

namespace {

std::vector<Scalar> some_scalars(const RunData& run) {
  std::vector<Scalar> list = scalars_of(run);
  if (list.empty()) throw Failure("The run has no losses or accuracies to write.");
  return list;
}

}  // namespace

void export_tensorboard(const RunData& run, const std::string& path) {
  const std::vector<Scalar> scalars = some_scalars(run);
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
  for (const Scalar& s : scalars) put_scalar(file, start + s.wall_s, s.step, s.tag, s.value);
  finish(file, path);
}

// A file name like TensorBoard's ("run-a-tag-test_loss.csv") selects one tag. A single tag has TensorBoard's three
// columns; several tags have a fourth column with the tag.
void export_scalars_csv(const RunData& run, const std::string& path) {
  std::vector<Scalar> list = some_scalars(run);
  if (const ScalarTag wanted = tag_of_file(path); wanted.named)
    std::erase_if(list, [&](const Scalar& s) { return !(tag_of(s.tag) == wanted); });
  const bool one = std::ranges::all_of(list, [&](const Scalar& s) { return s.tag == list.front().tag; });
  std::ofstream file = open_for_writing(path);
  const double start = seconds_of(run.summary.created);
  file << "Wall time,Step,Value" << (one ? "\n" : ",Tag\n");
  for (const Scalar& s : list) {
    file << formatted("{:.6f},{},{:.9g}", start + s.wall_s, s.step, s.value);
    if (!one) file << ',' << csv_cell(s.tag);
    file << '\n';
  }
  finish(file, path);
}

}  // namespace ws::prof
