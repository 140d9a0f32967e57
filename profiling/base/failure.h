// The one exception type for everything that can fail outside this program: files, devices, libraries.
#pragma once
#include <stdexcept>
#include <string>

namespace ws {

// what() is one sentence on what happened and what to do.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the system refuses for now: a disk, a limit, a lock of another program. It may give it later, and the file may be good.
class Unavailable : public Failure {
 public:
  using Failure::Failure;
};

// A call of CUDA, CUPTI or another library returned an error code.
class CallFailure : public Failure {
 public:
  CallFailure(std::string failed_call, std::string code_name, const std::string& advice)
      : Failure(failed_call + " failed with " + code_name + (advice.empty() ? "" : ": " + advice)),
        call(std::move(failed_call)),
        code(std::move(code_name)) {}
  std::string call;
  std::string code;
};

class OutOfMemory : public CallFailure {
 public:
  using CallFailure::CallFailure;
};

}  // namespace ws
