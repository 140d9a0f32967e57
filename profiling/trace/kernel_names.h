// What the name of a kernel tells.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/trace.h"

namespace ws::prof {

// What a kernel of a program without marks most likely does, by its name.
Meaning meaning_of_kernel(std::string_view name);
std::string readable_kernel_name(const char* mangled);

}  // namespace ws::prof
