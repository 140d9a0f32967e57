// The memory pools that the program's calls take blocks from, whichever they are, and their sizes as the driver
// answers.
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
  // On the program's own threads; never waits. `pool` nullptr: the current one of the context's device.
  void allocated_from(CUmemoryPool pool, CUcontext context);
  // Before the driver destroys it, and after: waits while the driver is being asked about this very pool.
  void about_to_be_destroyed(CUmemoryPool pool);
  void destroyed(CUmemoryPool pool);
  void forget();  // calls are not heard any more, so that a pool could go unnoticed
  // And what blocks inside of graphs take, as one pool more a device. Can take long while work is being launched.
  std::vector<PoolAnswer> ask();

 private:
  static constexpr size_t kMost = 64;
  std::array<std::atomic<CUmemoryPool>, kMost> pools_{};
  std::atomic<CUcontext> last_context_{nullptr};
  std::atomic<uint64_t> devices_{0};    // that blocks were taken on: a bit each
  std::atomic<uint64_t> by_device_{0};  // whose current pool they were taken from
  std::atomic<uint32_t> last_device_{0};
  PoolQuestions questions_;
  std::mutex asking_;  // one thread at a time
};

}  // namespace ws::prof
