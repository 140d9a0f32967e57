// The only way to read JSON, whether from files, other programs or people. The input is not trusted.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ws {

// Throws Failure, with a message that begins with `name`, if the text is not JSON, nested too deeply or too long.
nlohmann::json parse_json(std::string_view text, const std::string& name);
nlohmann::json parse_json_or_null(std::string_view text);
nlohmann::json read_json(const std::filesystem::path& file);  // throws Failure

// A JSON value with the path of its key, for error messages. A value of the wrong type or size throws a Failure that
// names the path. A missing value gives the fallback. Refers to the JSON value, which must outlive it.
class JsonInput {
 public:
  JsonInput(const nlohmann::json& value, std::string path);

  bool there() const { return value_ != nullptr; }
  bool is_null() const;
  const nlohmann::json& value() const { return *value_; }  // only if there() is true
  const std::string& path() const { return path_; }

  JsonInput at(const std::string& key) const;        // member of an object; may be missing
  JsonInput required(const std::string& key) const;  // throws Failure if it is missing
  std::vector<JsonInput> items() const;              // items of a list; empty if it is missing
  std::vector<std::pair<std::string, JsonInput>> entries() const;  // members of an object; empty if it is missing

  std::string text(const std::string& fallback = {}) const;
  bool flag(bool fallback) const;
  double number(double fallback) const;
  double number(double fallback, double least, double most) const;
  int64_t whole(int64_t fallback, int64_t least = -kMostWhole, int64_t most = kMostWhole) const;

  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  static constexpr int64_t kMostWhole = 9'000'000'000'000'000;  // a double can represent it
  JsonInput(const nlohmann::json* value, std::string path) : value_(value), path_(std::move(path)) {}

  const nlohmann::json* value_;  // null: the value is missing
  std::string path_;
};

}  // namespace ws
