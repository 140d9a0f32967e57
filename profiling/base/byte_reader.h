// Writes values as bytes and reads them back from bytes that cannot be trusted. The reader checks every length against
// the bytes that are left before it allocates. Its failures say what was read and where. Numbers have the byte order of
// memory (little-endian machines only, as with CUDA). One list of a struct's fields writes and reads it:
//   constexpr auto kPoint = [](auto& f, auto& p) { f("a point", p.x, p.name, p.values); };
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "profiling/base/failure.h"

namespace ws {

class ByteWriter {
 public:
  template <class... Fields>
  void operator()(const char*, const Fields&... fields) {
    (field(fields), ...);
  }
  template <class T, class Each>
  void each(size_t, const char*, const std::vector<T>& values, Each each) {
    value(uint64_t{values.size()});
    for (const T& one : values) each(one);
  }
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  template <class T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  void text(std::string_view text) {
    value(uint64_t{text.size()});
    raw(text);
  }
  template <class T>
  void list(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    value(uint64_t{values.size()});
    raw({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  // Short for small values of either sign.
  void signed_varint(int64_t value) {
    varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void field(const T& one) {
    value(one);
  }
  template <class T>
  void field(const std::vector<T>& values) {
    list(values);
  }
  void field(const std::string& words) { text(words); }
  void field(const std::map<std::string, std::string>& texts) {
    value(uint64_t{texts.size()});
    for (const auto& [key, one] : texts) text(key), text(one);
  }

  std::string bytes_;
};

class ByteReader {
 public:
  // `name` begins the message of a failure. The bytes must outlive the reader.
  ByteReader(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  template <class... Fields>
  void operator()(const char* what, Fields&... fields) {
    (field(what, fields), ...);
  }
  template <class T, class Each>
  void each(size_t smallest, const char* what, std::vector<T>& values, Each each) {
    this->each(smallest, what, [&] { each(values.emplace_back()); });
  }
  std::string_view raw(uint64_t count, const char* what) {
    if (count > left()) fail(std::string("ends inside ") + what);
    const auto part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  template <class T>
  T value(const char* what) {
    T value;
    read(value, what);
    return value;
  }
  // Reads the number of elements that follow, each of at least `smallest` bytes. Throws Failure if fewer bytes are
  // left.
  uint64_t count(size_t smallest, const char* what) {
    const auto count = value<uint64_t>(what);
    if (count > left() / smallest) fail("claims more " + std::string(what) + " than it holds");
    return count;
  }
  std::string_view text(const char* what) { return raw(count(1, what), what); }
  template <class T>
  std::vector<T> list(const char* what) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(count(sizeof(T), what));
    const auto bytes = raw(values.size() * sizeof(T), what);
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  template <class Each>
  void each(size_t smallest, const char* what, Each each) {
    for (uint64_t left = count(smallest, what); left > 0; --left) each();
  }
  uint64_t varint(const char* what) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail(std::string("ends inside ") + what);
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    fail("holds a number that is too long in " + std::string(what));
  }
  int64_t signed_varint(const char* what) {
    const uint64_t value = varint(what);
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

  uint64_t left() const { return bytes_.size() - at_; }
  void expect_end() const {
    if (left() > 0) fail("has something behind its end");
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw Failure(name_ + ": " + reason + " (byte " + std::to_string(at_) + ")");
  }

 private:
  template <class T>
  void field(const char* what, T& one) {
    read(one, what);
  }
  void field(const char* what, bool& one) { one = value<uint8_t>(what) != 0; }
  template <class T>
  void field(const char* what, std::vector<T>& values) {
    values = list<T>(what);
  }
  void field(const char* what, std::string& words) { words = text(what); }
  void field(const char* what, std::map<std::string, std::string>& texts) {
    each(2 * sizeof(uint64_t), what, [&] {
      std::string key(text(what));
      texts[std::move(key)] = text(what);
    });
  }
  template <class T>
  void read(T& value, const char* what) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(&value, raw(sizeof value, what).data(), sizeof value);
  }

  std::string_view bytes_;
  std::string name_;
  size_t at_ = 0;
};

template <class Struct>
std::string bytes_with(const Struct& value, const auto& list) {
  ByteWriter to;
  list(to, value);
  return to.take();
}

template <class Struct>
Struct whole_from(std::string_view bytes, std::string name, const auto& list) {
  ByteReader from(bytes, std::move(name));
  Struct value;
  list(from, value);
  from.expect_end();
  return value;
}

}  // namespace ws
