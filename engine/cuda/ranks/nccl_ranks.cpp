#include "engine/cuda/ranks/nccl_ranks.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "engine/cuda/ranks/nccl.h"
#include "profiling/base/failure.h"

namespace ws::cuda {
namespace {

class Communicators final : public RankGroup {
 public:
  explicit Communicators(int ranks) : members_(static_cast<size_t>(ranks)) {
    std::vector<int> devices(members_.size());
    std::iota(devices.begin(), devices.end(), 0);
    std::vector<Nccl::Comm> made(members_.size());
    // All connections are made here, together. Made by the first all-reduce, they would keep a rank waiting in the call
    // for one that has failed.
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
    nccl().check(nccl().comm_init_all(made.data(), ranks, devices.data()), "ncclCommInitAll");
    for (size_t i = 0; i < made.size(); ++i) members_[i].comm = made[i];
  }
  ~Communicators() override {
    for (Member& member : members_) {
      if (!member.comm) continue;
      for (const auto& [share, operation] : member.operations) nccl().destroy_operation(operation, member.comm);
      nccl().comm_destroy(member.comm);
    }
  }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  void average(size_t rank, cudaStream_t stream, double share, std::span<const Gradient> gradients) {
    Member& member = members_[rank];
    const std::lock_guard lock(member.mutex);
    if (!member.comm) throw Failure(abandoned_);
    const int operation = operation_of(member, static_cast<float>(share));
    nccl().check(nccl().group_start(), "ncclGroupStart");
    for (const Gradient& g : gradients)
      nccl().check(nccl().all_reduce(g.data, g.data, g.count, Nccl::kFloat32, operation, member.comm, stream),
                   "ncclAllReduce");
    nccl().check(nccl().group_end(), "ncclGroupEnd");
  }

  // Kernels that wait for the failed rank end, so that nobody waits for their streams for ever.
  void abandon(const std::string& why) noexcept override {
    {
      const std::lock_guard lock(why_mutex_);
      if (!abandoned_.empty()) return;
      abandoned_ = why;
    }
    for (Member& member : members_) {
      const std::lock_guard lock(member.mutex);
      if (member.comm) nccl().comm_abort(std::exchange(member.comm, nullptr));
    }
  }

 private:
  struct Member {
    std::mutex mutex;
    Nccl::Comm comm = nullptr;
    std::map<float, int> operations;  // by share
  };

  int operation_of(Member& member, float share) const {
    if (share * static_cast<float>(members_.size()) == 1.0f) return Nccl::kAverage;
    const auto [at, fresh] = member.operations.try_emplace(share);
    if (fresh)
      nccl().check(nccl().create_scaled_sum(&at->second, &share, Nccl::kFloat32, Nccl::kScalarOnHost, member.comm),
                   "ncclRedOpCreatePreMulSum");
    return at->second;
  }

  std::vector<Member> members_;
  std::mutex why_mutex_;
  std::string abandoned_;
};

class Link final : public RankLink {
 public:
  Link(std::shared_ptr<Communicators> all, int rank) : all_(std::move(all)), rank_(rank) {}
  int device() const override { return rank_; }
  void average(cudaStream_t stream, double share, std::span<const Gradient> gradients) override {
    all_->average(static_cast<size_t>(rank_), stream, share, gradients);
  }

 private:
  std::shared_ptr<Communicators> all_;
  int rank_;
};

}  // namespace

Ranks make_nccl_ranks(int ranks) {
  const auto all = std::make_shared<Communicators>(ranks);
  Ranks made{all, {}};
  for (int rank = 0; rank < ranks; ++rank) made.links.push_back(std::make_unique<Link>(all, rank));
  return made;
}

}  // namespace ws::cuda
