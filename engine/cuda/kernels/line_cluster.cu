// Fits a line through few points, with many steps in one launch. One cluster of blocks holds the points in registers,
// and the blocks exchange their sums through shared memory. A step costs one barrier and no access to the L2 cache.
#include <cooperative_groups.h>

#include "engine/cuda/kernels/line.cuh"

namespace ws::cuda {
namespace {

constexpr int kBlocks = 8, kClusterThreads = 512, kClusterWarps = kClusterThreads / 32, kAll = kBlocks * kClusterThreads;
constexpr int kMostPacks = 10;
static_assert(kClusterPoints <= int64_t{4} * kAll * kMostPacks);

// A thread's share of the points: packs of four, kAll apart, and perhaps one of the up to three remaining points.
template <int Packs>
struct ClusterShare {
  FourPoints packs[Packs];
  int count = 0;
  float x = 0, y = 0;
  bool one_more = false;

  __device__ explicit ClusterShare(const Points& points) {
    const int64_t mine = blockIdx.x * kClusterThreads + threadIdx.x, all = points.n / 4, left_over = 4 * all + mine;
    if (mine < all) count = static_cast<int>((all - 1 - mine) / kAll) + 1;
#pragma unroll
    for (int j = 0; j < Packs; ++j)
      if (j < count)
        packs[j] = {four_of(points.x, mine + j * kAll, points.aligned),
                    four_of(points.y, mine + j * kAll, points.aligned)};
    one_more = left_over < points.n;
    if (one_more) x = points.x[left_over], y = points.y[left_over];
  }

  static __device__ __forceinline__ float4 four_of(const float* from, int64_t pack, bool aligned) {
    if (aligned) return __ldg(reinterpret_cast<const float4*>(from) + pack);
    const float* at = from + 4 * pack;
    return make_float4(at[0], at[1], at[2], at[3]);
  }

  __device__ LineSums sums(float w, float b) const {
    LineSums s;
#pragma unroll
    for (int j = 0; j < Packs; ++j)
      if (j < count) add_four(s, packs[j], w, b);
    if (one_more) s.add(x, y, w, b);
    return s;
  }
};

// Shared memory of a block. It has two sets of slots: a block may be one step ahead of a block that still reads.
struct Trading {
  LineSums warps[kClusterWarps];
  LineSums blocks[2][kBlocks];
};

template <class Cluster>
__device__ __forceinline__ LineSums sum_over_cluster(const Cluster& cluster, LineSums s, Trading& trading, int set) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  s = sum_over<32>(s);
  if (lane == 0) trading.warps[warp] = s;
  __syncthreads();
  if (warp == 0) {
    s = sum_over<kClusterWarps>(trading.warps[lane % kClusterWarps]);
    if (lane < kBlocks) *cluster.map_shared_rank(&trading.blocks[set][blockIdx.x], lane) = s;
  }
  cluster.sync();
  return sum_over<kBlocks>(trading.blocks[set][lane % kBlocks]);
}

template <int Packs>
__global__ __launch_bounds__(kClusterThreads) void line_cluster_kernel(const __grid_constant__ LineArguments a) {
#if __CUDA_ARCH__ >= 900  // older GPUs have no clusters and never launch this kernel
  __shared__ Trading trading;
  const auto cluster = cooperative_groups::this_cluster();
  auto begun = cluster.barrier_arrive();  // a block may write another block's shared memory only after that block runs
  const LinearStep& l = a.step;
  if (!l.data_is_constant) wait_for_previous();
  const ClusterShare<Packs> share(points_of(a));
  if (l.data_is_constant) wait_for_previous();
  const auto sums = [&](float w, float b) { return share.sums(w, b); };
  cluster.barrier_wait(std::move(begun));
  run_steps(a, sums, [&](const LineSums& mine, int i) { return sum_over_cluster(cluster, mine, trading, i % 2); });
#endif
}

}  // namespace

void linear_steps_in_cluster(Queue queue, const LineArguments& a) {
  const int64_t packs = ceil_div(a.step.x.rows, 4 * kAll);
  const auto kernel = packs <= 1   ? line_cluster_kernel<1>
                      : packs <= 4 ? line_cluster_kernel<4>
                                   : line_cluster_kernel<kMostPacks>;
  launch_in_clusters(queue, kernel, kBlocks, kClusterThreads, 0, kBlocks, a);
}

}  // namespace ws::cuda
