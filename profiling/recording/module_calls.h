// Records each call of a PyTorch module: of the function torch.nn.Module.__call__.
#pragma once
#include "profiling/trace/trace.h"

namespace ws::prof {

// `function`: a Python function with the module as its first argument. `learn`: a Python function (module, phase) that
// returns the module's place. Returns false if this interpreter's functions have a different layout.
// Threads may call all of these at the same time: a free-threaded Python has no lock.
bool watch_modules(void* function, void* learn);
void forget_module(const void* module);  // it has died, or its place has changed
// Marks a call of `module` as watch_modules() does, where that is not possible.
void enter_module(void* module);
void leave_module();

// Modules that are called meanwhile belong to this phase.
enum class ProgramPhase { Forward, Backward, Optimizer };
void begin_phase(ProgramPhase phase);
void end_phase(ProgramPhase phase);

}  // namespace ws::prof
