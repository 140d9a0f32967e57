// Says in a clause why CUPTI refuses something. Its message follows "No …: ".
#pragma once
#include <cupti.h>

#include <string>

namespace ws::prof {

struct Refused {
  std::string why;
};
void check(CUptiResult result, const char* doing);  // throws Refused

}  // namespace ws::prof
