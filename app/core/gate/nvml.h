// The part of NVML that the gate uses, found at run time.
#pragma once
#include <cstdint>
#include <vector>

namespace ws::app {

// A process that computes. `gpu`: a GPU, or an instance of a divided one: any number that is its own.
struct GpuUser {
  int gpu = 0;
  int64_t process = 0;
  bool operator==(const GpuUser&) const = default;
};

class Nvml {
 public:
  Nvml();
  bool loaded() const { return library_ != nullptr; }
  unsigned gpus() const { return gpus_; }  // 0 without NVML
  std::vector<GpuUser> users() const;
  unsigned clock_mhz(unsigned gpu) const;  // the application clock; 0: not known
  // Both return NVML's number of an error; 0: done.
  int lock_clocks(unsigned gpu, unsigned mhz) const;
  int reset_clocks(unsigned gpu) const;

 private:
  struct ProcessInfo {  // nvmlProcessInfo_v2_t
    unsigned process;
    unsigned long long bytes;
    unsigned instance, compute_instance;
  };
  template <class Function>
  void find(Function& function, const char* name);
  void* device(unsigned gpu) const;

  void* library_ = nullptr;
  unsigned gpus_ = 0;
  int (*handle_)(unsigned, void**) = nullptr;
  int (*processes_)(void*, unsigned*, ProcessInfo*) = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*lock_)(void*, unsigned, unsigned) = nullptr;
  int (*reset_)(void*) = nullptr;
};

}  // namespace ws::app
