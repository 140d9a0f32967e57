// Random numbers by index: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC'11), with the same bits on CPU and GPU.
//
// A number is a function of (seed, stream, index), so any thread can make any element and order does not matter. The
// maths below is spelled out in single IEEE operations: no library logarithm, no fused multiply-add, so both sides
// agree to the last bit.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define WARPSIGHT_HD __host__ __device__ __forceinline__
#else
#include <cmath>
#define WARPSIGHT_HD inline
#endif

namespace ws::data {

struct PhiloxWords {
  uint32_t w[4];
};

struct NormalPair {
  float first, second;
};

// Each operation rounds once. The compiler must not fuse them on the GPU.
namespace exact {
#if defined(__CUDA_ARCH__)
WARPSIGHT_HD float add(float a, float b) { return __fadd_rn(a, b); }
WARPSIGHT_HD float mul(float a, float b) { return __fmul_rn(a, b); }
WARPSIGHT_HD float div(float a, float b) { return __fdiv_rn(a, b); }
WARPSIGHT_HD float sqrt(float a) { return __fsqrt_rn(a); }
#else
WARPSIGHT_HD float add(float a, float b) { return a + b; }
WARPSIGHT_HD float mul(float a, float b) { return a * b; }
WARPSIGHT_HD float div(float a, float b) { return a / b; }
WARPSIGHT_HD float sqrt(float a) { return ::sqrtf(a); }
#endif
WARPSIGHT_HD float mul_add(float a, float b, float c) { return add(mul(a, b), c); }

WARPSIGHT_HD int32_t bits(float a) {
  int32_t out;
  memcpy(&out, &a, sizeof out);
  return out;
}
WARPSIGHT_HD float from_bits(int32_t a) {
  float out;
  memcpy(&out, &a, sizeof out);
  return out;
}

// Natural logarithm of a normal positive number: a = m * 2^e with m near 1, then log m = 2 atanh((m-1)/(m+1)).
WARPSIGHT_HD float log(float a) {
  const int32_t sqrt_half = 0x3f3504f3;
  const int32_t exponent = (bits(a) - sqrt_half) >> 23;
  const float m = from_bits(bits(a) - exponent * (1 << 23));
  const float s = div(add(m, -1.0f), add(m, 1.0f));
  const float z = mul(s, s);
  float series = mul_add(z, 1.0f / 9.0f, 1.0f / 7.0f);
  series = mul_add(z, series, 1.0f / 5.0f);
  series = mul_add(z, series, 1.0f / 3.0f);
  series = mul_add(z, series, 1.0f);
  return mul_add(static_cast<float>(exponent), 0.69314718f, mul(mul(2.0f, s), series));
}

// Cosine and sine of `turn` full circles, 0 <= turn < 1: Taylor series within an eighth of a circle of each quadrant.
WARPSIGHT_HD NormalPair cos_sin_turn(float turn) {
  const float quarters = mul(4.0f, turn);
  const int32_t quadrant = static_cast<int32_t>(add(quarters, 0.5f));
  const float angle = mul(add(quarters, -static_cast<float>(quadrant)), 1.57079633f);
  const float z = mul(angle, angle);
  float s = mul_add(z, 1.0f / 362880.0f, -1.0f / 5040.0f);
  s = mul_add(z, s, 1.0f / 120.0f);
  s = mul_add(z, s, -1.0f / 6.0f);
  s = mul_add(mul(z, angle), s, angle);
  float c = mul_add(z, -1.0f / 3628800.0f, 1.0f / 40320.0f);
  c = mul_add(z, c, -1.0f / 720.0f);
  c = mul_add(z, c, 1.0f / 24.0f);
  c = mul_add(z, c, -0.5f);
  c = mul_add(z, c, 1.0f);
  const bool swap = quadrant & 1;
  const float x = swap ? s : c;
  const float y = swap ? c : s;
  return {(quadrant + 1) & 2 ? -x : x, quadrant & 2 ? -y : y};
}
}  // namespace exact

// The generator itself: ten rounds over a 128-bit counter with a 64-bit key.
WARPSIGHT_HD PhiloxWords philox4x32(PhiloxWords counter, uint32_t key0, uint32_t key1) {
  uint32_t c0 = counter.w[0], c1 = counter.w[1], c2 = counter.w[2], c3 = counter.w[3];
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(p0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Four words for one index. `stream` keeps the uses of a seed apart: one number for each buffer, layer or purpose.
WARPSIGHT_HD PhiloxWords philox_at(uint64_t seed, uint64_t stream, uint64_t index) {
  const PhiloxWords counter{{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                             static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)}};
  return philox4x32(counter, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

// Maps a word to a number in [0, 1), in steps of 2^-24.
WARPSIGHT_HD float unit_uniform(uint32_t word) {
  return exact::mul(static_cast<float>(static_cast<int32_t>(word >> 8)), 0x1p-24f);
}

// Maps two words to two independent standard normal numbers (Box-Muller).
WARPSIGHT_HD NormalPair standard_normal(uint32_t word0, uint32_t word1) {
  const float above_zero = exact::mul(static_cast<float>(static_cast<int32_t>(word0 >> 8) + 1), 0x1p-24f);
  const float radius = exact::sqrt(exact::mul(-2.0f, exact::log(above_zero)));
  const NormalPair direction = exact::cos_sin_turn(unit_uniform(word1));
  return {exact::mul(radius, direction.first), exact::mul(radius, direction.second)};
}

// Element `i` of the sequence of uniform numbers in [0, 1): four elements share one index of the generator.
WARPSIGHT_HD float uniform_at(uint64_t seed, uint64_t stream, uint64_t i) {
  return unit_uniform(philox_at(seed, stream, i / 4).w[i % 4]);
}

// Element `i` of the sequence of standard normal numbers: four elements share one index of the generator.
WARPSIGHT_HD float normal_at(uint64_t seed, uint64_t stream, uint64_t i) {
  const PhiloxWords words = philox_at(seed, stream, i / 4);
  const NormalPair pair = i % 4 < 2 ? standard_normal(words.w[0], words.w[1]) : standard_normal(words.w[2], words.w[3]);
  return i % 2 == 0 ? pair.first : pair.second;
}

// Maps a word to an index in [0, bound). The bias is negligible if bound is far below 2^32.
WARPSIGHT_HD uint32_t index_below(uint32_t word, uint32_t bound) {
  return static_cast<uint32_t>((uint64_t{word} * bound) >> 32);
}

}  // namespace ws::data
