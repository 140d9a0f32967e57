// Compiled with FMT_HEADER_ONLY: the library that we load into other programs must not need libfmt.
#include "profiling/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ws {
namespace {

constexpr const char* kUnknown = "–";

}  // namespace

std::string text_of_pattern(fmt::string_view pattern, fmt::format_args values) { return fmt::vformat(pattern, values); }

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return kUnknown;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  const bool zero = text.find_first_of("123456789") == text.npos;
  return zero && text[0] == '-' ? text.substr(1) : text;
}

std::string signed_fixed(double value, int decimals) {
  const std::string text = fixed(value, decimals);
  return value > 0 && text.find_first_of("123456789") != text.npos ? "+" + text : text;
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return kUnknown;
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e9) return fixed(value / 1e9, 2) + " G";
  if (size >= 1e6) return fixed(value / 1e6, 2) + " M";
  if (size < 1e-4) return fmt::format("{:.1e}", value);
  const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
  return fixed(value, std::clamp(digits - before, 0, 6));
}

std::string with_capital(std::string line) {
  const std::string_view word = std::string_view(line).substr(0, line.find(' '));
  const bool plain = std::ranges::all_of(word, [](char letter) { return letter >= 'a' && letter <= 'z'; });
  if (plain && !word.empty()) line[0] = static_cast<char>(line[0] - 'a' + 'A');
  return line;
}

std::string joined_names(std::span<const std::string> names, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last : ", ";
    text += names[i];
  }
  return text;
}

std::string count_text(double value) {
  std::string text = fixed(value, 0);
  for (size_t at = text.size(), first = value < 0; std::isfinite(value) && at > first + 3;) text.insert(at -= 3, " ");
  return text;
}

namespace {
constexpr std::string_view kTimes = " × ";
}

std::string several_text(size_t count, const std::string& what) {
  return std::to_string(count) + std::string(kTimes) + what;
}

std::string without_count(const std::string& several) {
  const size_t digits = several.find_first_not_of("0123456789");
  const bool counted = digits != 0 && digits != several.npos && several.compare(digits, kTimes.size(), kTimes) == 0;
  return counted ? several.substr(digits + kTimes.size()) : several;
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  for (; std::abs(bytes) >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fixed(bytes, std::min(static_cast<int>(unit), 2)) + kUnits[unit];
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return kUnknown;
  if (seconds > 0 && seconds < 0.0095) return fixed(seconds * 1000, 1) + " ms";
  if (seconds < 0.0995) return fixed(seconds, 3) + " s";
  const int decimals = seconds < 1 ? 2 : seconds < 10 ? 1 : 0;
  if (seconds < 59.5) return fixed(seconds, decimals) + " s";
  const auto whole = static_cast<int64_t>(std::clamp(seconds, 60.0, 9e15));
  if (whole >= 20 * 60 && whole < 3600) return fmt::format("{} min", std::lround(seconds / 60));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string time_text(double us) {
  const double size = std::abs(us);
  if (size < 1000) return fixed(us, 1) + " µs";
  if (size < 1e6) return fixed(us / 1000, 2) + " ms";
  return fixed(us / 1e6, 2) + " s";
}

std::string time_text(double us, double step_us) { return step_us >= 1000 ? fixed(us / 1000, 2) + " ms" : time_text(us); }

std::string percent(double share, int decimals) { return fixed(100 * share, decimals) + " %"; }

std::string_view trimmed(std::string_view text, std::string_view of) {
  const size_t first = text.find_first_not_of(of), last = text.find_last_not_of(of);
  return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
}

std::string_view last_line(std::string_view text) {
  text = trimmed(text);
  return trimmed(text.substr(text.rfind('\n') + 1));
}

std::string column_letters(size_t number) {
  constexpr std::string_view kLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ";
  std::string text;
  for (size_t rest = number + 1; rest > 0; rest = (rest - 1) / kLetters.size())
    text.insert(text.begin(), kLetters[(rest - 1) % kLetters.size()]);
  return text;
}

}  // namespace ws
