// Reads Python pickles of plain data: numbers, texts, lists, tuples, dictionaries. A pickle is a program. Instructions
// that name or call anything are refused, so nothing in the file runs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ws::prof {

class Pickle {
 public:
  enum class Kind : uint8_t { None, Bool, Int, Float, Text, List, Dict };
  // Index of a value in one pickle. The same value may occur in several places.
  using Value = uint32_t;

  // Throws Failure if the bytes are not a pickle, are cut off, are not plain data, or exceed the memory budget.
  Pickle(std::string_view bytes, const std::string& name);

  Value root() const { return root_; }
  Kind kind(Value value) const { return nodes_[value].kind; }
  int64_t number(Value value, int64_t otherwise = 0) const;  // for an Int, Bool or Float
  std::string_view text(Value value) const;                  // empty if it is not a text
  const std::vector<Value>& items(Value value) const;        // items of a list or tuple; empty for other kinds
  // Returns the last value of a dictionary with this key, or a None value if there is none.
  Value at(Value dictionary, std::string_view key) const;

 private:
  friend class PickleMachine;
  struct Node {
    Kind kind = Kind::None;
    int64_t number = 0;
    double real = 0;
    std::string text;
    std::vector<Value> items;  // for a dictionary: key, value, key, value …
  };
  std::vector<Node> nodes_{1};  // the first is None
  Value root_ = 0;
};

}  // namespace ws::prof
