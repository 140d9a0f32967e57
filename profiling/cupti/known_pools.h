// Memory pools used by the program, with the sizes that the driver reports.
#pragma once
#include <cuda.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "profiling/cupti/pool_questions.h"
#include "profiling/collectors/pool_sizes.h"

namespace ws::prof {

class KnownPools {
 public:
  // Called on the program's threads; never waits. `pool` nullptr: the current pool of the context's device.
  void allocated_from(CUmemoryPool pool, CUcontext context);
  // Called before and after the driver destroys a pool. The first call waits while the driver is asked about this pool.
  void about_to_be_destroyed(CUmemoryPool pool);
  void destroyed(CUmemoryPool pool);
  // Call it when allocator calls are no longer observed, because pools could then be destroyed unnoticed.
  void forget();
  // Returns the size of each pool, and for each device one more entry for the memory of graphs. Can take long while
  // work is launched.
  std::vector<PoolAnswer> ask();

 private:
  static constexpr size_t kMost = 64;
  std::array<std::atomic<CUmemoryPool>, kMost> pools_{};
  std::atomic<CUcontext> last_context_{nullptr};
  std::atomic<uint64_t> devices_{0};    // devices with allocations, one bit each
  std::atomic<uint64_t> by_device_{0};  // devices whose current pool was used
  std::atomic<uint32_t> last_device_{0};
  PoolQuestions questions_;
  std::mutex asking_;  // one thread at a time
};

}  // namespace ws::prof
