// Shared by the libraries that tests preload (LD_PRELOAD) in order to replace calls of the C library.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>

namespace ws::test {

// Returns the function that the program would call without the preloaded library.
template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

inline bool takes_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

}  // namespace ws::test

#define REAL(name) static const auto real = ws::test::next<decltype(&name)>(#name)
// Defines `mode`: the argument after `last`, if open's flags ask for one.
#define MODE_OF(last)               \
  mode_t mode = 0;                  \
  if (ws::test::takes_mode(flags)) { \
    va_list more;                   \
    va_start(more, last);           \
    mode = va_arg(more, mode_t);    \
    va_end(more);                   \
  }
