// Records each call of a Python function without a Python frame of ours around it: the function stays the same object, only
// the C function that the interpreter calls for it is ours.
#pragma once
#include <cstddef>

#include "profiling/recording/layouts/interpreter.h"

namespace ws::prof {

using PythonCall = Interpreter::Object (*)(Interpreter::Object function, Interpreter::Object const* arguments, size_t count,
                                           Interpreter::Object names);

// `ours` is called from now on, and `before` becomes what it has to call. `other`: any other Python function. Returns false if
// this interpreter's functions have another layout. Python 3.11 asks for the C function only where C code calls: slots of a type.
bool watch_calls(Interpreter::Object function, Interpreter::Object other, PythonCall ours, PythonCall& before);
// The interpreter keeps a flag of its own in `count`.
constexpr size_t positional_arguments(size_t count) { return count & ~(size_t{1} << (8 * sizeof(size_t) - 1)); }
const char* type_of(Interpreter::Object object);

}  // namespace ws::prof
