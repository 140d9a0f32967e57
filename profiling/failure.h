// The one exception type for everything that can fail outside this program: files, devices, libraries.
#pragma once
#include <stdexcept>
#include <string>

namespace ws {

// what() is one sentence a person can act on.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A call of CUDA, CUPTI or another library that answered with an error code.
class CallFailure : public Failure {
 public:
  CallFailure(std::string call, std::string code, const std::string& advice)
      : Failure(call + " failed with " + code + (advice.empty() ? "" : ": " + advice)),
        call(std::move(call)),
        code(std::move(code)) {}
  std::string call;
  std::string code;
};

class OutOfMemory : public CallFailure {
 public:
  using CallFailure::CallFailure;
};

}  // namespace ws
