// Frames: a length, a kind, the payload. The line between two machines and the news files of a job both carry frames,
// so one guarded reader reads both.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ws::app {

struct Frame {
  uint8_t kind = 0;
  std::string_view payload;
};

inline constexpr uint32_t kMostPayload = 16u << 20;  // bytes

std::string frame_of(uint8_t kind, std::string_view payload);
size_t frame_size(const Frame& frame);  // in bytes, with its header
// Returns the length of the complete frames at the beginning: at most `most`, but at least
// one frame. 0 if none is complete.
size_t whole_frames_in(std::string_view bytes, size_t most);

// Takes bytes in pieces of any size and returns complete frames. It trusts none of the bytes.
class FrameReader {
 public:
  explicit FrameReader(std::string name) : name_(std::move(name)) {}  // error messages begin with the name

  void add(std::string_view bytes);
  // The frame is valid until the next add(). Throws Failure if the bytes are no frames.
  std::optional<Frame> next();

 private:
  std::string name_, bytes_;
  size_t at_ = 0;
};

// Kinds of frames on the line.
enum class LineKind : uint8_t {
  Request = 1,   // to the server: JSON
  Answer = 2,    // from it: JSON
  Bytes = 3,     // from it: stream number, offset, bytes of a remote file
  Event = 4,     // from it: JSON about a stream
  Received = 5,  // to it: total bytes of streams received so far
  Instead = 6,   // from it: stream number, offset, end offset, shorter replacement of those bytes
};

inline constexpr int kLineProtocol = 4;
inline constexpr std::string_view kLineMagic = "warpsight-serve ";  // begins the first line of the server

}  // namespace ws::app
