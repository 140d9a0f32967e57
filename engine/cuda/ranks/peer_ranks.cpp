#include "engine/cuda/ranks/peer_ranks.h"

#include <mutex>
#include <utility>

#include "engine/cuda/ranks/peer_average.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handles.h"

namespace ws::cuda {
namespace {

// Most blocks of one average. Beside other work it takes few multiprocessors. On two H100 the overlapped step of
// 784-2048-2048 at batch 8,192 takes 759 µs with 2 blocks beside products, 702 with 3, 709 with 4, 703 with 8; and 692 µs
// with 8 blocks beside updates, 690 with 16, 691 with 32.
constexpr int kPeerBlocks = 64, kPeerBlocksBesideUpdates = 16, kPeerBlocksBesideProducts = 3, kPeerBlocksBesideAverage = 8;

bool all_have(int ranks, cudaDeviceAttr attribute, int least) {
  for (int device = 0; device < ranks; ++device) {
    int has = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&has, attribute, device));
    if (has < least) return false;
  }
  return true;
}

// Two averages wait for each other's partners. So both must find space at the same time, with a multiprocessor for each
// block.
bool all_take_two(int ranks) { return all_have(ranks, cudaDevAttrMultiProcessorCount, kPeerBlocks + kPeerBlocksBesideAverage); }

bool all_have_shared_memory(int ranks) { return all_have(ranks, cudaDevAttrMaxSharedMemoryPerBlockOptin, peer_average_shared_bytes()); }

bool all_pairs(int ranks, cudaDeviceP2PAttr attribute) {
  for (int a = 0; a < ranks; ++a)
    for (int b = 0; b < ranks; ++b) {
      int has = 0;
      if (a != b) CUDA_CHECK(cudaDeviceGetP2PAttribute(&has, attribute, a, b));
      if (a != b && !has) return false;
    }
  return true;
}

void map_memory_of(int device, int ranks) {
  CUDA_CHECK(cudaSetDevice(device));
  for (int other = 0; other < ranks; ++other) {
    if (other == device) continue;
    const cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled)
      cudaGetLastError();
    else
      CUDA_CHECK(code);
  }
}

class Peers final : public RankGroup {
 public:
  explicit Peers(int ranks) : stop_(PinnedBlock<int>::pinned(1)), takes_two_(all_take_two(ranks)) {
    stop_[0] = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      map_memory_of(rank, ranks);
      prepare_peer_average();
      mailboxes_.push_back(DeviceBlock<PeerMailbox>::filled(2));
    }
    CUDA_CHECK(cudaSetDevice(0));
  }

  bool takes_two() const { return takes_two_; }

  void average(int rank, cudaStream_t stream, double share, std::span<const Gradient> gradients, Beside beside,
               cudaEvent_t begun) {
    if (const std::string why = abandoned(); !why.empty()) throw Failure(why);
    Peer peer{rank, static_cast<int>(mailboxes_.size()), {}, stop_.data()};
    for (size_t i = 0; i < mailboxes_.size(); ++i) peer.mailboxes[i] = mailboxes_[i].data() + (beside == Beside::Average);
    average_with_peers(peer, stream, static_cast<float>(share), gradients, most_blocks(beside), begun);
  }

  // Also ends the kernels that wait for the failed rank.
  void abandon(const std::string& why) noexcept override {
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = why;
    *static_cast<volatile int*>(stop_.data()) = 1;
  }

 private:
  static int most_blocks(Beside beside) {
    if (beside == Beside::Nothing) return kPeerBlocks;
    if (beside == Beside::Updates) return kPeerBlocksBesideUpdates;
    return beside == Beside::Products ? kPeerBlocksBesideProducts : kPeerBlocksBesideAverage;
  }
  std::string abandoned() {
    const std::lock_guard lock(mutex_);
    return why_;
  }

  PinnedBlock<int> stop_;
  std::vector<DeviceBlock<PeerMailbox>> mailboxes_;  // by rank; the second one is for averages beside an average
  bool takes_two_;
  std::mutex mutex_;
  std::string why_;
};

class PeerLink final : public RankLink {
 public:
  PeerLink(std::shared_ptr<Peers> all, int rank) : all_(std::move(all)), rank_(rank) {}
  int device() const override { return rank_; }
  std::string_view name() const override { return "peer memory"; }
  bool takes_two() const override { return all_->takes_two(); }
  void average_beside(cudaStream_t stream, double share, std::span<const Gradient> gradients, Beside beside,
                      cudaEvent_t begun) override {
    all_->average(rank_, stream, share, gradients, beside, begun);
  }

 private:
  std::shared_ptr<Peers> all_;
  int rank_;
};

}  // namespace

bool peers_have_nvlink(int ranks) {
  // Only NVLink has atomics between two GPUs.
  return ranks <= kMostPeers && all_pairs(ranks, cudaDevP2PAttrNativeAtomicSupported) && all_have_shared_memory(ranks);
}

Ranks make_peer_ranks(int ranks) {
  if (ranks > kMostPeers)
    throw Failure("peer: at most " + std::to_string(kMostPeers) + " GPUs map each other's memory; choose nccl.");
  if (!all_pairs(ranks, cudaDevP2PAttrAccessSupported))
    throw Failure("peer: these GPUs cannot map each other's memory; choose nccl.");
  if (!all_have_shared_memory(ranks))
    throw Failure("peer: these GPUs have too little shared memory; choose nccl.");
  const auto all = std::make_shared<Peers>(ranks);
  Ranks made{all, {}};
  for (int rank = 0; rank < ranks; ++rank) made.links.push_back(std::make_unique<PeerLink>(all, rank));
  return made;
}

}  // namespace ws::cuda
