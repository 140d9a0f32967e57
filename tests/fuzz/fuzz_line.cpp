// What comes over the line between two machines: frames, and in them news, traces and requests.
#include <string_view>

#include "app/core/remote/curves.h"
#include "app/core/remote/frame.h"
#include "app/core/remote/remote_address.h"
#include "app/core/remote/update_codec.h"
#include "profiling/base/failure.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(line) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), count);
  try {
    const ws::app::RemoteAddress address = ws::app::parse_remote(std::string("ssh://").append(text));
    ws::fuzz::require(!address.host.empty() && address.host[0] != '-', "a host is no option of ssh");
  } catch (const ws::Failure&) {
  }
  try {
    ws::app::read_history(std::string(text));
  } catch (const ws::Failure&) {
  }
  const size_t whole = ws::app::whole_frames_in(text, 1000);
  ws::fuzz::require(whole <= count, "frames are no longer than their bytes");
  ws::app::FrameReader frames("Fuzz");
  ws::app::UpdateReader reader;
  for (size_t at = 0; at < count; at += 1000) {
    try {
      frames.add(text.substr(at, 1000));
      ws::app::RemoteUpdate update;
      while (const auto frame = frames.next()) {
        ws::fuzz::require(frame->payload.size() <= ws::app::kMostPayload, "no message is longer than allowed");
        reader.read(*frame, update);
      }
    } catch (const ws::Failure&) {
    }
  }
  return 0;
}
