// What comes over the line between two machines: frames, and in them news, traces and requests.
#include <string_view>

#include "app/core/remote/curves.h"
#include "app/core/remote/frame.h"
#include "app/core/remote/remote_address.h"
#include "app/core/remote/update_codec.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(line) {
  ws::fuzz::accepts([&] {
    const ws::app::RemoteAddress address = ws::app::parse_remote(std::string("ssh://").append(bytes));
    ws::fuzz::require(!address.host.empty() && address.host[0] != '-', "a host is no option of ssh");
  });
  ws::fuzz::accepts([&] { ws::app::read_history(std::string(bytes)); });
  const size_t whole = ws::app::whole_frames_in(bytes, 1000);
  ws::fuzz::require(whole <= bytes.size(), "frames are no longer than their bytes");
  ws::app::FrameReader frames("Fuzz");
  ws::app::UpdateReader reader;
  for (size_t at = 0; at < bytes.size(); at += 1000)
    ws::fuzz::accepts([&] {
      frames.add(bytes.substr(at, 1000));
      ws::app::RemoteUpdate update;
      while (const auto frame = frames.next()) {
        ws::fuzz::require(frame->payload.size() <= ws::app::kMostPayload, "no message is longer than allowed");
        reader.read(*frame, update);
      }
    });
}
