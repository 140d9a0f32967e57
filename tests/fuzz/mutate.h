// Random changes to an input: bits, bytes, numbers, pieces moved, cut and mixed in from another input.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

namespace ws::fuzz {

using Bytes = std::vector<uint8_t>;
using Random = std::mt19937_64;

// Makes one to eight changes; the result is at most `most` bytes long.
Bytes mutate(const Bytes& input, const Bytes& other, size_t most, Random& random);

}  // namespace ws::fuzz
