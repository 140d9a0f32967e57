// The interface of every allocator: allocate and deallocate memory on a stream. Counting and limits wrap it.
//
// A block given to deallocate may still be used by earlier work on `stream`. The next owner of the block on the same
// stream runs after that work. The executor keeps all intermediates on one stream.
#pragma once
#include <cstdint>

struct CUstream_st;

namespace ws::cuda {

using StreamRef = CUstream_st*;
constexpr int64_t kAlignment = 256;  // alignment of every block: enough for any vector access and for cuBLASLt

constexpr int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  virtual void* allocate(StreamRef stream, int64_t bytes) = 0;  // throws OutOfMemory
  virtual void deallocate(StreamRef stream, void* ptr, int64_t bytes) noexcept = 0;
};

}  // namespace ws::cuda
