// The same names for whoever listens to NVTX (Nsight Systems); nothing without the header or a listener.
#pragma once
#include <cstdint>

#include "profiling/annotate/annotate.h"

namespace ws::prof::nvtx {

bool listened_to();  // a tool was injected for NVTX
void push_step(int64_t step);
void push_phase(const char* name);
void push_op(OpTag op);
void pop();

// While it lives, marks are NVTX ranges for a tool that listens to those, also when nothing is traced. A collector
// takes its place for as long as one gathers, and sees to the ranges itself.
class Names {
 public:
  Names();
  ~Names();
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
};

}  // namespace ws::prof::nvtx
