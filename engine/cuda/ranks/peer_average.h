// The average of gradients through memory that GPUs map from each other: one kernel on each GPU, no copy in between.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "engine/cuda/runtime/rank_link.h"

namespace ws::cuda {

constexpr int kMostPeers = 8;           // ranks
constexpr int kMostPeerBlocks = 64;     // of one kernel
constexpr int kMostPeerGradients = 16;  // of one kernel

// What a block sends to the block of the same number on another rank. It lies in the other rank's memory.
struct PeerMessage {
  float* gradients[kMostPeerGradients];
  float share;
  uint32_t ready;    // number of the last average whose gradients may be read
  uint32_t written;  // number of the last average whose results this block has written
};

// One per rank, in its own memory. It starts as zeros.
struct PeerMailbox {
  PeerMessage messages[kMostPeerBlocks][kMostPeers];  // by block, and by the rank that writes
  uint32_t averages[kMostPeerBlocks];                 // number of the last one
};

struct Peer {
  int rank = 0, ranks = 1;
  PeerMailbox* mailboxes[kMostPeers] = {};  // by rank
  const volatile int* stop = nullptr;       // host memory. If not zero, no kernel waits any longer
};

int peer_average_shared_bytes();  // shared memory that a block needs

// Call once for each GPU, before its first average.
void prepare_peer_average();

// Enqueues the average on the stream of this rank's GPU: each element becomes the sum over the ranks of share · value.
// Every rank must make the same calls, with as many blocks. Gradients must be aligned to 16 bytes. `begun`, if not null, is
// recorded when all blocks of the first kernel run.
void average_with_peers(const Peer& peer, cudaStream_t stream, float share, std::span<const Gradient> gradients,
                        int blocks, cudaEvent_t begun);

}  // namespace ws::cuda
