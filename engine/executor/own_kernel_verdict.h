// What the check of a person's kernel found, on one plan.
#pragma once
#include <cstdint>
#include <string>

namespace ws {

enum class OwnKernelFault : uint8_t {
  None,
  WrongValue,     // a result differs from the op's
  NotWritten,     // a result was left as it was
  WritesInput,    // an operand that is only read was changed
  WritesOutside,  // memory before or behind a buffer was changed
  Varies,         // two launches with the same input gave different bits
};
std::string_view to_string(OwnKernelFault fault);

struct OwnKernelVerdict {
  OwnKernelFault fault = OwnKernelFault::None;
  std::string operand;            // where the fault is
  int64_t row = 0, col = 0;       // the worst place of a wrong value
  double own = 0, built_in = 0;   // both values there
  double tolerance = 0;           // of a value, relative to the size of the results
  double own_us = 0, built_in_us = 0;  // a launch, median
  double bytes = 0, flops = 0;    // of the op
  int registers = 0;
  double occupancy = 0;
  bool good() const { return fault == OwnKernelFault::None; }
  std::string sentence() const;
};

}  // namespace ws
