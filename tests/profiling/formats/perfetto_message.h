// Perfetto traces (protobuf), made message by message.
#pragma once
#include <string>
#include <string_view>

#include "profiling/base/byte_reader.h"

namespace ws::prof {

// A message of protobuf.
class Message {
 public:
  Message& number(uint64_t field, uint64_t value) { bytes_.varint(field << 3); bytes_.varint(value); return *this; }
  Message& text(uint64_t field, std::string_view value) {
    bytes_.varint(field << 3 | 2), bytes_.varint(value.size()), bytes_.raw(value);
    return *this;
  }
  Message& message(uint64_t field, const Message& value) { return text(field, value.bytes_.bytes()); }
  const std::string& bytes() const { return bytes_.bytes(); }

 private:
  ByteWriter bytes_;
};
inline Message perfetto_event(uint64_t time, uint64_t type, uint64_t track, uint64_t name) {
  Message slice;
  slice.number(10, name).number(3, 1).number(9, type).number(11, track);
  return Message().number(8, time).number(10, 2).number(13, 2).message(11, slice);
}
inline Message perfetto_track(uint64_t id, uint64_t parent, const std::string& name) {
  Message about;
  about.number(1, id).text(2, name);
  if (parent != 0) about.number(5, parent);
  return Message().number(8, 0).number(10, 2).message(60, about);
}

}  // namespace ws::prof
