// Where the ranks of a training meet: rank 0 listens there and the other ranks connect.
#pragma once
#include <string>

#include "profiling/base/launched_rank.h"

namespace ws {

struct RankMeeting {
  std::string host;
  int port = 0;
  bool one_host = false;  // no rank is on another host
  std::string text() const { return host + ":" + std::to_string(port); }
};

// Throws Failure if the launcher did not say where.
RankMeeting rank_meeting(const LaunchedRank& self);

// A socket; closed by the destructor.
class RankSocket {
 public:
  explicit RankSocket(int number = -1) : number_(number) {}
  ~RankSocket();
  RankSocket(RankSocket&& other) noexcept : number_(other.release()) {}
  RankSocket& operator=(RankSocket&&) = delete;
  int number() const { return number_; }
  int release();

 private:
  int number_;
};

RankSocket listen_at(const RankMeeting& meeting);   // throws Failure, for example if the port is in use
RankSocket connect_to(const RankMeeting& meeting);  // tries again while rank 0 does not listen yet; throws Failure

}  // namespace ws
