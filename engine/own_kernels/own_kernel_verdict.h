// What the check of a person's kernel found, on one plan.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "profiling/base/failure.h"

namespace ws {

enum class OwnKernelFault : uint8_t {
  None,
  WrongValue,     // a result differs from the op's
  NotWritten,     // a result was left as it was
  WritesInput,    // an operand that is only read was changed
  WritesOutside,  // memory before or behind a buffer was changed
  ReadsOutside,   // the result depends on memory before or behind a buffer
  ReadsResult,    // the result depends on what the result's memory held before
  Uninitialised,  // the result depends on shared memory that nobody wrote
  Varies,         // two launches with the same input gave different bits
  DoesNotCompile,
  NoKernel,       // the source has no kernel of the expected name
  BadLaunch,      // blocks, threads or shared memory that no GPU of this kind takes
  OtherOp,        // the source was written for another op
  IllegalAddress,
  Misaligned,
  Stopped,  // by a trap or a failed assert
  Endless,
};
std::string_view to_string(OwnKernelFault fault);
// The fault that an error code of CUDA stands for, for example "cudaErrorIllegalAddress"; None: another error.
OwnKernelFault fault_of_call(std::string_view code);
std::string sentence_of(OwnKernelFault fault);  // for faults that need no place

// Called before (true) and after a launch of a person's kernel, which may never end.
using OnLaunch = std::function<void(bool runs)>;

// A kernel that cannot be launched.
class OwnKernelRefused : public Failure {
 public:
  OwnKernelRefused(OwnKernelFault found, const std::string& sentence) : Failure(sentence), fault(found) {}
  OwnKernelFault fault;
};

struct OwnKernelVerdict {
  OwnKernelFault fault = OwnKernelFault::None;
  std::string operand;            // where the fault is
  int64_t row = 0, col = 0;       // the worst place of a wrong value
  double own = 0, expected = 0;   // both values there
  double tolerance = 0;           // of a value, relative to the size of the results
  double error = 0;               // largest difference, relative to the size of the results
  bool same_bits = false;         // as the built-in kernels
  double own_us = 0, built_in_us = 0, empty_us = 0;  // a launch in a graph, median; of a kernel that does nothing
  double bytes = 0, flops = 0;    // of the op
  int registers = 0;
  double occupancy = 0;
  bool good() const { return fault == OwnKernelFault::None; }
  std::string sentence() const;
};

}  // namespace ws
