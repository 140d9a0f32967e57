// The connection between rank 0 and one other rank, which is another process. It notices when the other process ends,
// hangs or cannot be reached any more.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace ws {

enum class MessageKind : uint32_t {
  Alive,  // each process sends it every second
  Abandon,
  Hello,
  Welcome,
  Prepare,  // from here: rank 0 asks
  Connect,
  Load,
  SetState,
  Bind,
  Order,
  Run,
  Results,
  CatchUp,
  Evaluate,
  Release,
  Averaged,
  End,
  Done,  // from here: the other rank answers
  Failed,
  Average
};

struct RankMessage {
  MessageKind kind = MessageKind::Alive;
  std::string bytes;
};

// How long a rank may be silent. WARPSIGHT_RANK_TIMEOUT sets it, in seconds.
std::chrono::milliseconds rank_patience();

// Reads one message from a socket that has no channel yet. Throws Failure if none comes or it is longer than `most`.
RankMessage read_message(int socket, uint64_t most);

class RankChannel {
 public:
  // Takes over the connected socket. `peer` begins the sentences about the other process: "Rank 1 (process 7 on host)".
  RankChannel(int socket, std::string peer);
  ~RankChannel();
  RankChannel(const RankChannel&) = delete;
  RankChannel& operator=(const RankChannel&) = delete;

  // These throw Failure with the reason once the channel is broken.
  void send(MessageKind kind, std::string_view bytes = {});
  RankMessage receive();  // waits

  // Breaks the channel and sends the other process the reason.
  void abandon(const std::string& why) noexcept;
  // `act` gets the reason on another thread, or at once if the channel is already broken.
  void when_broken(const std::function<void(const std::string&)>& act);
  // Waits until the other process has closed its end, which a broken channel expects soon.
  void wait_until_closed();

 private:
  void loop();
  std::string read_next();  // returns why there is no message; empty if there is one
  bool read_all(char* to, size_t size);
  void beat();
  bool write(MessageKind kind, std::string_view bytes);  // with send_mutex_ held
  void broke(const std::string& why);

  int socket_;
  std::string peer_;
  std::mutex send_mutex_;
  std::chrono::steady_clock::time_point beat_{};
  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::deque<RankMessage> messages_;
  std::string broken_;
  std::function<void(const std::string&)> act_;
  bool closed_ = false;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace ws
