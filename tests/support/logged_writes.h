// What logged_writes.cpp writes and power_test.cpp reads: an event, then a name, then bytes.
#pragma once
#include <cstdint>

namespace ws::test {

struct WriteEvent {
  enum Kind : uint64_t { Open, Write, Truncate, Sync, Rename, Unlink };
  Kind kind = Open;
  uint64_t file = 0;    // number of the inode
  uint64_t offset = 0;  // of what is written; the new size
  uint64_t size = 0;    // bytes that follow the name: what was written, or the new name
  uint64_t name_bytes = 0;
};

}  // namespace ws::test
