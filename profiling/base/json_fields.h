// One list of a struct's fields writes it as JSON and reads it, so that no key stands twice:
//   void list(JsonFields& f, Point& p) { f("size", p.size); f("repeats", p.repeats, 0, 1000); }
#pragma once
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "profiling/base/json_input.h"

namespace ws {

class JsonFields {
 public:
  explicit JsonFields(nlohmann::json& to) : to_(&to) {}
  explicit JsonFields(const JsonInput& from) : from_(&from) {}
  bool reads() const { return from_ != nullptr; }

  // A field that is missing keeps its value.
  void operator()(const char* key, std::string& value) {
    as(key, value, [&](const JsonInput& in) { value = in.text(value); });
  }
  void operator()(const char* key, bool& value) {
    as(key, value, [&](const JsonInput& in) { value = in.flag(value); });
  }
  void operator()(const char* key, double& value) {
    as(key, value, [&](const JsonInput& in) { value = in.number(value); });
  }
  void operator()(const char* key, double& value, double least, double most) {
    as(key, value, [&](const JsonInput& in) { value = in.number(value, least, most); });
  }
  template <std::integral Whole>
  void operator()(const char* key, Whole& value, int64_t least = -kMost, int64_t most = kMost) {
    as(key, value, [&](const JsonInput& in) { value = static_cast<Whole>(in.whole(static_cast<int64_t>(value), least, most)); });
  }
  // NaN, which JSON has as null.
  void real(const char* key, double& value) {
    as(key, value, [&](const JsonInput& in) { value = in.is_null() ? std::nan("") : in.number(std::nan("")); });
  }
  // Whole numbers in one list.
  void numbers(const char* key, std::initializer_list<int64_t*> values) {
    nlohmann::json written = nlohmann::json::array();
    for (const int64_t* value : values) written.push_back(*value);
    as(key, written, [&values](const JsonInput& in) {
      const auto items = in.items();
      if (items.size() != values.size()) in.refuse(std::to_string(values.size()) + " whole numbers");
      auto item = items.begin();
      for (int64_t* value : values) *value = (item++)->whole(0);
    });
  }
  // Writes `written`, or calls `read` with what is there.
  template <class Read>
  void as(const char* key, const auto& written, const Read& read) {
    if (to_) (*to_)[key] = written;
    else read(from_->at(key));
  }

 private:
  static constexpr int64_t kMost = 9'000'000'000'000'000;  // a double can represent it
  nlohmann::json* to_ = nullptr;
  const JsonInput* from_ = nullptr;
};

// What the list of fields writes, after what `to` has already.
template <class Struct>
nlohmann::json written(Struct value, void (*list)(JsonFields&, std::type_identity_t<Struct>&), nlohmann::json to = nlohmann::json::object()) {
  JsonFields fields(to);
  list(fields, value);
  return to;
}

template <class Struct>
Struct read_from(const JsonInput& in, void (*list)(JsonFields&, Struct&)) {
  Struct value;
  JsonFields fields(in);
  list(fields, value);
  return value;
}

}  // namespace ws
