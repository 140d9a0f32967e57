// The calls of CUDA's driver that time work on a stream, taken from the driver that the program has loaded. Nothing here
// needs CUDA's headers, so that a test can stand in for the driver.
#pragma once
#include <cstdint>

namespace ws::prof {

struct CudaEvents {
  static constexpr int kNotReady = 600;                          // what event_query() answers meanwhile
  static constexpr unsigned kTimed = 0, kBesideOthers = 1;       // flags of events and streams
  static constexpr int kRelaxedCapture = 2;
  static constexpr int kMajor = 75, kMinor = 76;                 // attributes of a device

  // Each returns 0, or the driver's error.
  int (*event_create)(void** event, unsigned flags) = nullptr;
  int (*event_record)(void* event, void* stream) = nullptr;
  int (*event_query)(void* event) = nullptr;
  int (*event_elapsed)(float* ms, void* begin, void* end) = nullptr;
  int (*stream_create)(void** stream, unsigned flags) = nullptr;
  static constexpr uintptr_t kLastDefaultStream = 2;  // 0: the default stream, 1: the one of old programs, 2: one a thread
  int (*stream_context)(void* stream, void** context) = nullptr;
  int (*stream_captures)(void* stream, int* state) = nullptr;  // 0: it does not
  int (*context_push)(void* context) = nullptr;
  int (*context_pop)(void** context) = nullptr;
  int (*context_device)(int* device) = nullptr;
  int (*device_name)(char* name, int bytes, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*driver_version)(int* version) = nullptr;
  int (*exchange_capture_mode)(int* mode) = nullptr;  // of this thread
};

// False if no driver is loaded, or one that lacks a call.
bool find_cuda_events(CudaEvents& events);

// Makes a context current on this thread, and keeps our calls from breaking a capture that another thread makes.
class InContext {
 public:
  InContext(const CudaEvents& cuda, void* context) : cuda_(cuda) {
    cuda_.exchange_capture_mode(&mode_);
    entered_ = cuda_.context_push(context) == 0;
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  ~InContext() {
    void* popped = nullptr;
    if (entered_) cuda_.context_pop(&popped);
    cuda_.exchange_capture_mode(&mode_);
  }
  bool entered() const { return entered_; }

 private:
  const CudaEvents& cuda_;
  int mode_ = CudaEvents::kRelaxedCapture;
  bool entered_ = false;
};

}  // namespace ws::prof
