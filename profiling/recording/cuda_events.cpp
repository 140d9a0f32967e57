#include "profiling/recording/cuda_events.h"

#include "profiling/recording/loaded_libraries.h"

namespace ws::prof {

namespace {

template <class Function>
bool find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(loaded_function("libcuda.so", name));
  return function != nullptr;
}

}  // namespace

bool find_cuda_events(CudaEvents& e) {
  return find(e.event_create, "cuEventCreate") && find(e.event_record, "cuEventRecord") &&
         find(e.event_query, "cuEventQuery") && find(e.event_elapsed, "cuEventElapsedTime") &&
         find(e.stream_create, "cuStreamCreate") && find(e.stream_context, "cuStreamGetCtx") &&
         find(e.stream_captures, "cuStreamIsCapturing") && find(e.context_push, "cuCtxPushCurrent_v2") &&
         find(e.context_pop, "cuCtxPopCurrent_v2") && find(e.context_device, "cuCtxGetDevice") &&
         find(e.device_name, "cuDeviceGetName") && find(e.device_attribute, "cuDeviceGetAttribute") &&
         find(e.driver_version, "cuDriverGetVersion") &&
         find(e.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
}

}  // namespace ws::prof
