// Memory on a stream: two functions. Every allocator is one of these; counting and limits are wrapped around it.
//
// A block handed to deallocate may still be in use by work put on `stream` before; whoever allocates it next on the
// same stream is ordered behind that work. The executor keeps all intermediates on one stream.
#pragma once
#include <cstdint>

struct CUstream_st;

namespace ws::cuda {

using StreamRef = CUstream_st*;
constexpr int64_t kAlignment = 256;  // of every block: enough for any vector access and for cuBLASLt

constexpr int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  virtual void* allocate(StreamRef stream, int64_t bytes) = 0;  // throws OutOfMemory
  virtual void deallocate(StreamRef stream, void* ptr, int64_t bytes) noexcept = 0;
};

}  // namespace ws::cuda
