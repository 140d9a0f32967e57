// The sentence of the Failure that a piece of work throws; `otherwise` if it throws none.
#pragma once
#include <string>

#include "profiling/base/failure.h"

namespace ws::test {

template <class Work>
std::string failure_text(const Work& work, const std::string& otherwise = "") {
  try {
    work();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return otherwise;
}

}  // namespace ws::test
