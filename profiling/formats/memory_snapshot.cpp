#include "profiling/formats/trace_formats.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>

#include "profiling/base/failure.h"
#include "profiling/base/packed_file.h"
#include "profiling/formats/pickle_reader.h"
#include "profiling/formats/trace_builder.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

using Value = Pickle::Value;

bool is_python(std::string_view file) { return file.ends_with(".py"); }
bool is_own(std::string_view file) {
  for (const std::string_view other : {"site-packages/", "dist-packages/", "/lib/python"})
    if (file.find(other) != std::string_view::npos) return false;
  return is_python(file);
}

// A damaged file may hold any number.
TimeNs ns_of(int64_t us) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2000;
  return std::clamp(us, -kMost, kMost) * 1000;
}

struct Block {
  uint64_t bytes = 0;
  OpTag op = kNoOp;
};

class SnapshotReader {
 public:
  explicit SnapshotReader(const Pickle& pickle) : pickle_(pickle) {}

  RunData read() {
    const Value root = pickle_.root();
    const Value segments = pickle_.at(root, "segments");
    if (pickle_.kind(root) != Pickle::Kind::Dict || pickle_.kind(segments) != Pickle::Kind::List)
      throw Failure("It is no memory snapshot of PyTorch: there is no list of segments.");
    const auto& traces = pickle_.items(pickle_.at(root, "device_traces"));
    for (size_t device = 0; device < traces.size(); ++device) read_history(device, traces[device]);
    for (const Value segment : pickle_.items(segments)) read_segment(segment);
    return finish();
  }

 private:
  struct Device {
    std::vector<MemoryEvent> events;
    std::unordered_map<uint64_t, Block> live, reserved;  // by address, at the end of the history
    std::vector<MemoryEvent> before;                     // what existed when the history began
    int64_t first = 0;
    std::string name;
  };

  Device& device(size_t number) {
    Device& found = devices_[number];
    if (found.name.empty()) found.name = allocator_on("PyTorch", static_cast<int64_t>(number));
    return found;
  }

  CodeFrame code_frame(Value frame) {
    constexpr size_t kLongest = 1000;  // a hostile file may have the same long text in each frame
    const auto text = [&](const char* key) { return std::string(pickle_.text(pickle_.at(frame, key)).substr(0, kLongest)); };
    const int64_t line = pickle_.number(pickle_.at(frame, "line"));
    return {text("filename"), static_cast<int>(std::clamp<int64_t>(line, 0, std::numeric_limits<int>::max())), text("name")};
  }

  // The line is the innermost one of the program's own code, else the innermost Python line.
  OpTag op_of(Value frames) {
    if (const auto known = ops_.find(frames); known != ops_.end()) return known->second;
    constexpr size_t kMostFrames = 48;
    std::vector<Value> python;
    for (const Value frame : pickle_.items(frames))
      if (python.size() < kMostFrames && is_python(pickle_.text(pickle_.at(frame, "filename")))) python.push_back(frame);
    if (python.empty()) return ops_[frames] = kNoOp;
    const auto own = std::ranges::find_if(python, [this](Value frame) { return is_own(pickle_.text(pickle_.at(frame, "filename"))); });
    const size_t chosen = own == python.end() ? 0 : static_cast<size_t>(own - python.begin());
    OpInfo op;
    op.name = pickle_.text(pickle_.at(python[chosen], "name"));
    auto stack = std::make_shared<CodeStack>();
    for (size_t i = python.size(); i-- > 0;) stack->frames.push_back(code_frame(python[i]));
    stack->own = python.size() - 1 - chosen;
    op.stack = std::move(stack);
    return ops_[frames] = builder_.op(op);
  }

  void read_history(size_t number, Value history) {
    Device& gpu = device(number);
    int64_t count = 0;
    for (const Value event : pickle_.items(history)) {
      const int64_t us = pickle_.number(pickle_.at(event, "time_us"), ++count);
      if (gpu.events.empty() && gpu.first == 0) gpu.first = us;
      constexpr int64_t kFarthest = int64_t{1} << 53;
      if (us < 0 || us > kFarthest) {
        builder_.leave_out("with a time out of range");
        continue;
      }
      read_event(gpu, us, event);
    }
  }

  void read_event(Device& gpu, int64_t us, Value event) {
    const std::string_view action = pickle_.text(pickle_.at(event, "action"));
    MemoryEvent memory{};
    memory.time = ns_of(us);
    memory.address = static_cast<uint64_t>(pickle_.number(pickle_.at(event, "addr")));
    memory.bytes = static_cast<uint64_t>(std::max<int64_t>(0, pickle_.number(pickle_.at(event, "size"))));
    memory.op = op_of(pickle_.at(event, "frames"));
    if (action == "alloc") {
      memory.kind = MemoryAction::Allocate;
      gpu.live[memory.address] = {memory.bytes, memory.op};
    } else if (action == "free_requested") {
      memory.kind = MemoryAction::Free;
      begin_with(gpu, gpu.live, memory, MemoryAction::Allocate);
    } else if (action == "segment_alloc" || action == "segment_map") {
      memory.kind = MemoryAction::Reserve;
      gpu.reserved[memory.address] = {memory.bytes, memory.op};
    } else if (action == "segment_free" || action == "segment_unmap") {
      memory.kind = MemoryAction::Release;
      begin_with(gpu, gpu.reserved, memory, MemoryAction::Reserve);
    } else {
      if (action == "oom") ++out_of_memory_;
      return;
    }
    gpu.events.push_back(memory);
  }

  // A block that is freed but was never allocated existed before the history began.
  static void begin_with(Device& gpu, std::unordered_map<uint64_t, Block>& known, MemoryEvent freed, MemoryAction action) {
    if (known.erase(freed.address) > 0) return;
    freed.kind = action, freed.time = ns_of(gpu.first), freed.op = kNoOp;
    gpu.before.push_back(freed);
  }

  void read_segment(Value segment) {
    Device& gpu = device(static_cast<size_t>(std::clamp<int64_t>(pickle_.number(pickle_.at(segment, "device")), 0, 63)));
    const auto at = static_cast<uint64_t>(pickle_.number(pickle_.at(segment, "address")));
    const auto size = static_cast<uint64_t>(std::max<int64_t>(0, pickle_.number(pickle_.at(segment, "total_size"))));
    if (!gpu.reserved.contains(at)) there_from_the_start(gpu, at, size, kNoOp, MemoryAction::Reserve);
    uint64_t address = at;
    for (const Value block : pickle_.items(pickle_.at(segment, "blocks"))) {
      const auto bytes = static_cast<uint64_t>(std::max<int64_t>(0, pickle_.number(pickle_.at(block, "size"))));
      address = static_cast<uint64_t>(pickle_.number(pickle_.at(block, "address"), static_cast<int64_t>(address)));
      const bool active = pickle_.text(pickle_.at(block, "state")).starts_with("active_allocated");
      if (active && !gpu.live.contains(address))
        there_from_the_start(gpu, address, bytes, op_of(pickle_.at(block, "frames")), MemoryAction::Allocate);
      address += bytes;
    }
  }

  static void there_from_the_start(Device& gpu, uint64_t address, uint64_t bytes, OpTag op, MemoryAction action) {
    MemoryEvent event{};
    event.time = ns_of(gpu.first), event.address = address, event.bytes = bytes, event.op = op, event.kind = action;
    gpu.before.push_back(event);
  }

  RunData finish() {
    RunData run;
    int64_t began = std::numeric_limits<int64_t>::max();
    for (const auto& [number, gpu] : devices_)
      if (!gpu.before.empty() || !gpu.events.empty()) began = std::min(began, ns_of(gpu.first));
    std::vector<std::pair<MemoryEvent, const Device*>> all;
    for (const auto& [number, gpu] : devices_) {
      for (const MemoryEvent& event : gpu.before) all.emplace_back(event, &gpu);
      for (const MemoryEvent& event : gpu.events) all.emplace_back(event, &gpu);
    }
    builder_.take_memory(all.size() * sizeof all[0]);
    std::ranges::stable_sort(all, {}, [](const auto& entry) { return entry.first.time; });
    for (auto& [event, gpu] : all) {
      event.time -= began;
      builder_.add_memory(event, gpu->name);
    }
    run.trace = builder_.finish(run.problems);
    if (out_of_memory_ > 0)
      run.problems.push_back(std::to_string(out_of_memory_) + (out_of_memory_ == 1 ? " allocation" : " allocations") +
                             " failed: the GPU was out of memory.");
    return run;
  }

  const Pickle& pickle_;
  TraceBuilder builder_;
  std::map<size_t, Device> devices_;
  std::unordered_map<Value, OpTag> ops_;  // by frame list, which many blocks share
  uint64_t out_of_memory_ = 0;
};

}  // namespace

RunData parse_memory_snapshot(std::string_view bytes, const std::string& name) {
  const Pickle pickle(bytes, name);
  try {
    return SnapshotReader(pickle).read();
  } catch (const Failure& failure) {
    throw Failure(name + ": " + failure.what());
  }
}

RunData import_memory_snapshot(const std::string& path) {
  const std::string bytes = PackedReader(path).read_text();
  RunData run = parse_memory_snapshot(bytes, path);
  run.summary.name = std::filesystem::path(path).stem().string();
  run.summary.origin = "PyTorch memory snapshot";
  run.summary.status = "finished";
  return run;
}

}  // namespace ws::prof
