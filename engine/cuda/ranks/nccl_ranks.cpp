#include "engine/cuda/ranks/nccl_ranks.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "engine/cuda/ranks/nccl.h"
#include "engine/cuda/runtime/check.h"
#include "profiling/base/failure.h"

namespace ws::cuda {
namespace {

// Number of blocks of an all-reduce that runs beside matrix products; NCCL reads the limit once. With more blocks the
// products lose as much as the overlap saves. On two H200, a step of 784-2048-2048-10 at batch 8,192 takes 698 µs with
// 20 blocks, 706 µs with 16, and 752 µs with NCCL's own choice.
constexpr const char* kBlocksBesideProducts = "20";

class Communicators final : public RankGroup {
 public:
  // `here`: ranks of this process.
  Communicators(int ranks, int here, bool beside_products) : ranks_(ranks), members_(static_cast<size_t>(here)) {
    // NCCL makes all connections at the start. If the first all-reduce made them, a rank would wait inside that call
    // for a failed rank.
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
    if (beside_products) setenv("NCCL_MAX_CTAS", kBlocksBesideProducts, 0);
  }
  void connect_all() {
    std::vector<int> devices(members_.size());
    std::iota(devices.begin(), devices.end(), 0);
    std::vector<Nccl::Comm> made(members_.size());
    nccl().check(nccl().comm_init_all(made.data(), ranks_, devices.data()), "ncclCommInitAll");
    for (size_t i = 0; i < made.size(); ++i) members_[i].comm = made[i];
  }
  // ncclCommInitRank waits for every rank, forever if one of them has ended. It runs on its own thread, so that this
  // process can end instead.
  void connect_one(const Nccl::Id& id, int rank, int device) {
    CUDA_CHECK(cudaSetDevice(device));
    const auto joining = std::make_shared<Joining>();
    std::thread([joining, id, rank, device, ranks = ranks_] {
      cudaSetDevice(device);
      Nccl::Comm comm = nullptr;
      const int result = nccl().comm_init_rank(&comm, ranks, id, rank);
      const std::lock_guard lock(joining->mutex);
      joining->result = result, joining->comm = comm;
    }).detach();
    const auto pause = std::chrono::milliseconds(5);
    for (;; std::this_thread::sleep_for(pause)) {
      if (const std::string why = abandoned(); !why.empty()) throw Failure(why);
      const std::lock_guard lock(joining->mutex);
      if (!joining->result) continue;
      nccl().check(*joining->result, "ncclCommInitRank");
      members_[0].comm = joining->comm;
      return;
    }
  }
  ~Communicators() override {
    for (size_t i = 0; i < members_.size(); ++i) leave(i);
  }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  void leave(size_t rank) {
    Member& member = members_[rank];
    const std::lock_guard lock(member.mutex);
    if (!member.comm) return;
    for (const auto& [share, operation] : member.operations) nccl().destroy_operation(operation, member.comm);
    nccl().comm_destroy(std::exchange(member.comm, nullptr));
  }

  void average(size_t rank, cudaStream_t stream, double share, std::span<const Gradient> gradients) {
    Member& member = members_[rank];
    const std::lock_guard lock(member.mutex);
    if (!member.comm) throw Failure(abandoned());
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
  struct Joining {
    std::mutex mutex;
    std::optional<int> result;  // set once NCCL has answered
    Nccl::Comm comm = nullptr;
  };
  struct Member {
    std::mutex mutex;
    Nccl::Comm comm = nullptr;
    std::map<float, int> operations;  // by share
  };

  std::string abandoned() {
    const std::lock_guard lock(why_mutex_);
    return abandoned_;
  }

  int operation_of(Member& member, float share) const {
    if (share * static_cast<float>(ranks_) == 1.0f) return Nccl::kAverage;
    const auto [at, fresh] = member.operations.try_emplace(share);
    if (fresh)
      nccl().check(nccl().create_scaled_sum(&at->second, &share, Nccl::kFloat32, Nccl::kScalarOnHost, member.comm),
                   "ncclRedOpCreatePreMulSum");
    return at->second;
  }

  int ranks_;
  std::vector<Member> members_;  // ranks of this process
  std::mutex why_mutex_;
  std::string abandoned_;
};

class Link : public RankLink {
 public:
  Link(std::shared_ptr<Communicators> all, size_t member, int device)
      : all_(std::move(all)), member_(member), device_(device) {}
  int device() const override { return device_; }
  std::string_view name() const override { return "NCCL"; }
  // How many blocks NCCL takes beside products was set when the ranks were connected.
  void average_beside(cudaStream_t stream, double share, std::span<const Gradient> gradients, Beside, cudaEvent_t) override {
    all_->average(member_, stream, share, gradients);
  }

 private:
  std::shared_ptr<Communicators> all_;
  size_t member_;
  int device_;
};

// ncclCommDestroy waits for the other processes of the host ("an intra-node collective call"). So each process leaves
// when its executor ends, which is the same moment everywhere.
class ProcessLink final : public Link {
 public:
  ProcessLink(std::shared_ptr<Communicators> one, int device) : Link(one, 0, device), one_(std::move(one)) {}
  ~ProcessLink() override { one_->leave(0); }

 private:
  std::shared_ptr<Communicators> one_;
};

}  // namespace

Ranks make_nccl_ranks(int ranks, bool beside_products) {
  const auto all = std::make_shared<Communicators>(ranks, ranks, beside_products);
  all->connect_all();
  Ranks made{all, {}};
  for (int rank = 0; rank < ranks; ++rank)
    made.links.push_back(std::make_unique<Link>(all, static_cast<size_t>(rank), rank));
  return made;
}

// The id holds the address at which this process listens (or NCCL_COMM_ID, if a user sets it). NCCL asks the program to
// send the id to all ranks, and everything after that is NCCL's: ncclCommInitRank connects them.
std::string make_nccl_id() {
  Nccl::Id id{};
  nccl().check(nccl().get_unique_id(&id), "ncclGetUniqueId");
  return {id.bytes, sizeof id.bytes};
}

ProcessRank make_nccl_rank(const std::string& id, int rank, int ranks, int device, bool beside_products) {
  nccl();
  const auto one = std::make_shared<Communicators>(ranks, 1, beside_products);
  Nccl::Id copy{};
  id.copy(copy.bytes, sizeof copy.bytes);
  return {one, [one, copy, rank, device]() -> std::unique_ptr<RankLink> {
            one->connect_one(copy, rank, device);
            return std::make_unique<ProcessLink>(one, device);
          }};
}

}  // namespace ws::cuda
