#include "engine/own_kernels/own_kernel_verdict.h"

#include <array>
#include <utility>

#include "profiling/base/text.h"

namespace ws {
namespace {

constexpr std::array<std::string_view, 17> kNames{
    "none",           "wrong value",     "not written",    "writes its input",     "writes outside", "reads outside",
    "reads result",   "uninitialised",   "varies",         "does not compile",     "no kernel",      "bad launch",
    "another op",     "illegal address", "misaligned",     "stopped",              "endless"};

}  // namespace

std::string_view to_string(OwnKernelFault fault) { return kNames[static_cast<size_t>(fault)]; }

OwnKernelFault fault_of_call(std::string_view code) {
  using enum OwnKernelFault;
  constexpr std::array<std::pair<std::string_view, OwnKernelFault>, 8> known{{{"cudaErrorIllegalAddress", IllegalAddress},
                                                                              {"cudaErrorInvalidPc", IllegalAddress},
                                                                              {"cudaErrorInvalidAddressSpace", IllegalAddress},
                                                                              {"cudaErrorMisalignedAddress", Misaligned},
                                                                              {"cudaErrorLaunchFailure", Stopped},
                                                                              {"cudaErrorIllegalInstruction", Stopped},
                                                                              {"cudaErrorAssert", Stopped},
                                                                              {"cudaErrorLaunchTimeout", Endless}}};
  for (const auto& [name, fault] : known)
    if (name == code) return fault;
  return None;
}

std::string sentence_of(OwnKernelFault fault) {
  switch (fault) {
    case OwnKernelFault::IllegalAddress:
      return "reads or writes memory that is not its own: check the bounds of each index";
    case OwnKernelFault::Misaligned:
      return "reads or writes several values at once at an address that is not a multiple of their size";
    case OwnKernelFault::Stopped:
      return "stops itself with a trap, a failed assert or an address outside of shared memory";
    case OwnKernelFault::Endless:
      return "does not end within 1 s: check the condition of each loop, and that all threads reach each barrier";
    default:
      return std::string(to_string(fault));
  }
}

std::string OwnKernelVerdict::sentence() const {
  const std::string place = operand + "[" + std::to_string(row) + "][" + std::to_string(col) + "]";
  switch (fault) {
    case OwnKernelFault::None:
      return "agrees with the op";
    case OwnKernelFault::WrongValue:
      return formatted("{} is {:.6g}, and the op gives {:.6g}", place, own, expected);
    case OwnKernelFault::NotWritten:
      return place + " is never written";
    case OwnKernelFault::WritesInput:
      return "changes " + operand + ", which it may only read";
    case OwnKernelFault::WritesOutside:
      return "writes outside of " + operand + ": check the bounds of each index";
    case OwnKernelFault::ReadsOutside:
      return place + " depends on memory outside of the buffers: check the bounds of each index that is read";
    case OwnKernelFault::ReadsResult:
      return place + " depends on what its memory held before the launch: write it before it is read";
    case OwnKernelFault::Uninitialised:
      return place + " depends on shared memory that no thread wrote";
    case OwnKernelFault::Varies:
      return place + " differs from launch to launch: two threads write or read it without a barrier";
    default:
      return sentence_of(fault);
  }
}

}  // namespace ws
