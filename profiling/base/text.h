// Formats numbers as text, one function per kind, for the command line, reports, importers and exporters. Uses plain
// digits and a hyphen; app/text gives the window thin spaces and a true minus sign.
#pragma once
// Costs 0.12 s a source file. <fmt/format.h> costs 1.4 to 3 s, so only text.cpp includes it.
#if __has_include(<fmt/base.h>)
#include <fmt/base.h>  // from version 11 on
#else
#include <fmt/core.h>
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ws {

std::string text_of_pattern(fmt::string_view pattern, fmt::format_args values);

// formatted("{:>10} {:.3f} µs", name, us): {fmt} syntax, checked by the compiler. Widths count letters, not bytes.
template <class... Values>
std::string formatted(fmt::format_string<Values...> pattern, Values&&... values) {
  return text_of_pattern(pattern, fmt::make_format_args(values...));
}

// "–" stands for an unknown value.
std::string fixed(double value, int decimals);           // "-0.31"; never "-0.00"
std::string signed_fixed(double value, int decimals);    // "+0.4", "0.0"
std::string significant(double value, int digits = 3);   // "0.0193", "12345", "2.36 M", "3.2e-05"
std::string count_text(double value);                    // "56 280"
std::string with_capital(std::string line);              // "Waits take"; a name stays: "train.py:3", "fc1", "dX"
std::string joined_names(std::span<const std::string> names, std::string_view last = " and ");  // "forward, loss and backward"
std::string several_text(size_t count, const std::string& what);  // "2 × NVIDIA H200"
std::string without_count(const std::string& several);            // "NVIDIA H200", also of a text without a count
std::string bytes_text(double bytes);                    // "512 B", "4.1 KiB", "0.64 MiB", "1.50 GiB"
std::string duration_text(double seconds);               // "0.40 s", "12 s", "12 min 5 s", "1 h 2 min"
std::string time_text(double us, double step_us);        // in the unit of this step
std::string time_text(double us);                        // "27.1 µs", "1.84 ms", "2.00 s"
std::string percent(double share, int decimals = 1);     // "97.6 %"

std::string_view trimmed(std::string_view text, std::string_view of = " \t\r\n");  // without these letters at its begin and its end
std::string_view last_line(std::string_view text);                                  // the last one with a letter, trimmed; empty: none

// Numbers things with letters, as the columns of a spreadsheet: A … Z, AA, AB … I and O are left out: they look like 1 and 0.
std::string column_letters(size_t number);  // "A" for 0, "J" for 8, "Z" for 23, "AA" for 24

}  // namespace ws
