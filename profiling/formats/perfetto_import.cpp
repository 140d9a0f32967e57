#include "profiling/formats/trace_formats.h"

#include <filesystem>
#include <map>
#include <unordered_map>
#include <utility>

#include "profiling/base/budget.h"
#include "profiling/base/byte_reader.h"
#include "profiling/base/whole_file.h"
#include "profiling/formats/chrome_handler.h"

namespace ws::prof {
namespace {

// A field of a protobuf message: a number or bytes.
struct Field {
  uint64_t number = 0, value = 0;
  std::string_view bytes;
};

template <class Use>
void each_field(std::string_view message, const std::string& name, Use use) {
  enum { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  for (ByteReader reader(message, name); reader.left() > 0;) {
    const uint64_t key = reader.varint("a field");
    Field field{key >> 3, 0, {}};
    switch (key & 7) {
      case kVarint:
        field.value = reader.varint("a number");
        break;
      case kFixed64:
        field.value = reader.value<uint64_t>("a number");
        break;
      case kFixed32:
        field.value = reader.value<uint32_t>("a number");
        break;
      case kBytes:
        field.bytes = reader.raw(reader.varint("a length"), "a message");
        break;
      default:
        reader.fail("holds no Perfetto trace");
    }
    use(field);
  }
}

// Passes tracks and slices on as the events of a Chrome trace. The numbers come from Perfetto's .proto files.
class PerfettoReader {
 public:
  PerfettoReader(std::string name, ChromeSink& sink) : name_(std::move(name)), sink_(sink) {}

  void packet(std::string_view bytes) {
    ChromeEvent event;
    uint64_t sequence = 0;
    std::string_view slice, track, names;
    each_field(bytes, name_, [&](const Field& field) {
      if (field.number == 8) event.time = static_cast<int64_t>(field.value);
      if (field.number == 10) sequence = field.value;
      if (field.number == 11) slice = field.bytes;
      if (field.number == 12) names = field.bytes;
      if (field.number == 60) track = field.bytes;
    });
    intern(names, sequence);
    if (!track.empty()) describe(track);
    if (!slice.empty()) pass_on(slice, sequence, event);
  }

 private:
  void intern(std::string_view data, uint64_t sequence) {
    constexpr uint64_t kEventNames = 2;
    each_field(data, name_, [&](const Field& field) {
      if (field.number != kEventNames) return;
      uint64_t id = 0;
      std::string_view text;
      each_field(field.bytes, name_, [&](const Field& part) {
        if (part.number == 1) id = part.value;
        if (part.number == 2) text = part.bytes;
      });
      budget_.take(200 + text.size());
      texts_[{sequence, id}] = std::string(text);
    });
  }

  // A track without a parent is a process.
  void describe(std::string_view descriptor) {
    uint64_t id = 0, parent = 0;
    std::string name;
    each_field(descriptor, name_, [&](const Field& field) {
      if (field.number == 1) id = field.value;
      if (field.number == 2) name = std::string(field.bytes);
      if (field.number == 5) parent = field.value;
    });
    budget_.take(200);
    parents_[id] = parent;
    ChromeEvent event;
    event.phase = "M", event.name = parent == 0 ? "process_name" : "thread_name";
    event.process = process_of(id), event.thread = std::to_string(id);
    event.texts["name"] = std::move(name);
    sink_.add(event);
  }

  void pass_on(std::string_view slice, uint64_t sequence, ChromeEvent& event) {
    enum { kBegin = 1, kEnd = 2 };
    uint64_t type = 0, track = 0;
    each_field(slice, name_, [&](const Field& field) {
      if (field.number == 9) type = field.value;
      if (field.number == 11) track = field.value;
      if (field.number == 23) event.name = std::string(field.bytes);
      if (field.number != 10) return;
      if (const auto text = texts_.find({sequence, field.value}); text != texts_.end()) event.name = text->second;
    });
    if (type != kBegin && type != kEnd) return;
    event.phase = type == kBegin ? "B" : "E";
    event.process = process_of(track), event.thread = std::to_string(track);
    sink_.add(event);
  }

  std::string process_of(uint64_t track) const {
    const auto parent = parents_.find(track);
    return std::to_string(parent == parents_.end() || parent->second == 0 ? track : parent->second);
  }

  std::string name_;
  ChromeSink& sink_;
  Budget budget_;
  std::unordered_map<uint64_t, uint64_t> parents_;
  std::map<std::pair<uint64_t, uint64_t>, std::string> texts_;  // by sequence and number
};

}  // namespace

RunData parse_perfetto(std::string_view bytes, const std::string& name) {
  return read_events([&](ChromeSink& sink) {
    PerfettoReader reader(name, sink);
    each_field(bytes, name, [&](const Field& field) {
      if (field.number == 1) reader.packet(field.bytes);
    });
  });
}

RunData import_perfetto(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) throw Failure("There is no file " + path + ".");
  Budget().take(std::filesystem::file_size(path));
  RunData run = parse_perfetto(whole_text(path), path);
  if (run.summary.name.empty()) run.summary.name = std::filesystem::path(path).filename().string();
  return run;
}

}  // namespace ws::prof
