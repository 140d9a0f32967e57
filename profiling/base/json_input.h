// The only way in for JSON: from files, run files, other programs and people. Nothing of it is trusted.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ws {

// Throws Failure beginning with `name` where the text is no JSON, nested too deep or too long.
nlohmann::json parse_json(std::string_view text, const std::string& name);
nlohmann::json parse_json_or_null(std::string_view text);
nlohmann::json read_json(const std::filesystem::path& file);  // throws Failure

// A value and the path of its key. A value of the wrong type or size is refused in a sentence that names the path; one
// that is missing gives the fallback. Refers to the JSON, which must stay.
class JsonInput {
 public:
  JsonInput(const nlohmann::json& value, std::string path);

  bool there() const { return value_ != nullptr; }
  bool is_null() const;
  const nlohmann::json& value() const { return *value_; }  // where it is there
  const std::string& path() const { return path_; }

  JsonInput at(const std::string& key) const;        // of an object; may be missing
  JsonInput required(const std::string& key) const;  // throws Failure where it is missing
  std::vector<JsonInput> items() const;              // of a list; empty where it is missing
  std::vector<std::pair<std::string, JsonInput>> entries() const;  // of an object; empty where it is missing

  std::string text(const std::string& fallback = {}) const;
  bool flag(bool fallback) const;
  double number(double fallback) const;
  double number(double fallback, double least, double most) const;
  int64_t whole(int64_t fallback, int64_t least = -kMostWhole, int64_t most = kMostWhole) const;

  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  static constexpr int64_t kMostWhole = 9'000'000'000'000'000;  // a double can hold it
  JsonInput(const nlohmann::json* value, std::string path) : value_(value), path_(std::move(path)) {}

  const nlohmann::json* value_;  // null: there is none
  std::string path_;
};

}  // namespace ws
