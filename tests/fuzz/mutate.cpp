#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ws::fuzz {
namespace {

size_t below(size_t bound, Random& random) { return bound == 0 ? 0 : static_cast<size_t>(random() % bound); }

void flip_bit(Bytes& bytes, const Bytes&, Random& random) {
  if (!bytes.empty()) bytes[below(bytes.size(), random)] ^= static_cast<uint8_t>(1u << below(8, random));
}

void set_byte(Bytes& bytes, const Bytes&, Random& random) {
  if (!bytes.empty()) bytes[below(bytes.size(), random)] = static_cast<uint8_t>(random());
}

// Sizes and counts that overflow, are negative, are off by one.
void set_number(Bytes& bytes, const Bytes&, Random& random) {
  static constexpr uint64_t kNumbers[] = {0,
                                          1,
                                          2,
                                          0x7f,
                                          0x80,
                                          0xff,
                                          0x7fff,
                                          0xffff,
                                          0x10000,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x100000000,
                                          0x7fffffffffffffff,
                                          0xffffffffffffffff};
  const uint64_t number = kNumbers[below(std::size(kNumbers), random)];
  const size_t width = size_t{1} << below(4, random);
  if (bytes.size() < width) return;
  const size_t at = below(bytes.size() - width + 1, random);
  const bool big_endian = random() & 1;
  for (size_t i = 0; i < width; ++i)
    bytes[at + i] = static_cast<uint8_t>(number >> 8 * (big_endian ? width - 1 - i : i));
}

void cut_off(Bytes& bytes, const Bytes&, Random& random) { bytes.resize(below(bytes.size() + 1, random)); }

void remove_piece(Bytes& bytes, const Bytes&, Random& random) {
  const size_t at = below(bytes.size(), random);
  const size_t count = std::min(bytes.size() - at, 1 + below(16, random));
  bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(at + count));
}

void insert_piece(Bytes& bytes, const uint8_t* piece, size_t count, Random& random) {
  const size_t at = below(bytes.size() + 1, random);
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece, piece + count);
}

void repeat_piece(Bytes& bytes, const Bytes&, Random& random) {
  const size_t at = below(bytes.size(), random);
  const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at + below(bytes.size() - at + 1, random)));
  insert_piece(bytes, piece.data(), std::min<size_t>(piece.size(), 64), random);
}

void mix_in(Bytes& bytes, const Bytes& other, Random& random) {
  const size_t at = below(other.size(), random);
  insert_piece(bytes, other.data() + at, below(other.size() - at + 1, random), random);
}

// What means something in the text formats.
void insert_word(Bytes& bytes, const Bytes&, Random& random) {
  static constexpr std::string_view kWords[] = {",",
                                                ";",
                                                "\t",
                                                "\n",
                                                "\r\n",
                                                "\"",
                                                "\"\"",
                                                "{",
                                                "}",
                                                "[",
                                                "]",
                                                ":",
                                                "-",
                                                "NaN",
                                                "inf",
                                                "1e999",
                                                "-0",
                                                "null",
                                                "true",
                                                "\xEF\xBB\xBF",
                                                "99999999999999999999",
                                                "0.1",
                                                "\\u0000",
                                                "\x1f\x8b\x08"};
  const std::string_view word = kWords[below(std::size(kWords), random)];
  insert_piece(bytes, reinterpret_cast<const uint8_t*>(word.data()), word.size(), random);
}

constexpr void (*kChanges[])(Bytes&, const Bytes&, Random&) = {flip_bit,     set_byte,     set_number, cut_off,
                                                               remove_piece, repeat_piece, mix_in,     insert_word};

}  // namespace

Bytes mutate(const Bytes& input, const Bytes& other, size_t most, Random& random) {
  Bytes bytes = input;
  const size_t changes = size_t{1} << below(4, random);
  for (size_t i = 0; i < changes; ++i) kChanges[below(std::size(kChanges), random)](bytes, other, random);
  if (bytes.size() > most) bytes.resize(most);
  return bytes;
}

}  // namespace ws::fuzz
