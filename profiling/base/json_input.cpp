#include "profiling/base/json_input.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "profiling/base/failure.h"

namespace ws {

using nlohmann::json;

namespace {

constexpr size_t kMostBytes = 16u << 20;  // the parsed tree takes up to twenty times its text
constexpr int kDeepest = 64;              // copying and printing recurse this deep

std::string too_large() { return "larger than " + std::to_string(kMostBytes >> 20) + " MiB"; }

// Checks a text before it is parsed. Returns the reason for refusing it, or "".
std::string why_refused(std::string_view text) {
  if (text.size() > kMostBytes) return too_large();
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
      continue;
    }
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > kDeepest) return "nested too deep, over " + std::to_string(kDeepest) + " levels";
  }
  return {};
}

std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

}  // namespace

json parse_json(std::string_view text, const std::string& name) {
  if (const std::string why = why_refused(text); !why.empty()) throw Failure(name + ": " + why);
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw Failure(name + ": not valid JSON at byte " + std::to_string(error.byte));
  } catch (const json::exception&) {
    throw Failure(name + ": not valid JSON; numbers must be finite");
  }
}

json parse_json_or_null(std::string_view text) {
  if (!why_refused(text).empty()) return {};
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json() : value;
}

json read_json(const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::is_directory(file, none)) throw Failure(file.string() + ": is a folder, expected a JSON file");
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Failure(file.string() + ": cannot be opened: " + std::strerror(errno));
  // A window asks several readers about a large trace, which is none of theirs.
  if (const auto size = std::filesystem::file_size(file, none); !none && size > kMostBytes) throw Failure(file.string() + ": " + too_large());
  std::string text;
  std::array<char, 1 << 14> part{};
  do {
    in.read(part.data(), part.size());
    text.append(part.data(), static_cast<size_t>(in.gcount()));
  } while (text.size() <= kMostBytes && in.gcount() > 0);
  return parse_json(text, file.string());
}

JsonInput::JsonInput(const json& value, std::string path) : value_(&value), path_(std::move(path)) {}

bool JsonInput::is_null() const { return value_ && value_->is_null(); }

JsonInput JsonInput::at(const std::string& key) const {
  if (value_ && !value_->is_object()) refuse("an object");
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (!value_) return {nullptr, path};
  const auto found = value_->find(key);
  return {found == value_->end() ? nullptr : &*found, path};
}

JsonInput JsonInput::required(const std::string& key) const {
  JsonInput value = at(key);
  if (!value.there()) throw Failure(value.path_ + ": is missing");
  return value;
}

std::vector<JsonInput> JsonInput::items() const {
  std::vector<JsonInput> all;
  if (!value_) return all;
  if (!value_->is_array()) refuse("a list");
  for (const json& item : *value_) all.push_back({&item, path_ + "[" + std::to_string(all.size()) + "]"});
  return all;
}

std::vector<std::pair<std::string, JsonInput>> JsonInput::entries() const {
  std::vector<std::pair<std::string, JsonInput>> all;
  if (!value_) return all;
  if (!value_->is_object()) refuse("an object");
  for (const auto& [key, item] : value_->items()) all.emplace_back(key, JsonInput(&item, path_ + "." + key));
  return all;
}

std::string JsonInput::text(const std::string& fallback) const {
  if (!value_) return fallback;
  if (!value_->is_string()) refuse("text");
  return value_->get<std::string>();
}

bool JsonInput::flag(bool fallback) const {
  if (!value_) return fallback;
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

double JsonInput::number(double fallback) const {
  if (!value_) return fallback;
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

double JsonInput::number(double fallback, double least, double most) const {
  if (!value_) return fallback;
  if (!value_->is_number() || value_->get<double>() < least || value_->get<double>() > most)
    refuse("a number from " + number_text(least) + " to " + number_text(most));
  return value_->get<double>();
}

int64_t JsonInput::whole(int64_t fallback, int64_t least, int64_t most) const {
  if (!value_) return fallback;
  const double number = value_->is_number() ? value_->get<double>() : std::nan("");
  if (!(number >= static_cast<double>(least) && number <= static_cast<double>(most)) || std::floor(number) != number)
    refuse("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return static_cast<int64_t>(number);
}

void JsonInput::refuse(const std::string& expected) const {
  throw Failure(path_ + ": expected " + expected + ", got " + (value_ ? shown(*value_) : "nothing"));
}

}  // namespace ws
