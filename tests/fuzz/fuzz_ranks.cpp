// Two ranks of a program, with the clocks that their files claim, become one run.
#include <algorithm>
#include <array>
#include <cstring>

#include "profiling/analysis/ranks.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/trace/batch_codec.h"
#include "tests/fuzz/fuzz_trace.h"

namespace {

using namespace ws;

struct Head {
  uint16_t first_bytes;  // of the rest, for the first rank
  std::array<uint8_t, 2> clock;
  std::array<int64_t, 2> origin, width;
};

prof::RunData rank_from(const Head& head, size_t rank, std::string_view bytes) {
  prof::RunData run;
  prof::append(run.trace, prof::decode_batch(bytes));
  run.summary.name = "rank";
  prof::keep_rank(run.summary, static_cast<int>(rank), 2);
  constexpr std::array<const char*, 4> kClocks{"", prof::kWallClock, "a", "b"};
  if (const char* clock = kClocks[head.clock[rank] % kClocks.size()]; *clock)
    prof::keep_clock(run.summary, clock, head.origin[rank]);
  run.summary.extra[prof::kClockWidthKey] = std::to_string(head.width[rank]);
  return run;
}

}  // namespace

FUZZ_TARGET(ranks) {
  Head head;
  if (bytes.size() < sizeof head) return;
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::string_view rest = bytes.substr(sizeof head);
  const size_t first = std::min<size_t>(head.first_bytes, rest.size());
  fuzz::accepts([&] {
    std::vector<prof::RunData> ranks;
    ranks.push_back(rank_from(head, 0, rest.substr(0, first)));
    ranks.push_back(rank_from(head, 1, rest.substr(first)));
    const prof::RunData run = prof::join_ranks(std::move(ranks));
    fuzz::check_trace(run.trace);
    prof::to_text(prof::rank_report(run));
  });
}
