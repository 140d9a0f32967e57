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

// Number of blocks of an all-reduce that runs beside matrix products; NCCL reads the limit once. With more blocks the
// products lose as much as the overlap saves. On two H200, a step of 784-2048-2048-10 at batch 8,192 takes 698 µs with
// 20 blocks, 706 µs with 16, and 752 µs with NCCL's own choice.
constexpr const char* kBlocksBesideProducts = "20";

class Communicators final : public RankGroup {
 public:
  Communicators(int ranks, bool beside_products) : members_(static_cast<size_t>(ranks)) {
    // NCCL makes all connections here. If the first all-reduce made them, a rank would wait inside that call for a
    // failed rank.
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
    if (beside_products) setenv("NCCL_MAX_CTAS", kBlocksBesideProducts, 0);
    std::vector<int> devices(members_.size());
    std::iota(devices.begin(), devices.end(), 0);
    std::vector<Nccl::Comm> made(members_.size());
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

  // Ends the kernels that wait for the failed rank, so that no rank waits for its stream forever.
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

Ranks make_nccl_ranks(int ranks, bool beside_products) {
  const auto all = std::make_shared<Communicators>(ranks, beside_products);
  Ranks made{all, {}};
  for (int rank = 0; rank < ranks; ++rank) made.links.push_back(std::make_unique<Link>(all, rank));
  return made;
}

}  // namespace ws::cuda
