// Converts the stamps that kernels write about their inside into spans within the kernels' records.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "profiling/collectors/op_join.h"
#include "profiling/collectors/ring_stamps.h"
#include "profiling/collectors/trace_context.h"

namespace ws::prof {

class StampSpans {
 public:
  explicit StampSpans(TraceContext& context) : context_(context) {}
  // Draws the launches whose kernel record has arrived and keeps the rest. With `last`, drops the rest.
  void draw(std::vector<StampedLaunch> fresh, bool last);
  // Draws what programs stamped with profiling/annotate/kernel_ranges.cuh. Stamps without a kernel record are drawn
  // too, after some time, as estimated.
  void draw_rings(std::vector<RingCopy> fresh, bool last);
  // Returns what is wrong with the stamps of rings. Empty: nothing.
  std::string ring_problems() const;

 private:
  struct Ring {
    std::unique_ptr<RingStamps> stamps;
    uint64_t reported = 0;  // losses that are already in the batch
  };
  struct Waiting {
    RingPart part;
    std::shared_ptr<const StampRing> ring;
    const ResidentKernel* kernel = nullptr;  // only while it is drawn
    int rounds = 0;
  };

  void draw(const StampedLaunch& launch, const ResidentKernel& kernel);
  void put(std::vector<Span>& spans, const std::string& name, uint32_t device, uint32_t step, uint8_t flags);
  void read(const RingCopy& copy);
  void find_kernels();
  void align(uint32_t device);
  bool draw(Waiting& waiting, bool last);

  TraceContext& context_;
  std::vector<StampedLaunch> waiting_;
  std::map<uint64_t, Ring> rings_;
  std::vector<Waiting> parts_;
  std::map<uint32_t, TimeNs> shifts_;  // by device: moves stamps so that they lie inside their kernels
  uint64_t outside_ = 0;               // stamps outside of every kernel record
};

}  // namespace ws::prof
