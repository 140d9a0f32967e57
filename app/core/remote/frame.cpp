#include "app/core/remote/frame.h"

#include <cstring>

#include "profiling/base/failure.h"

namespace ws::app {
namespace {

constexpr size_t kHeader = sizeof(uint32_t) + 1;

}  // namespace

std::string frame_of(uint8_t kind, std::string_view payload) {
  if (payload.size() > kMostPayload) throw Failure("A message of " + std::to_string(payload.size()) + " bytes is too long.");
  const auto size = static_cast<uint32_t>(payload.size());
  std::string frame(reinterpret_cast<const char*>(&size), sizeof size);
  frame += static_cast<char>(kind);
  return frame.append(payload);
}

size_t frame_size(const Frame& frame) { return kHeader + frame.payload.size(); }

size_t whole_frames_in(std::string_view bytes, size_t most) {
  size_t whole = 0;
  while (bytes.size() - whole >= kHeader) {
    uint32_t size = 0;
    std::memcpy(&size, bytes.data() + whole, sizeof size);
    const size_t end = whole + kHeader + size;
    if (end > bytes.size() || (whole > 0 && end > most)) break;
    whole = end;
  }
  return whole;
}

void FrameReader::add(std::string_view bytes) {
  bytes_.erase(0, at_);
  at_ = 0;
  bytes_.append(bytes);
}

std::optional<Frame> FrameReader::next() {
  if (bytes_.size() - at_ < kHeader) return std::nullopt;
  uint32_t size = 0;
  std::memcpy(&size, bytes_.data() + at_, sizeof size);
  if (size > kMostPayload) throw Failure(name_ + ": claims a message of " + std::to_string(size) + " bytes");
  if (bytes_.size() - at_ - kHeader < size) return std::nullopt;
  const Frame frame{static_cast<uint8_t>(bytes_[at_ + sizeof size]), std::string_view(bytes_).substr(at_ + kHeader, size)};
  at_ += kHeader + size;
  return frame;
}

}  // namespace ws::app
