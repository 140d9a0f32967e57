// Derives facts about a kernel from its name.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/trace.h"

namespace ws::prof {

// Guesses from its name what a kernel does, for programs without marks. A space in the name counts as "_".
Meaning meaning_of_kernel(std::string_view name);
// "batch norm", "pooling": the kind of a reduction, if the name has one. Empty for all other kernels.
std::string_view kind_of_reduction(std::string_view name);
// The same for a range on the host: "gloo:all_reduce" is communication between processes.
Meaning meaning_of_range(std::string_view name);
std::string readable_kernel_name(const char* mangled);
// "at::native::add" for the symbol of "at::Tensor at::native::add<float>(at::Tensor const&)".
std::string short_function_name(const std::string& symbol);

}  // namespace ws::prof
