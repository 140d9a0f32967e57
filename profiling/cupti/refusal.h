// Why CUPTI refuses something, as a clause that follows "No …: ".
#pragma once
#include <cupti.h>

#include <string>

namespace ws::prof {

struct Refused {
  std::string why;
};
void check(CUptiResult result, const char* doing);  // throws Refused

}  // namespace ws::prof
