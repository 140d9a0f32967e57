#include "datasets/text_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "datasets/locate.h"
#include "profiling/base/failure.h"
#include "profiling/base/packed_file.h"
#include "profiling/base/philox.h"

namespace ws::data {
namespace {

constexpr size_t kMostSymbols = 4096;

// Cuts a text into its characters. Each is a piece of `text`.
std::vector<std::string_view> characters_of(std::string_view text, const std::string& name) {
  std::vector<std::string_view> all;
  all.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    if (length == 0 || at + length > text.size() || !std::ranges::all_of(text.substr(at + 1, length - 1), continues))
      throw Failure(name + ": at byte " + std::to_string(at) + ": this is not UTF-8 text; save it as UTF-8");
    all.push_back(text.substr(at, length));
    at += length;
  }
  return all;
}

// Rows that begin `context` characters after each other. The last character of a row is the target of the one before it.
Split cut_rows(const std::vector<int32_t>& symbols, size_t first, size_t end, int64_t context) {
  Split split;
  const auto each = static_cast<size_t>(context);
  split.rows = end > first ? static_cast<int64_t>((end - first - 1) / each) : 0;
  const size_t count = static_cast<size_t>(split.rows) * each;
  split.x.resize(count);
  split.labels.resize(count);
  for (size_t i = 0; i < count; ++i) {
    split.x[i] = static_cast<float>(symbols[first + i]);
    split.labels[i] = symbols[first + i + 1];
  }
  return split;
}

int64_t held_out(int64_t characters, double share) {
  return static_cast<int64_t>(std::llround(share * static_cast<double>(characters)));
}

void check_length(int64_t characters, const DataSpec& spec, const std::string& name) {
  if (spec.context < 1) throw Failure("The context must be at least one character");
  if (rows_of_text(characters, spec).train > 0) return;
  throw Failure(name + ": the text has " + std::to_string(characters) + " characters, too few for a context of " +
                std::to_string(spec.context) + "; choose a shorter context or a longer text");
}

}  // namespace

TextRows rows_of_text(int64_t characters, const DataSpec& spec) {
  const int64_t test = held_out(characters, spec.validation), train = characters - test;
  const auto rows = [&](int64_t part) { return part > 0 ? (part - 1) / std::max<int64_t>(1, spec.context) : 0; };
  return {rows(train), rows(test)};
}

Dataset text_set(std::string_view text, const DataSpec& spec, const std::string& name) {
  check_memory(static_cast<double>(text.size()) * 28, name);  // pieces, symbols, and the rows
  const std::vector<std::string_view> characters = characters_of(text, name);
  const auto count = static_cast<int64_t>(characters.size());
  check_length(count, spec, name);
  std::map<std::string_view, int32_t> number;
  for (const std::string_view c : characters) number.emplace(c, 0);
  if (number.size() < 2) throw Failure(name + ": the text repeats one character; there is nothing to learn");
  if (number.size() > kMostSymbols)
    throw Failure(name + ": the text has " + std::to_string(number.size()) + " different characters; at most " +
                  std::to_string(kMostSymbols) + " can be symbols");
  Dataset set;
  set.context = set.features = spec.context;
  for (auto& [character, index] : number) {
    index = static_cast<int32_t>(set.class_names.size());
    set.class_names.emplace_back(character);
  }
  set.outputs = static_cast<int64_t>(set.class_names.size());
  std::vector<int32_t> symbols;
  symbols.reserve(characters.size());
  for (const std::string_view c : characters) symbols.push_back(number.at(c));
  const size_t cut = symbols.size() - static_cast<size_t>(held_out(count, spec.validation));
  set.train = cut_rows(symbols, 0, cut, spec.context);
  set.test = cut_rows(symbols, cut, symbols.size(), spec.context);
  return set;
}

Dataset load_austen(const DataSpec& spec) {
  const std::string path = locate("austen/austen.txt.gz");
  PackedReader reader(path);
  Dataset set = text_set(reader.read_text(), spec, "austen");
  return set;
}

Dataset load_text(const DataSpec& spec) {
  PackedReader reader(spec.path);
  Dataset set = text_set(reader.read_text(), spec, spec.path);
  return set;
}

namespace {

constexpr uint64_t kSentenceStream = 0x73656e74;

template <size_t N>
const char* pick(const std::array<const char*, N>& words, uint32_t word) {
  return words[index_below(word, static_cast<uint32_t>(N))];
}

std::string sentence(uint64_t seed, uint64_t i) {
  constexpr std::array kDescribed = {"red", "small", "quiet", "old", "green", "tall", "happy", "slow"};
  constexpr std::array kThings = {"cat", "dog", "house", "river", "bird", "child", "tree", "boat"};
  constexpr std::array kDoes = {"sees", "likes", "follows", "finds", "hears"};
  const PhiloxWords a = philox_at(seed, kSentenceStream, 2 * i), b = philox_at(seed, kSentenceStream, 2 * i + 1);
  std::string text = "the ";
  if (a.w[0] & 1) text += std::string(pick(kDescribed, a.w[1])) + " ";
  text += std::string(pick(kThings, a.w[2])) + " " + pick(kDoes, a.w[3]) + " a ";
  if (b.w[0] & 1) text += std::string(pick(kDescribed, b.w[1])) + " ";
  return text + pick(kThings, b.w[2]) + ".\n";
}

}  // namespace

std::string made_sentences(const DataSpec& spec) {
  check_memory(static_cast<double>(spec.points) * 40, "The data set " + spec.name);
  std::string text;
  for (int64_t i = 0; i < spec.points; ++i) text += sentence(spec.seed, static_cast<uint64_t>(i));
  return text;
}

Dataset make_sentences(const DataSpec& spec) {
  if (spec.points < 2) throw Failure("The data set sentences needs at least 2 points");
  Dataset set = text_set(made_sentences(spec), spec, "sentences");
  return set;
}

}  // namespace ws::data
