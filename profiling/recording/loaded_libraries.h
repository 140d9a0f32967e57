// Functions of the libraries that a recorded program has loaded: finds them, and redirects the calls to them.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace ws::prof {

// Finds an exported function of the loaded library whose file name begins with `library`, or nullptr. A global look-up
// does not find functions of libraries that were loaded with local visibility.
void* loaded_function(std::string_view library, const char* symbol);

// Every library that is loaded now and calls `symbol` through its own table of addresses calls `instead` from now on.
// Returns how many libraries do so. `instead` calls the function itself, which stays where it is; the library of `instead`
// goes on calling the function.
int redirect_calls(const char* symbol, const void* instead);

struct Redirect {
  const char* symbol;
  const void* instead;
};
// The same for several functions, in libraries that ask for one whose file name begins with `needed`.
int redirect_calls(std::span<const Redirect> calls, std::string_view needed);
// Replaces the addresses of functions wherever a library keeps them in its data, as after dlsym(). Not in the library of the
// functions, nor in the memory of what stands `instead`. Pointers in allocated memory are not found.
struct RedirectedPointer {
  const void *function, *instead;
};
void redirect_pointers(std::span<const RedirectedPointer> pointers);
uint64_t libraries_loaded_so_far();  // grows with each library

}  // namespace ws::prof
