// The ranks of one training when each is a process of its own, on one or several hosts. Rank 0 steers the training. All
// other ranks are connected to rank 0.
#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/plan/run_spec.h"
#include "engine/ranks/rank_channel.h"
#include "engine/ranks/rank_meeting.h"

namespace ws {

// A number that differs for different data. Ranks compare it.
uint32_t fingerprint(const data::Dataset& data);

class RankProcesses {
 public:
  // Returns when every rank is here. `choices`: spec_text() of what this process was asked to train, or any text when
  // it resumes. `spec`: what rank 0 trains; the other ranks get it. Throws Failure if a rank does not come, or has
  // other choices or another version.
  RankProcesses(const LaunchedRank& self, const std::string& choices, const RunSpec& spec);

  const LaunchedRank& self() const { return self_; }
  int rank() const { return self_.rank; }
  int count() const { return self_.ranks; }
  const RunSpec& spec() const { return spec_; }
  int local_rank() const { return self_.local_rank; }
  int on_this_host() const { return std::max(1, self_.local_ranks); }
  // On rank 0: the connection to another rank. On another rank: `rank` is 0.
  RankChannel& channel(int rank) { return *channels_[static_cast<size_t>(rank)]; }

  void abandon(const std::string& why) noexcept;  // every rank ends with this sentence
  void end(std::string_view outcome);                  // rank 0: the training is over; the workers get the outcome
  void wait_for_others();                              // rank 0: until the other processes have finished their files
  uint32_t fingerprint_of(const data::Dataset& data);  // computed once

 private:
  void gather(const std::string& choices);
  void welcome(RankSocket socket, const std::string& choices);
  void join(const std::string& choices);
  std::string missing() const;

  LaunchedRank self_;
  RunSpec spec_;
  RankMeeting meeting_;
  std::vector<std::unique_ptr<RankChannel>> channels_;  // by rank; null for this rank
  std::mutex mutex_;
  std::optional<uint32_t> fingerprint_;
};

}  // namespace ws
