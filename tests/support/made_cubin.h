// Machine code of two functions with one line of text each, in the file format of a module.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

namespace ws::test {

// `.text.first` holds 32 bytes of 1, `.text.second` 16 bytes of 2. `flags`: as the compilers write the architecture.
inline std::string made_cubin(unsigned char format_version = 8, uint32_t flags = 0x5a04) {
  const std::string names = std::string("\0.shstrtab\0.text.first\0.text.second\0", 36);
  const std::string first(32, '\1'), second(16, '\2');
  const uint64_t head = 64, sections = head + names.size() + first.size() + second.size();
  std::string bytes(sections + 4 * 64, '\0');
  const auto put = [&bytes](uint64_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  std::memcpy(bytes.data(), "\x7f" "ELF\x02\x01", 6);
  bytes[8] = static_cast<char>(format_version);
  put(40, sections), put(48, flags), put(60, uint16_t{4}), put(62, uint16_t{1});
  uint64_t at = head, number = 1;
  const auto add = [&](const std::string& content, uint32_t name) {
    std::memcpy(bytes.data() + at, content.data(), content.size());
    const uint64_t section = sections + 64 * number++;
    put(section, name), put(section + 24, at), put(section + 32, uint64_t{content.size()});
    at += content.size();
  };
  add(names, 1), add(first, 11), add(second, 23);
  return bytes;
}

}  // namespace ws::test
