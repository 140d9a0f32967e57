#include "engine/cuda/runtime/check.h"

#include <atomic>
#include <string>

#include "engine/cuda/runtime/late_libraries.h"

namespace ws::cuda {
namespace {

std::atomic<bool> g_lost{false};

// "cudaMalloc(&p, n)" → "cudaMalloc": users need the name, not our variables.
std::string function_of(const char* call) {
  const std::string text(call);
  return text.substr(0, text.find('('));
}

std::string advice(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "the GPU has too little free memory; choose a smaller batch or model";
    case cudaErrorNoDevice:
      return "no NVIDIA GPU was found; train on the CPU with device cpu";
    case cudaErrorInsufficientDriver:
      return "install a newer NVIDIA driver, or train on the CPU with device cpu";
    case cudaErrorNoKernelImageForDevice:
      return "this build has no code for this GPU; configure it again on this machine";
    case cudaErrorLaunchTimeout:
      return "the display driver ended a long kernel; choose a smaller batch";
    case cudaErrorStreamCaptureUnsupported:
      return "this work cannot be part of a CUDA graph; choose launch eager";
    default:
      break;
  }
  if (is_sticky(code))
    return std::string(cudaGetErrorString(code)) + "; the run ends here, and what it made so far is kept";
  return cudaGetErrorString(code);
}

}  // namespace

bool is_sticky(cudaError_t code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorContextIsDestroyed:
      return true;
    default:
      return false;
  }
}

bool context_is_lost() { return g_lost.load(std::memory_order_acquire); }

void reset_lost_context() {
  if (!g_lost.load(std::memory_order_acquire)) return;
  cudaDeviceReset();  // returns the sticky error once more
  cudaGetLastError();
  const bool given = cudaSetDevice(0) == cudaSuccess && cudaFree(nullptr) == cudaSuccess;
  cudaGetLastError();
  if (given) g_lost.store(false, std::memory_order_release);
}

void throw_failure(cudaError_t code, const char* call) {
  cudaGetLastError();  // clear the error, so that the next launch does not report it again
  if (is_sticky(code)) g_lost.store(true, std::memory_order_release);
  const char* name = cudaGetErrorName(code);
  if (code == cudaErrorMemoryAllocation) throw OutOfMemory(function_of(call), name, advice(code));
  throw CallFailure(function_of(call), name, advice(code));
}

void throw_failure(cublasStatus_t code, const char* call) {
  const char* name = cublasLtGetStatusName(code);
  const char* why = code == CUBLAS_STATUS_NOT_SUPPORTED ? "cuBLASLt has no algorithm for this shape and precision"
                                                        : cublasLtGetStatusString(code);
  throw CallFailure(function_of(call), name, why);
}

}  // namespace ws::cuda
