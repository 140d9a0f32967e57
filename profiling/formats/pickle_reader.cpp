#include "profiling/formats/pickle_reader.h"

#include <bit>
#include <cmath>
#include <unordered_map>

#include "profiling/base/budget.h"
#include "profiling/base/byte_reader.h"

namespace ws::prof {

namespace {
const std::vector<Pickle::Value> kNoItems;
constexpr uint64_t kNodeBytes = 96;  // a value and its entry on the stack
}  // namespace

int64_t Pickle::number(Value value, int64_t otherwise) const {
  const Node& node = nodes_[value];
  if (node.kind == Kind::Int || node.kind == Kind::Bool) return node.number;
  constexpr double kMost = 9e18;
  return node.kind == Kind::Float && std::abs(node.real) < kMost ? static_cast<int64_t>(node.real) : otherwise;
}

std::string_view Pickle::text(Value value) const {
  return nodes_[value].kind == Kind::Text ? std::string_view(nodes_[value].text) : std::string_view();
}

const std::vector<Pickle::Value>& Pickle::items(Value value) const {
  return nodes_[value].kind == Kind::List ? nodes_[value].items : kNoItems;
}

Pickle::Value Pickle::at(Value dictionary, std::string_view key) const {
  if (nodes_[dictionary].kind != Kind::Dict) return 0;
  const std::vector<Value>& items = nodes_[dictionary].items;
  for (size_t i = items.size(); i >= 2; i -= 2)
    if (text(items[i - 2]) == key) return items[i - 1];
  return 0;
}

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const std::string& name, Pickle& out) : in_(bytes, name), out_(out) {}

  void run() {
    while (step(in_.value<uint8_t>("the pickle"))) {
    }
  }

 private:
  using Value = Pickle::Value;
  using Kind = Pickle::Kind;

  Value add(Pickle::Node node) {
    budget_.take(kNodeBytes + node.text.size());
    out_.nodes_.push_back(std::move(node));
    return static_cast<Value>(out_.nodes_.size() - 1);
  }
  void push(Value value) {
    budget_.take(sizeof(Value));
    stack_.push_back(value);
  }
  void push_number(int64_t number, Kind kind = Kind::Int) {
    Pickle::Node node;
    node.kind = kind, node.number = number;
    push(add(std::move(node)));
  }
  void push_text(std::string_view text) {
    Pickle::Node node;
    node.kind = Kind::Text, node.text = text;
    push(add(std::move(node)));
  }
  void push_empty(Kind kind) {
    Pickle::Node node;
    node.kind = kind;
    push(add(std::move(node)));
  }
  Value pop() {
    if (stack_.size() <= floor()) in_.fail("takes a value that is not there");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value top() {
    if (stack_.size() <= floor()) in_.fail("uses a value that is not there");
    return stack_.back();
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  // Pops the values since the last mark.
  std::vector<Value> pop_marked() {
    if (marks_.empty()) in_.fail("has no mark for what it gathers");
    std::vector<Value> values(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return values;
  }
  void extend(Kind kind, const std::vector<Value>& values) {
    Pickle::Node& node = out_.nodes_[top()];
    if (node.kind != kind) in_.fail("adds to what holds nothing");
    if (kind == Kind::Dict && values.size() % 2 != 0) in_.fail("has a key without a value");
    budget_.take(values.size() * sizeof(Value));
    node.items.insert(node.items.end(), values.begin(), values.end());
  }
  void push_tuple(std::vector<Value> values) {
    budget_.take(values.size() * sizeof(Value));
    Pickle::Node node;
    node.kind = Kind::List, node.items = std::move(values);
    push(add(std::move(node)));
  }
  void push_last(int count) {
    std::vector<Value> values(static_cast<size_t>(count));
    for (size_t i = values.size(); i-- > 0;) values[i] = pop();
    push_tuple(std::move(values));
  }
  void remember(uint64_t place) {
    budget_.take(kNodeBytes);
    memo_[place] = top();
  }
  void recall(uint64_t place) {
    const auto at = memo_.find(place);
    if (at == memo_.end()) in_.fail("recalls what it never kept");
    push(at->second);
  }
  // Two's complement, least significant byte first. Numbers of more than 64 bits are truncated.
  int64_t long_number(uint64_t bytes) {
    const std::string_view raw = in_.raw(bytes, "a number");
    uint64_t number = !raw.empty() && static_cast<uint8_t>(raw.back()) >= 0x80 ? ~uint64_t{0} : 0;
    for (size_t i = std::min<size_t>(raw.size(), 8); i-- > 0;) number = number << 8 | static_cast<uint8_t>(raw[i]);
    return static_cast<int64_t>(number);
  }
  double big_endian_double() {
    uint64_t bits = 0;
    for (const char c : in_.raw(8, "a number")) bits = bits << 8 | static_cast<uint8_t>(c);
    return std::bit_cast<double>(bits);
  }
  void push_float(double real) {
    Pickle::Node node;
    node.kind = Kind::Float, node.real = real;
    push(add(std::move(node)));
  }

  bool step(uint8_t op);
  bool step_values(uint8_t op);
  bool step_containers(uint8_t op);
  bool step_memo(uint8_t op);

  ByteReader in_;
  Pickle& out_;
  Budget budget_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;  // stack sizes
  std::unordered_map<uint64_t, Value> memo_;
};

bool PickleMachine::step_values(uint8_t op) {
  switch (op) {
    case 'N':
      push(0);
      return true;
    case 0x88:
    case 0x89:
      push_number(op == 0x88, Kind::Bool);
      return true;
    case 'J':
      push_number(in_.value<int32_t>("a number"));
      return true;
    case 'K':
      push_number(in_.value<uint8_t>("a number"));
      return true;
    case 'M':
      push_number(in_.value<uint16_t>("a number"));
      return true;
    case 0x8a:
      push_number(long_number(in_.value<uint8_t>("a number")));
      return true;
    case 0x8b:
      push_number(long_number(in_.value<uint32_t>("a number")));
      return true;
    case 'G':
      push_float(big_endian_double());
      return true;
    case 0x8c:
    case 'C':
    case 'U':
      push_text(in_.raw(in_.value<uint8_t>("a text"), "a text"));
      return true;
    case 'X':
    case 'B':
    case 'T':
      push_text(in_.raw(in_.value<uint32_t>("a text"), "a text"));
      return true;
    case 0x8d:
    case 0x8e:
      push_text(in_.raw(in_.value<uint64_t>("a text"), "a text"));
      return true;
    default:
      return false;
  }
}

bool PickleMachine::step_containers(uint8_t op) {
  switch (op) {
    case '(':
      budget_.take(sizeof(size_t));
      marks_.push_back(stack_.size());
      return true;
    case ']':
    case ')':
      push_empty(Kind::List);
      return true;
    case '}':
      push_empty(Kind::Dict);
      return true;
    case 'a': {
      const Value value = pop();
      extend(Kind::List, {value});
      return true;
    }
    case 'e': {
      const auto values = pop_marked();
      extend(Kind::List, values);
      return true;
    }
    case 's': {
      const Value value = pop(), key = pop();
      extend(Kind::Dict, {key, value});
      return true;
    }
    case 'u': {
      const auto values = pop_marked();
      extend(Kind::Dict, values);
      return true;
    }
    case 't':
    case 'l':
      push_tuple(pop_marked());
      return true;
    case 'd': {
      const auto values = pop_marked();
      push_empty(Kind::Dict);
      extend(Kind::Dict, values);
      return true;
    }
    case 0x85:
    case 0x86:
    case 0x87:
      push_last(op - 0x84);
      return true;
    default:
      return false;
  }
}

bool PickleMachine::step_memo(uint8_t op) {
  switch (op) {
    case 0x94:
      remember(memo_.size());
      return true;
    case 'q':
      remember(in_.value<uint8_t>("a place"));
      return true;
    case 'r':
      remember(in_.value<uint32_t>("a place"));
      return true;
    case 'h':
      recall(in_.value<uint8_t>("a place"));
      return true;
    case 'j':
      recall(in_.value<uint32_t>("a place"));
      return true;
    case '0':
      static_cast<void>(pop());
      return true;
    case '1':
      static_cast<void>(pop_marked());
      return true;
    case '2':
      push(top());
      return true;
    case 0x80:  // protocol version
      void(in_.value<uint8_t>("its version"));
      return true;
    case 0x95:  // frame length
      void(in_.value<uint64_t>("a frame"));
      return true;
    default:
      return false;
  }
}

bool PickleMachine::step(uint8_t op) {
  if (op == '.') {
    out_.root_ = pop();
    return false;
  }
  if (step_values(op) || step_containers(op) || step_memo(op)) return true;
  constexpr std::string_view kCalls = "cioRbQP\x81\x82\x83\x84\x92\x93";
  if (kCalls.find(static_cast<char>(op)) != std::string_view::npos)
    in_.fail("asks to run code, which is refused: only plain data is read");
  in_.fail("has an instruction that plain data does not need (" + std::to_string(op) + ")");
}

Pickle::Pickle(std::string_view bytes, const std::string& name) { PickleMachine(bytes, name, *this).run(); }

}  // namespace ws::prof
