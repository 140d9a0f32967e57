// Text by characters: a row holds `context` characters, and the target of each is the character behind it.
#pragma once
#include <string_view>

#include "datasets/dataset.h"

namespace ws::data {

// Rows of a text of so many characters: its end is held out for testing.
struct TextRows {
  int64_t train = 0, test = 0;
};
TextRows rows_of_text(int64_t characters, const DataSpec& spec);

// Throws Failure if the text is not UTF-8, too short for a row, or of one character only. `name` is for messages.
Dataset text_set(std::string_view text, const DataSpec& spec, const std::string& name);
std::string made_sentences(const DataSpec& spec);  // spec.points sentences of a small grammar

inline constexpr int64_t kAustenCharacters = 1567796, kAustenSymbols = 80;
Dataset load_austen(const DataSpec& spec);
Dataset load_text(const DataSpec& spec);
Dataset make_sentences(const DataSpec& spec);

}  // namespace ws::data
