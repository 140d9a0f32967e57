// Reads Python pickles of plain data: numbers, texts, lists, tuples, dictionaries. A pickle is a program; of its instructions
// those that name or call anything are refused, so nothing in the file runs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ws::prof {

class Pickle {
 public:
  enum class Kind : uint8_t { None, Bool, Int, Float, Text, List, Dict };
  // A number into the values of one pickle; several places may hold the same value.
  using Value = uint32_t;

  // Throws Failure: not a pickle, cut off, not plain data, or larger than the budget.
  Pickle(std::string_view bytes, const std::string& name);

  Value root() const { return root_; }
  Kind kind(Value value) const { return nodes_[value].kind; }
  int64_t number(Value value, int64_t otherwise = 0) const;  // of an Int, Bool or Float
  std::string_view text(Value value) const;                  // empty for what is no text
  const std::vector<Value>& items(Value value) const;        // of a list or tuple; empty for what is none
  // Of a dictionary: the last value with this key; a None value where there is none.
  Value at(Value dictionary, std::string_view key) const;

 private:
  friend class PickleMachine;
  struct Node {
    Kind kind = Kind::None;
    int64_t number = 0;
    double real = 0;
    std::string text;
    std::vector<Value> items;  // of a dictionary: key, value, key, value …
  };
  std::vector<Node> nodes_{1};  // the first is None
  Value root_ = 0;
};

}  // namespace ws::prof
