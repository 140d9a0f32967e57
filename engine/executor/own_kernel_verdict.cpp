#include "engine/executor/own_kernel_verdict.h"

#include "profiling/base/text.h"

namespace ws {

std::string_view to_string(OwnKernelFault fault) {
  switch (fault) {
    case OwnKernelFault::None:
      return "none";
    case OwnKernelFault::WrongValue:
      return "wrong value";
    case OwnKernelFault::NotWritten:
      return "not written";
    case OwnKernelFault::WritesInput:
      return "writes its input";
    case OwnKernelFault::WritesOutside:
      return "writes outside";
    case OwnKernelFault::Varies:
      return "varies";
  }
  return "";
}

std::string OwnKernelVerdict::sentence() const {
  const std::string place = operand + "[" + std::to_string(row) + "][" + std::to_string(col) + "]";
  switch (fault) {
    case OwnKernelFault::None:
      return "agrees with the built-in op";
    case OwnKernelFault::WrongValue:
      return formatted("{} is {:.6g}, and the op gives {:.6g}", place, own, built_in);
    case OwnKernelFault::NotWritten:
      return place + " is never written";
    case OwnKernelFault::WritesInput:
      return "changes " + operand + ", which it may only read";
    case OwnKernelFault::WritesOutside:
      return "writes outside of " + operand + ": check the bounds of each index";
    case OwnKernelFault::Varies:
      return place + " differs from launch to launch: two threads write or read it without a barrier";
  }
  return "";
}

}  // namespace ws
