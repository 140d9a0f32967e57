// The first layer of a network whose inputs are split over the 16 blocks of a cluster: a block's slice of its weights
// stays in registers, in the layout in which wgmma leaves its sums.
#pragma once

namespace ws::cuda::persistent {

constexpr int kBlocks = 16;
constexpr int kTiles = choice::tiles;     // tiles of 8 inputs
constexpr int kDepth = kHalves ? 16 : 8;  // inputs per wgmma
constexpr int kForwardSteps = choice::row_values / kDepth;

// The register operands of some products.
template <int Steps>
struct Operands {
  uint v[Steps][4];
};
// Forces the operands into their registers before the first product; otherwise the compiler separates the products.
template <int First, int End, int Steps>
WS_DEVICE void settle(Operands<Steps>& o) {
#pragma unroll
  for (int s = First; s < End; ++s)
#pragma unroll
    for (int k = 0; k < 4; ++k) asm volatile("" : "+r"(o.v[s][k]));
}

struct InputWeights {
  const Arguments& a;
  int rank, t, hidden;  // hidden: the hidden unit of this lane's first row of sums
  float w[kTiles][4], m[kMoves ? kTiles : 1][4], v[kSquares ? kTiles : 1][4];

  WS_DEVICE InputWeights(const Arguments& args, uint r, int warp, int lane)
      : a(args), rank(static_cast<int>(r)), t(lane & 3), hidden(16 * warp + (lane >> 2)) {}

  WS_DEVICE int input_of(int tile, int k) const {
    const int within = kHalves ? 2 * t + (k & 1) : t + 4 * (k & 1);
    return rank * choice::inputs_each + 8 * tile + within;
  }
  // True if tile and k are an input of this block. `bias`: set if it is the input that is always 1.
  WS_DEVICE bool is_input(int tile, int k, bool& bias) const {
    const int within = 8 * tile + (kHalves ? 2 * t + (k & 1) : t + 4 * (k & 1));
    const int input = input_of(tile, k);
    bias = choice::bias && input == choice::inputs;
    return within < choice::inputs_each && (input < choice::inputs || bias) && hidden + 8 * (k >> 1) < choice::hidden;
  }
  WS_DEVICE float* element(float* weights, float* biases, int tile, int k, bool bias) const {
    const int unit = hidden + 8 * (k >> 1);
    return bias ? biases + unit : weights + static_cast<size_t>(input_of(tile, k)) * choice::hidden + unit;
  }
  template <class F>
  WS_DEVICE void each(F f) {
    const LayerState& l = a.layers[0];
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        bool bias;
        const bool is = is_input(j, k, bias);
        f(is, w[j][k], element(l.w, l.b, j, k, bias));
        if constexpr (kMoves) f(is, m[j][k], element(l.w_m, l.b_m, j, k, bias));
        if constexpr (kSquares) f(is, v[j][k], element(l.w_v, l.b_v, j, k, bias));
      }
  }
  WS_DEVICE void load() {
    each([](bool is, float& value, const float* from) { value = is ? *from : 0.f; });
  }
  WS_DEVICE void store() {
    each([](bool is, float& value, float* to) {
      if (is) *to = value;
    });
  }

  // Converts the weights to the register operand of the forward product.
  template <int Part, int Steps>
  WS_DEVICE void operand(Operands<Steps>& out) const {
    const auto part = [](float x) {
      if constexpr (Part == 1) return bits(below_tf32(x));
      return choice::precision == kTf32 ? bits(to_tf32(x)) : bits(x);
    };
#pragma unroll
    for (int s = 0; s < kForwardSteps; ++s) {
      const auto value = [&](int tile, int k) { return tile < kTiles ? w[tile < kTiles ? tile : 0][k] : 0.f; };
      if constexpr (kHalves) {
        const int j = 2 * s;
        out.v[s][0] = half_pair(value(j, 0), value(j, 1)), out.v[s][1] = half_pair(value(j, 2), value(j, 3));
        out.v[s][2] = half_pair(value(j + 1, 0), value(j + 1, 1));
        out.v[s][3] = half_pair(value(j + 1, 2), value(j + 1, 3));
      } else {
        out.v[s][0] = part(value(s, 0)), out.v[s][1] = part(value(s, 2));
        out.v[s][2] = part(value(s, 1)), out.v[s][3] = part(value(s, 3));
      }
    }
  }

  WS_DEVICE void move_weights(const float (&sums)[4 * kTiles], const StepFactors& f) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        bool bias = false;
        if constexpr (choice::decays) is_input(j, k, bias);
        float none = 0.f;
        persistent::move(a, f, !bias, w[j][k], kMoves ? m[kMoves ? j : 0][k] : none,
                         kSquares ? v[kSquares ? j : 0][k] : none, sums[4 * j + k]);
      }
  }
};

// Converts rows to the layout that the kernel reads: cut into the blocks' slices, padded, in the type of the products.
// If the network has biases, an input that is always 1 follows the last one.
extern "C" __global__ void ws_prepare(const float* from, void* to, long long rows) {
  const long long all = rows * kBlocks * choice::row_values;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < all;
       i += static_cast<long long>(gridDim.x) * blockDim.x) {
    const int within = static_cast<int>(i % choice::row_values);
    const int slice = static_cast<int>(i / choice::row_values % kBlocks);
    const long long row = i / (choice::row_values * kBlocks);
    const int input = slice * choice::inputs_each + within;
    float value = 0.f;
    if (within < choice::inputs_each && input < choice::inputs) value = from[row * choice::inputs + input];
    if (choice::bias && within < choice::inputs_each && input == choice::inputs) value = 1.f;
    if constexpr (kHalves)
      static_cast<unsigned short*>(to)[i] = static_cast<unsigned short>(half_pair(value, 0.f));
    else
      static_cast<float*>(to)[i] = choice::precision == kTf32 ? to_tf32(value) : value;
  }
}

}  // namespace ws::cuda::persistent
