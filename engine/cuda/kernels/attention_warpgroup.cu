// Causal self-attention in 16 bits on Hopper's warpgroup instructions, and its gradient for texts of up to 256 symbols.
// This file is compiled for sm_90a alone.
//
// Forward, a block has 128 queries of one head, 64 for each group of four warps, and goes through the keys. The weights
// stay in registers.
//
// In the gradient a block has one head of one sequence, and a group of four warps for each 64 queries. It goes through
// the keys from the last 64 to the first: each group computes its queries' weights and the gradient of their scores,
// the block shares them, and the first two groups sum them up for dv and dk while every group adds to its dq. All is in
// shared memory once, so each sum has one order and nothing is computed twice.
#include "engine/cuda/kernels/attention.cuh"
#include "engine/cuda/kernels/warpgroup_product.cuh"

namespace ws::cuda {
namespace {

// 64 rows of a head in shared memory, as the instructions expect them.
template <class T, int Width>
struct HeadLines {
  static constexpr int size = 64 * Width, parts = Width / 8;
  // Rows are 128 or 64 bytes; their 16-byte parts are permuted by the row's number modulo 8, or by half of it modulo 4.
  __device__ static __forceinline__ int at(int row, int col) {
    return row * Width + (col ^ (Width == 64 ? (row & 7) * 8 : (row >> 1 & 3) * 8));
  }
  __device__ static __forceinline__ uint64_t descriptor(const T* tile) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    if constexpr (Width == 64) return operand_descriptor(address);
    return uint64_t{(address & 0x3FFFFu) >> 4} | uint64_t{4096 >> 4} << 16 | uint64_t{512 >> 4} << 32 |
           uint64_t{2} << 62;
  }
  static constexpr int across = 16 * Width * 2 / 16;  // of a descriptor, from 16 lines to the next
};

template <class T, int Width, int Threads>
__device__ __forceinline__ void bring_lines(T* lines, const HeadRows<const T>& from, int tile, int time) {
  using Lines = HeadLines<T, Width>;
#pragma unroll
  for (int i = threadIdx.x; i < 64 * Lines::parts; i += Threads) {
    const int r = i / Lines::parts, c = i % Lines::parts * 8, row = tile * 64 + r;
    const bool inside = row < time;
    copy_async<16>(lines + Lines::at(r, c), inside ? from.row(row) + c : from.data, inside);
  }
}

// Writes a warp's 16 rows of a tile, through the same rows of `lines` in shared memory, which nothing else uses now.
// each_part(8 numbers of a row) sees what it writes; a lane has the same columns each time.
template <Math M, int Width, class T, class EachPart>
__device__ __forceinline__ void write_lines(const float (&sums)[Width / 8][4], float upper, float lower, T* lines,
                                            const HeadRows<T>& to, int tile, int time, EachPart each_part) {
  using Lines = HeadLines<T, Width>;
  const int lane = threadIdx.x % 32, row0 = static_cast<int>(threadIdx.x) % 128 / 32 * 16;
#pragma unroll
  for (int n = 0; n < Width / 8; ++n)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float scale = h == 0 ? upper : lower;
      *reinterpret_cast<uint32_t*>(lines + Lines::at(row0 + lane / 4 + 8 * h, n * 8 + lane % 4 * 2)) =
          pair_of<M>(sums[n][2 * h] * scale, sums[n][2 * h + 1] * scale);
    }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * Lines::parts; i += 32) {
    const int r = row0 + i / Lines::parts, c = i % Lines::parts * 8, row = tile * 64 + r;
    if (row >= time) continue;
    const uint4 part = *reinterpret_cast<const uint4*>(lines + Lines::at(r, c));
    *reinterpret_cast<uint4*>(to.row(row) + c) = part;
    each_part(reinterpret_cast<const T*>(&part));
  }
}

// The group of four warps that a thread is in; the compiler sees that a warp agrees.
__device__ __forceinline__ int warp_group() { return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0); }

template <class T>
__device__ __forceinline__ T* aligned(char* memory) {
  return reinterpret_cast<T*>(memory + (1024 - __cvta_generic_to_shared(memory) % 1024) % 1024);
}

// ---- forward ----
template <Math M, int Width>
struct HeadForward {
  using T = typename Number<M>::type;
  using Lines = HeadLines<T, Width>;
  static constexpr int groups = 2, threads = 128 * groups, blocks = 2, stages = 3, fragments = Width / 8;

  const AttentionArguments& a;
  int first;  // tile of queries
  HeadAt head;
  T *q, *kv;

  __device__ HeadForward(const AttentionArguments& args, char* memory)
      : a(args),
        first(((a.tiles + 1) / groups - 1 - static_cast<int>(blockIdx.x) / a.sets) * groups),  // the longest come first
        head(args, static_cast<int>(blockIdx.x) % args.sets),
        q(aligned<T>(memory)),
        kv(q + groups * Lines::size) {}
  static size_t bytes() { return 1024 + (groups + 2 * stages) * Lines::size * sizeof(T); }

  __device__ __forceinline__ T* keys(int tile) const { return kv + tile % stages * 2 * Lines::size; }
  __device__ __forceinline__ void bring_tile(int tile, int count) const {
    const T* qkv = static_cast<const T*>(a.qkv);
    if (tile < count) {
      bring_lines<T, Width, threads>(keys(tile), head.in_qkv(qkv, 1), tile, a.time);
      bring_lines<T, Width, threads>(keys(tile) + Lines::size, head.in_qkv(qkv, 2), tile, a.time);
    }
    commit_copies();
  }

  __device__ __forceinline__ void read_keys(OnlineSoftmax& softmax, float (&sums)[fragments][4], int group,
                                            int tile) const {
    float s[8][4] = {};
    const uint64_t left = Lines::descriptor(q + group * Lines::size), right = Lines::descriptor(keys(tile)),
                   values = Lines::descriptor(keys(tile) + Lines::size);
    begin_warpgroup_products();
#pragma unroll
    for (int i = 0; i < Width / 16; ++i) warpgroup_multiply_add<M, false, false>(s, left + 2 * i, right + 2 * i);
    commit_warpgroup_products();
    wait_for_warpgroup_products<0>();
    if (tile == first + group) hide_later(s, static_cast<int>(threadIdx.x) % 128 / 32 * 16);
    const float2 shrink = softmax.weigh(s, a.scale * kLog2E);
#pragma unroll
    for (int n = 0; n < fragments; ++n)
      sums[n][0] *= shrink.x, sums[n][1] *= shrink.x, sums[n][2] *= shrink.y, sums[n][3] *= shrink.y;
    uint32_t weights[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) HeadTile<M, 64>::a_of_sums(weights[i], s, 16 * i);
    begin_warpgroup_products();
#pragma unroll
    for (int i = 0; i < 4; ++i) warpgroup_multiply_add<M, true>(sums, weights[i], values + i * Lines::across);
    commit_warpgroup_products();
    wait_for_warpgroup_products<0>();
  }

  __device__ __forceinline__ void run() const {
    const int group = warp_group(), count = min(a.tiles, first + groups);
    const auto queries = head.in_qkv(static_cast<const T*>(a.qkv), 0);
#pragma unroll
    for (int i = 0; i < groups; ++i) bring_lines<T, Width, threads>(q + i * Lines::size, queries, first + i, a.time);
#pragma unroll
    for (int tile = 0; tile < stages - 1; ++tile) bring_tile(tile, count);
    OnlineSoftmax softmax;
    float sums[fragments][4] = {};
#pragma unroll 1
    for (int tile = 0; tile < count; ++tile) {
      wait_for_copies<stages - 2>();
      show_copies();
      __syncthreads();
      bring_tile(tile + stages - 1, count);
      if (tile <= first + group) read_keys(softmax, sums, group, tile);
    }
    if (first + group >= a.tiles) return;
    const float total[2] = {quad_sum(softmax.sum[0]), quad_sum(softmax.sum[1])};
    const int lane = threadIdx.x % 32, row0 = (first + group) * 64 + static_cast<int>(threadIdx.x) % 128 / 32 * 16;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = row0 + lane / 4 + 8 * h;
      if (lane % 4 == 0 && row < a.time) head.lse()[row] = softmax.best[h] * a.scale + logf(total[h]);
    }
    write_lines<M, Width>(sums, 1.f / total[0], 1.f / total[1], q + group * Lines::size,
                          head.in_out(static_cast<T*>(a.out)), first + group, a.time, [](const T*) {});
  }
};

// ---- gradient ----
template <Math M, int Width, int Groups>
struct HeadGradient {
  using T = typename Number<M>::type;
  using Lines = HeadLines<T, Width>;
  using Scores = HeadLines<T, 64>;
  static constexpr int threads = 128 * Groups, blocks = 1, fragments = Width / 8;
  static constexpr int keys_at_once = Groups * Width > 128 ? 32 : 64;  // what the registers allow
  static constexpr int warps = threads / 32, column_rows = warps + 8;

  const AttentionArguments& a;
  HeadAt head;
  T *q, *k, *v, *dout;  // tiles of 64 rows
  T *p, *ds;            // of each group's 64 queries and the 64 keys of the moment
  QueryFacts* facts;
  float* columns;  // sums: a row of dq for each warp, then of dv for each warp of the first group, of dk for the second

  __device__ HeadGradient(const AttentionArguments& args, char* memory)
      : a(args), head(args, static_cast<int>(blockIdx.x)) {
    q = aligned<T>(memory);
    k = q + Groups * Lines::size, v = k + Groups * Lines::size, dout = v + Groups * Lines::size;
    p = dout + Groups * Lines::size, ds = p + Groups * Scores::size;
    facts = reinterpret_cast<QueryFacts*>(ds + Groups * Scores::size);
    columns = reinterpret_cast<float*>(facts + 64 * Groups);
  }
  static size_t bytes() {
    return 1024 + Groups * (4 * Lines::size + 2 * Scores::size) * sizeof(T) + 64 * Groups * sizeof(QueryFacts) +
           column_rows * Width * sizeof(float);
  }

  __device__ __forceinline__ void bring(T* tiles, const HeadRows<const T>& from, int tile) const {
    bring_lines<T, Width, threads>(tiles + tile * Lines::size, from, tile, a.time);
  }
  __device__ __forceinline__ void bring_tile(int tile) const {
    const T *qkv = static_cast<const T*>(a.qkv), *gradient = static_cast<const T*>(a.dout);
    bring(q, head.in_qkv(qkv, 0), tile), bring(k, head.in_qkv(qkv, 1), tile), bring(v, head.in_qkv(qkv, 2), tile);
    bring(dout, head.in_out(gradient), tile);
    commit_copies();
  }
  // Waits for a tile. The tiles below it may be on their way.
  __device__ __forceinline__ void wait_for_tile(int tile) const {
    if (tile == 0) wait_for_copies<0>();
    if (tile == 1) wait_for_copies<1>();
    if (tile == 2) wait_for_copies<2>();
    if (tile == 3) wait_for_copies<3>();
    show_copies();
    __syncthreads();
  }

  // Two threads share a query.
  __device__ __forceinline__ void learn_queries() const {
    const int row = static_cast<int>(threadIdx.x) / 2, first = static_cast<int>(threadIdx.x) % 2 * (Width / 2);
    const bool inside = row < a.time;
    const T *x = head.in_out(static_cast<const T*>(a.out_read)).row(inside ? row : 0) + first,
            *y = head.in_out(static_cast<const T*>(a.dout)).row(inside ? row : 0) + first;
    float dot = 0;
#pragma unroll
    for (int c = 0; c < Width / 2; c += 8) {
      alignas(16) T left[8], right[8];
      *reinterpret_cast<uint4*>(left) = *reinterpret_cast<const uint4*>(x + c);
      *reinterpret_cast<uint4*>(right) = *reinterpret_cast<const uint4*>(y + c);
#pragma unroll
      for (int e = 0; e < 8; ++e) dot = fmaf(static_cast<float>(left[e]), static_cast<float>(right[e]), dot);
    }
    dot += __shfl_xor_sync(0xffffffffu, dot, 1);
    if (threadIdx.x % 2 == 0) facts[row] = inside ? QueryFacts{head.lse()[row] * kLog2E, dot} : no_query();
  }

  // Weights and the gradient of the scores of the group's queries and the keys of a tile, some keys at a time.
  __device__ __forceinline__ void weigh(int group, int tile) const {
    const int lane = threadIdx.x % 32, row = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;
    const QueryFacts of[2] = {facts[group * 64 + row], facts[group * 64 + row + 8]};
#pragma unroll 1
    for (int first = 0; first < 64; first += keys_at_once) {
      float s[keys_at_once / 8][4] = {}, d[keys_at_once / 8][4] = {};
      score(s, q + group * Lines::size, k + tile * Lines::size + first * Width);
      score(d, dout + group * Lines::size, v + tile * Lines::size + first * Width);
      commit_warpgroup_products();
      wait_for_warpgroup_products<0>();
#pragma unroll
      for (int n = 0; n < keys_at_once / 8; ++n)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          share(s[n] + 2 * h, d[n] + 2 * h, of[h], group, row + 8 * h, first + n * 8 + lane % 4 * 2, group == tile);
    }
  }
  // s += x·yᵀ
  template <int Fragments>
  __device__ static __forceinline__ void score(float (&s)[Fragments][4], const T* x, const T* y) {
    const uint64_t left = Lines::descriptor(x), right = Lines::descriptor(y);
    begin_warpgroup_products();
#pragma unroll
    for (int i = 0; i < Width / 16; ++i) warpgroup_multiply_add<M, false, false>(s, left + 2 * i, right + 2 * i);
  }
  // Turns the scores of a query with two keys, and the products of its gradient with their values.
  __device__ __forceinline__ void share(const float* s, const float* d, const QueryFacts& of, int group, int y, int x,
                                        bool cut) const {
    float w[2], g[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const bool hidden = cut && x + e > y;
      w[e] = hidden ? 0.f : power_of_2(fmaf(s[e], a.scale * kLog2E, -of.lse));
      g[e] = w[e] * (d[e] - of.dot);
    }
    const int at = group * Scores::size + Scores::at(y, x);
    *reinterpret_cast<uint32_t*>(p + at) = pair_of<M>(w[0], w[1]);
    *reinterpret_cast<uint32_t*>(ds + at) = pair_of<M>(g[0], g[1]);
  }

  // dv or dk of a tile: the sum over the queries from it on.
  __device__ __forceinline__ void sum_queries(float (&sums)[fragments][4], bool of_keys, int tile) const {
    const T *left = of_keys ? ds : p, *right = of_keys ? q : dout;
    begin_warpgroup_products();
#pragma unroll 1
    for (int i = tile; i < a.tiles; ++i) {
      const uint64_t x = Scores::descriptor(left + i * Scores::size), y = Lines::descriptor(right + i * Lines::size);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        warpgroup_multiply_add<M, true, true>(sums, x + j * Scores::across, y + j * Lines::across);
    }
    commit_warpgroup_products();
    wait_for_warpgroup_products<0>();
  }
  __device__ __forceinline__ void sum_keys(float (&sums)[fragments][4], int group, int tile) const {
    const uint64_t x = Scores::descriptor(ds + group * Scores::size), y = Lines::descriptor(k + tile * Lines::size);
    begin_warpgroup_products();
#pragma unroll
    for (int j = 0; j < 4; ++j) warpgroup_multiply_add<M, false, true>(sums, x + 2 * j, y + j * Lines::across);
    commit_warpgroup_products();
    wait_for_warpgroup_products<0>();
  }

  // Writes a warp's rows of a tile and adds them to a row of column sums. part: 0 dq, 1 dk, 2 dv.
  __device__ __forceinline__ void write(const float (&sums)[fragments][4], int part, T* lines, int tile, int row) const {
    const float scale = part < 2 ? a.scale : 1.f;
    float column[8] = {};
    const auto add = [&](const T* written) {
#pragma unroll
      for (int e = 0; e < 8; ++e) column[e] += static_cast<float>(written[e]);
    };
    write_lines<M, Width>(sums, scale, scale, lines, head.in_qkv(static_cast<T*>(a.dqkv), part), tile, a.time, add);
    if (!a.column_sums) return;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
#pragma unroll
      for (int d = Lines::parts; d < 32; d *= 2) column[e] += __shfl_xor_sync(0xffffffffu, column[e], d);
      if (lane < Lines::parts) columns[row * Width + lane * 8 + e] += column[e];
    }
  }
  __device__ __forceinline__ void write_tile(const float (&sums)[fragments][4], bool of_keys, int tile) const {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    write(sums, of_keys ? 1 : 2, (of_keys ? k : v) + tile * Lines::size, tile, warps + warp);
  }
  // The sums of dq, dk and dv over the rows of the sequence.
  __device__ __forceinline__ void write_columns() const {
    const int part = static_cast<int>(threadIdx.x) / Width, col = static_cast<int>(threadIdx.x) % Width;
    if (part > 2) return;
    const int first = part == 0 ? 0 : part == 1 ? warps + 4 : warps, count = part == 0 ? warps : 4;
    float sum = 0;
    for (int i = first; i < first + count; ++i) sum += columns[i * Width + col];
    a.column_sums[(static_cast<int64_t>(head.sequence) * 3 + part) * head.width() + head.head * Width + col] = sum;
  }

  __device__ __forceinline__ void run() const {
    const int group = warp_group();
    for (int tile = a.tiles; tile-- > 0;) bring_tile(tile);
    learn_queries();
    for (int i = static_cast<int>(threadIdx.x); i < column_rows * Width; i += threads) columns[i] = 0.f;
    float dq[fragments][4] = {}, sums[fragments][4];
#pragma unroll 1
    for (int tile = a.tiles; tile-- > 0;) {
      wait_for_tile(tile);  // and for the products with the tile before
      if (group < 2 && tile + 1 < a.tiles) write_tile(sums, group == 1, tile + 1);
      const bool reads = group >= tile && group < a.tiles;
      if (reads) weigh(group, tile);
      show_copies();
      __syncthreads();
#pragma unroll
      for (int n = 0; n < fragments; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[n][e] = 0.f;
      if (group < 2) sum_queries(sums, group == 1, tile);
      if (reads) sum_keys(dq, group, tile);
    }
    __syncthreads();
    if (group < 2) write_tile(sums, group == 1, 0);
    if (group < a.tiles) write(dq, 0, q + group * Lines::size, group, static_cast<int>(threadIdx.x) / 32);
    if (!a.column_sums) return;
    __syncthreads();
    write_columns();
  }
};

// ---- launch ----
template <class Work>
__global__ __launch_bounds__(Work::threads, Work::blocks) void attention_by_groups_kernel(
    const __grid_constant__ AttentionArguments a) {
  extern __shared__ __align__(16) char memory[];
  wait_for_previous();
  Work(a, memory).run();
}

template <class Work>
void launch_groups(Queue queue, const AttentionArguments& a, int64_t blocks) {
  const auto kernel = attention_by_groups_kernel<Work>;
  allow_shared(kernel, Work::bytes());
  launch(queue, kernel, blocks, Work::threads, Work::bytes(), a);
}

template <Math M, int Width>
void launch_width(Queue queue, const AttentionArguments& a) {
  if (!a.dqkv) return launch_groups<HeadForward<M, Width>>(queue, a, ceil_div(a.tiles, 2) * a.sets);
  a.tiles > 2 ? launch_groups<HeadGradient<M, Width, 4>>(queue, a, a.sets)
              : launch_groups<HeadGradient<M, Width, 2>>(queue, a, a.sets);
}

template <Math M>
void launch_math(Queue queue, const AttentionArguments& a) {
  a.head_width == 64 ? launch_width<M, 64>(queue, a) : launch_width<M, 32>(queue, a);
}

}  // namespace

void attention_by_warpgroups(Queue queue, Precision precision, const AttentionCall& call) {
  const AttentionArguments a = attention_arguments(call);
  precision == Precision::Bf16 ? launch_math<Math::Bf16>(queue, a) : launch_math<Math::Fp16>(queue, a);
}

}  // namespace ws::cuda
