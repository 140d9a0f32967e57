// The same names for whoever listens to NVTX (Nsight Systems); nothing without the header or a listener.
#pragma once
#include <cstdint>

#include "profiling/annotate.h"

namespace ws::prof::nvtx {

bool listened_to();  // a tool was injected for NVTX
void push_step(int64_t step);
void push_phase(const char* name);
void push_op(OpTag op);
void pop();

}  // namespace ws::prof::nvtx
