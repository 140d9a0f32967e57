// A function of a library that is loaded at its first call. A program that never calls it neither loads the library nor pays
// its memory (cuBLASLt: 150 MB of resident memory), and starts on a machine without it.
#pragma once
#include <atomic>

namespace ws {

// `Libraries` has two static functions: find(name) returns the function or nullptr, missing<Result>(name) answers instead of a
// function that was not found.
template <class Function, class Libraries>
class LateCall;

template <class Result, class... Arguments, class Libraries>
class LateCall<Result (*)(Arguments...), Libraries> {
 public:
  explicit constexpr LateCall(const char* name) : name_(name) {}

  Result operator()(Arguments... arguments) const {
    auto* function = function_.load(std::memory_order_acquire);
    if (!function) {
      function = reinterpret_cast<Result (*)(Arguments...)>(Libraries::find(name_));
      function_.store(function, std::memory_order_release);
    }
    return function ? function(arguments...) : Libraries::template missing<Result>(name_);
  }

  void stand_in(Result (*function)(Arguments...)) const { function_.store(function, std::memory_order_release); }  // for tests

 private:
  const char* name_;
  mutable std::atomic<Result (*)(Arguments...)> function_{nullptr};
};

}  // namespace ws
