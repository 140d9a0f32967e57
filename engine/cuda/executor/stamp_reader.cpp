#include "engine/cuda/executor/stamp_reader.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "engine/cuda/persistent/kernel_source.h"
#include "engine/cuda/runtime/check.h"

namespace ws::cuda {
namespace {

using persistent::Arguments;
using persistent::Placement;
using persistent::Residency;
using persistent::Stamp;
using persistent::StampHead;

constexpr int kStampsOfAStep = 48;  // a grid kernel with five hidden layers writes about forty

struct StampPart {
  persistent::Parts kind;
  Phase phase;
  const char* name;  // % stands for the layer
  prof::Meaning meaning;
};
constexpr StampPart kParts[] = {
    {persistent::kPartRows, Phase::Input, "rows of the next step", prof::Meaning::Copy},
    {persistent::kPartForward, Phase::Forward, "forward", prof::Meaning::Matrix},
    {persistent::kPartLosses, Phase::Loss, "loss and its gradient", prof::Meaning::Loss},
    {persistent::kPartBackward, Phase::Backward, "backward", prof::Meaning::Matrix},
    {persistent::kPartUpdate, Phase::Update, "update", prof::Meaning::Optimizer},
};

// Returns the plan's ops of that phase and layer, which this part executes together.
std::string ops_of(const Plan& plan, Phase phase, int layer) {
  std::string names;
  for (const Op& op : plan.ops)
    if (op.phase == phase && (op.layer == layer || (layer < 0 && phase != Phase::Input)))
      names += (names.empty() ? "" : ", ") + op.name;
  return names;
}

prof::OpInfo info_of(const Plan& plan, const StampPart& part, int layer, bool one_layer) {
  const bool known = !one_layer && layer < static_cast<int>(plan.layer_names.size());
  const std::string name = known ? plan.layer_names[static_cast<size_t>(layer)] : "";
  return {(name.empty() ? "" : name + " ") + part.name, ops_of(plan, part.phase, known ? layer : -1), name,
          std::string(to_string(part.phase)), part.meaning};
}

}  // namespace

StepParts::StepParts(const Plan& plan, const Placement& placement) {
  const bool cluster = placement.residency == Residency::Cluster;
  roles_ = cluster ? 2 : 1;
  lanes_ = placement.blocks * roles_;
  static std::mutex mutex;
  static std::map<std::string, prof::OpTag> known;  // by plan id, so that a long session does not use up the tags
  const std::lock_guard lock(mutex);
  prof::OpTag& first = known[plan.id];
  if (first == prof::kNoOp) {
    // If one block does all layers of a phase together, the part has no layer.
    const bool one_layer = placement.residency == Residency::Rows || placement.residency == Residency::Block;
    std::vector<prof::OpInfo> infos;
    for (const StampPart& part : kParts)
      for (int layer = 0; layer < kLayers; ++layer)
        infos.push_back(info_of(plan, part, layer, one_layer || part.kind == persistent::kPartRows));
    for (unsigned what = 0; what < kLayers; ++what)
      infos.push_back({"wait", "for " + persistent::waited_for(what), "", "", prof::Meaning::Sync});
    first = prof::register_ops(std::move(infos));
  }
  first_ = first;
}

prof::OpTag StepParts::of(unsigned what) const {
  const unsigned kind = what >> 4 & 15, which = std::min<unsigned>(what & 15, kLayers - 1);
  if (kind == persistent::kPartEnd || kind > persistent::kPartWait) return prof::kNoOp;
  return static_cast<prof::OpTag>(first_ + (kind - 1) * kLayers + which);
}

// Pads the number with zeros to three digits, because lanes are sorted by name.
prof::StampedLaneName StepParts::lane_name(int lane, unsigned multiprocessor) const {
  const std::string number = std::to_string(multiprocessor);
  const bool helper = roles_ == 2 && lane % 2 == 1;
  return {"SM " + std::string(number.size() < 3 ? 3 - number.size() : 0, '0') + number + (helper ? " copies" : ""),
          helper};
}

void StampReader::prepare(const StepParts& parts, int64_t steps, Arguments& a) {
  prof::StampBoard::instance().announce();
  turn_ = 1 - turn_;
  Slot& slot = slots_[turn_];
  if (slot.pending) {
    CUDA_CHECK(cudaEventSynchronize(slot.done));
    hand_over(slot);
  }
  const auto lanes = static_cast<size_t>(parts.lanes()), each = static_cast<size_t>((steps + 1) * kStampsOfAStep);
  if (slot.heads.size() < lanes || slot.stamps.size() < lanes * each) {
    slot.heads = DeviceBlock<StampHead>::filled(lanes), slot.stamps = DeviceBlock<Stamp>::device(lanes * each);
    slot.read_heads = PinnedBlock<StampHead>::pinned(lanes), slot.read_stamps = PinnedBlock<Stamp>::pinned(lanes * each);
  }
  if (!slot.done) slot.done = make_event();
  slot.parts = parts, slot.each = static_cast<int>(each), slot.steps = static_cast<int>(steps);
  a.stamp_heads = slot.heads.data(), a.stamps = slot.stamps.data();
  a.stamps_each = slot.each, a.stamped_steps = slot.steps;
}

void StampReader::launched(cudaStream_t stream, prof::OpTag kernel_op, int64_t first_step) {
  Slot& slot = slots_[turn_];
  const auto lanes = static_cast<size_t>(slot.parts.lanes());
  const auto read = [&](void* to, const void* from, size_t bytes) {
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream));
  };
  read(slot.read_heads.data(), slot.heads.data(), lanes * sizeof(StampHead));
  read(slot.read_stamps.data(), slot.stamps.data(), lanes * static_cast<size_t>(slot.each) * sizeof(Stamp));
  CUDA_CHECK(cudaEventRecord(slot.done, stream));
  slot.kernel_op = kernel_op, slot.first_step = first_step, slot.pending = true;
}

void StampReader::collect() {
  for (const size_t i : {1 - turn_, turn_}) {
    Slot& slot = slots_[i];
    if (!slot.pending) continue;
    const cudaError_t state = CUDA_ATTEMPT(cudaEventQuery(slot.done));
    if (state == cudaErrorNotReady) cudaGetLastError();
    if (state == cudaSuccess) hand_over(slot);
  }
}

// Converts cycles to nanoseconds with the two moments at which both clocks were read.
void StampReader::hand_over(Slot& slot) {
  slot.pending = false;
  prof::StampedLaunch launch;
  launch.kernel_op = slot.kernel_op, launch.first_step = static_cast<uint32_t>(slot.first_step + 1);
  launch.begin = ~uint64_t{0};
  for (int lane = 0; lane < slot.parts.lanes(); ++lane) {
    const StampHead& head = slot.read_heads[static_cast<size_t>(lane)];
    launch.lanes.push_back(slot.parts.lane_name(lane, head.multiprocessor));
    const uint32_t cycles = head.end_clock - head.begin_clock;
    const auto count = std::min(head.count, static_cast<unsigned>(slot.each));
    if (cycles == 0 || head.end_ns <= head.begin_ns || count == 0) continue;
    launch.begin = std::min<uint64_t>(launch.begin, head.begin_ns);
    launch.end = std::max<uint64_t>(launch.end, head.end_ns);
    const double ns = static_cast<double>(head.end_ns - head.begin_ns) / cycles;
    const Stamp* stamps = slot.read_stamps.data() + static_cast<size_t>(lane) * static_cast<size_t>(slot.each);
    for (unsigned i = 0; i < count; ++i) {
      const auto step = static_cast<int>(stamps[i].what >> 8);
      const bool ends = step >= slot.steps;
      const double since = ns * static_cast<double>(stamps[i].clock - head.begin_clock);
      launch.stamps.push_back({head.begin_ns + static_cast<uint64_t>(since), static_cast<uint32_t>(slot.first_step + step + 1),
                               ends ? prof::kNoOp : slot.parts.of(stamps[i].what), static_cast<uint16_t>(lane)});
      if (ends) break;
    }
  }
  if (!launch.stamps.empty()) prof::StampBoard::instance().add(std::move(launch));
}

int64_t StampReader::bytes() const {
  size_t sum = 0;
  for (const Slot& slot : slots_) sum += slot.heads.bytes() + slot.stamps.bytes();
  return static_cast<int64_t>(sum);
}

}  // namespace ws::cuda
