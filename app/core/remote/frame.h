// Frames: a length, a kind, the payload. The line between two machines carries them, and so do the news files that a job
// leaves, so that both are read by the same guarded reader.
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
size_t frame_size(const Frame& frame);  // in bytes, with its head
// The length of the whole frames at the beginning: at most `most`, but at least one of them. 0: none is whole.
size_t whole_frames_in(std::string_view bytes, size_t most);

// Takes bytes as they come, in pieces of any size, and gives whole frames. Nothing of the bytes is trusted.
class FrameReader {
 public:
  explicit FrameReader(std::string name) : name_(std::move(name)) {}  // the name begins the sentence of a failure

  void add(std::string_view bytes);
  // Valid until the next add(). Throws Failure where the bytes are no frames.
  std::optional<Frame> next();
  bool between_frames() const { return at_ == bytes_.size(); }

 private:
  std::string name_, bytes_;
  size_t at_ = 0;
};

// Kinds of frames on the line.
enum class LineKind : uint8_t {
  Request = 1,   // to the server: JSON
  Answer = 2,    // from it: JSON
  Bytes = 3,     // from it: number of the stream, offset, bytes of a file there
  Event = 4,     // from it: JSON about a stream
  Received = 5,  // to it: how many bytes of streams came so far
  Instead = 6,   // from it: number of the stream, offset, until where, and what stands for those bytes: less of them
};

inline constexpr int kLineProtocol = 2;
inline constexpr std::string_view kLineMagic = "warpscope-serve ";  // begins the first line that the server writes

}  // namespace ws::app
