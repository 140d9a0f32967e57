// What the system refuses for now: a disk, a limit, a lock of another program. It may give it later, and the file may be
// good.
#pragma once
#include "profiling/base/failure.h"

namespace ws {

class Unavailable : public Failure {
 public:
  using Failure::Failure;
};

}  // namespace ws
