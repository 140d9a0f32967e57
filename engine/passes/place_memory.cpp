// Gives every step-local buffer its memory: alloc and free ops that users can see, or offsets in one block planned from
// the lifetimes.
#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/passes/lifetimes.h"
#include "engine/passes/passes.h"
#include "profiling/base/text.h"

namespace ws {
namespace {

constexpr int64_t kAlignment = 256;
int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

Op bookkeeping(OpKind kind, const Plan& plan, BufferId id, const Op& beside) {
  Op op;
  op.kind = kind;
  op.phase = beside.phase;
  op.layer = beside.layer;
  op.name = std::string(to_string(kind)) + " " + plan.buffer(id).name;
  (kind == OpKind::Alloc ? op.out : op.in) = {id};
  return op;
}

Plan insert_alloc_and_free(Plan plan) {
  const auto lives = lifetimes(plan);
  std::vector<Op> ops;
  for (int i = 0; i < static_cast<int>(plan.ops.size()); ++i) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    for (size_t b = 0; b < lives.size(); ++b)
      if (lives[b].first == i) ops.push_back(bookkeeping(OpKind::Alloc, plan, static_cast<BufferId>(b), op));
    ops.push_back(op);
    for (size_t b = 0; b < lives.size(); ++b)
      if (lives[b].last == i) ops.push_back(bookkeeping(OpKind::Free, plan, static_cast<BufferId>(b), op));
  }
  plan.log.push_back(std::to_string((ops.size() - plan.ops.size()) / 2) + " buffers are allocated and freed in each step.");
  plan.ops = std::move(ops);
  return plan;
}

struct Block {
  size_t buffer;
  int64_t bytes, offset = 0;
  Lifetime life;
};

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

int64_t lowest_fit(const Block& block, std::vector<const Block*> placed) {
  std::erase_if(placed, [&](const Block* p) { return !meet(p->life, block.life); });
  std::ranges::sort(placed, {}, &Block::offset);
  int64_t offset = 0;
  for (const Block* p : placed) {
    if (offset + block.bytes <= p->offset) break;
    offset = std::max(offset, p->offset + p->bytes);
  }
  return offset;
}

int64_t place_in_order(std::vector<Block>& blocks, const std::vector<size_t>& order) {
  std::vector<const Block*> placed;
  int64_t end = 0;
  for (size_t i : order) {
    blocks[i].offset = lowest_fit(blocks[i], placed);
    end = std::max(end, blocks[i].offset + blocks[i].bytes);
    placed.push_back(&blocks[i]);
  }
  return end;
}

std::vector<size_t> order_by(const std::vector<Block>& blocks, auto key) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>{}, [&](size_t i) { return key(blocks[i]); });
  return order;
}

// In each round, moves the highest block to an earlier place in the order. Sometimes moves another block instead, to
// avoid cycles.
void improve(std::vector<Block>& best, int64_t& end, std::vector<size_t> order, int64_t bound) {
  std::vector<Block> tried = best;
  uint32_t noise = 1;
  for (int round = 0; round < 300 && end > bound; ++round) {
    const int64_t size = place_in_order(tried, order);
    if (size < end) best = tried, end = size;
    auto top = std::ranges::find_if(order, [&](size_t i) { return tried[i].offset + tried[i].bytes == size; });
    noise = noise * 1664525u + 1013904223u;
    if (top == order.begin() || round % 4 == 3) top = order.begin() + (noise >> 8) % order.size();
    std::rotate(order.begin() + (top - order.begin()) * ((noise >> 24) % 3) / 3, top, top + 1);
  }
}

// Optimal packing of lifetimes is a hard problem. Tries a few greedy orders, improves each, and returns the best.
std::vector<Block> best_packing(std::vector<Block> blocks, int64_t bound, int64_t& end) {
  const auto length = [](const Block& b) { return b.life.last - b.life.first + 1; };
  const std::vector<size_t> orders[] = {order_by(blocks, [](const Block& b) { return b.bytes; }),
                                        order_by(blocks, [&](const Block& b) { return b.bytes * length(b); }),
                                        order_by(blocks, length),
                                        order_by(blocks, [](const Block& b) { return -b.life.first; }),
                                        order_by(blocks, [](const Block& b) { return b.life.last; })};
  end = 0;
  if (blocks.empty()) return blocks;
  end = std::numeric_limits<int64_t>::max();
  for (const auto& order : orders) improve(blocks, end, order, bound);
  return blocks;
}

int64_t aligned_lower_bound(const std::vector<Block>& blocks) {
  int64_t most = 0;
  for (const Block& at : blocks) {
    int64_t sum = 0;
    for (const Block& b : blocks) sum += b.life.first <= at.life.first && at.life.first <= b.life.last ? b.bytes : 0;
    most = std::max(most, sum);
  }
  return most;
}

Plan plan_arena(Plan plan) {
  const auto lives = lifetimes(plan);
  std::vector<Block> blocks;
  for (size_t b = 0; b < lives.size(); ++b)
    if (lives[b].first >= 0) blocks.push_back({b, aligned(plan.buffers[b].bytes()), 0, lives[b]});
  int64_t end = 0;
  for (const Block& block : best_packing(blocks, aligned_lower_bound(blocks), end))
    plan.buffers[block.buffer].offset = block.offset;
  plan.arena_bytes = end;
  plan.log.push_back(std::to_string(blocks.size()) + " buffers share one block of " + bytes_text(static_cast<double>(end)) + ".");
  return plan;
}

}  // namespace

Plan place_memory(Plan plan, Allocator allocator) {
  return allocator == Allocator::Arena ? plan_arena(std::move(plan)) : insert_alloc_and_free(std::move(plan));
}

}  // namespace ws
