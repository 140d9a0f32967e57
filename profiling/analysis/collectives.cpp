#include "profiling/analysis/collectives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "profiling/analysis/kernel_table.h"
#include "profiling/base/budget.h"
#include "profiling/base/statistics.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

std::string name_of_collective(const std::string& kernel) {
  std::string name = plain_kernel_name(kernel);
  for (const std::string_view begin : {"ncclDevKernel_", "ncclKernel_"})
    if (name.starts_with(begin)) return name.substr(begin.size());
  return name;
}

std::string short_collective_name(const std::string& full) {
  const size_t part_of_ranks = std::min(full.find(" · "), full.size());
  const std::string name = full.substr(0, part_of_ranks);
  constexpr std::string_view kLeftOut[] = {"RING", "TREE", "PAT", "LL", "LL128", "SIMPLE", "Sum"};
  constexpr std::string_view kFamilies[] = {"COLLNET", "NVLS"};  // of algorithms
  std::string rest;
  bool algorithm = false;
  for (size_t begin = 0, end = 0; begin <= name.size(); begin = end + 1) {
    end = std::min(name.find('_', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    const bool left_out = std::ranges::find(kLeftOut, part) != std::end(kLeftOut) ||
                          std::ranges::any_of(kFamilies, [part](std::string_view one) { return part.starts_with(one); });
    algorithm = algorithm || (left_out && part != "Sum");
    if (!left_out) rest.append(rest.empty() ? "" : " ").append(part);
  }
  return algorithm && !rest.empty() ? rest + full.substr(part_of_ranks) : full;
}

namespace {

bool communicates(const SpanBlock& block) { return block.total[static_cast<size_t>(Meaning::Communication)] > 0; }

TimeNs first_communication(const Track& track) {
  const auto block = std::ranges::find_if(track.blocks, [](const SpanBlock& b) { return communicates(b); });
  return block == track.blocks.end() ? kAlways : block->first;
}

constexpr std::string_view kSeparator = " · ", kTo = kSentTo, kFrom = kReceivedFrom;

// "gloo:send", "nccl:recv 1<-0"
bool is_host_message(const std::string& name) {
  const std::string_view call = std::string_view(name).substr(name.find(':') + 1);
  return name.find(':') != name.npos && (call == "send" || call == "recv" || call.starts_with("send ") || call.starts_with("recv "));
}

// NCCL names the operations of a call before its communicator: "Send · 4 ranks · communicator 9f1c · 1 → 2"; an older NCCL
// does not tell who sends to whom. PyTorch's traces name the other rank behind it: "0 [0, 1, 2] · to 2".
void join_both_sides(CollectiveKind& kind, int rank) {
  const std::string own = std::to_string(rank);
  std::string& text = kind.communicator;
  if (is_host_message(kind.name)) {
    text = "rank " + own;
    kind.unknown_peer = true;
    return;
  }
  if (!kind.name.starts_with("SendRecv")) kind.name = "SendRecv";
  if (const size_t at = text.rfind(kTo); at != text.npos) {
    text = text.substr(0, at) + " · " + own + kToRank + text.substr(at + kTo.size());
  } else if (const size_t from = text.rfind(kFrom); from != text.npos) {
    text = text.substr(0, from) + " · " + text.substr(from + kFrom.size()) + kToRank + own;
  } else if (const size_t head = text.find(kSeparator); head != text.npos) {
    const std::string operations = text.substr(0, head), rest = text.substr(head + kSeparator.size());
    if (rest.starts_with("2 ranks") || rest.find(kToRank) != rest.npos) {
      text = rest;
    } else if (operations == "Send" || operations == "Recv") {
      text += " · rank " + own;
      kind.unknown_peer = true;
    }
  }
}

CollectiveKind kind_of(const Trace& trace, const Span& span, const std::string& stream, int rank) {
  const Detail& detail = trace.detail(span.detail);
  CollectiveKind kind{name_of_collective(trace.name(span.name)), detail.bytes,
                      detail.copy_kind.empty() ? stream : detail.copy_kind};
  if (is_point_to_point(kind)) {
    join_both_sides(kind, rank);
    return kind;
  }
  if (span.op == kNoOp || span.op >= trace.ops.size() || trace.ops[span.op].meaning != Meaning::Communication)
    return kind;
  const OpInfo& op = trace.ops[span.op];
  if (!op.name.empty()) kind.name = op.name;
  if (kind.bytes == 0) kind.bytes = static_cast<uint64_t>(std::max<int64_t>(0, op.bytes) / 2);  // read and written
  return kind;
}

// Tracks by rank and kind.
using TracksOfRanks = std::map<int, std::map<TrackKind, std::vector<size_t>>>;

TracksOfRanks tracks_of_ranks(const Trace& trace, int rank_without) {
  TracksOfRanks found;
  if (rank_without >= 0) found[rank_without];
  for (size_t t = 0; t < trace.tracks().size(); ++t) {
    const Track& track = trace.tracks()[t];
    if (const int rank = track.rank < 0 ? rank_without : track.rank; rank >= 0) found[rank][broad_kind(track.kind)].push_back(t);
  }
  return found;
}

// Returns the tracks that communicate.
std::vector<size_t> communicating(const Trace& trace, std::vector<size_t> tracks) {
  std::erase_if(tracks, [&](size_t t) { return trace.tracks()[t].time_of(Meaning::Communication) == 0; });
  std::ranges::stable_sort(tracks, {}, [&](size_t t) { return first_communication(trace.tracks()[t]); });
  return tracks;
}

// Numbers the kinds of all traces.
class Kinds {
 public:
  explicit Kinds(std::vector<CollectiveKind>& kinds) : kinds_(kinds) {
    for (const CollectiveKind& kind : kinds) numbers_.emplace(kind, numbers_.size());
  }
  uint32_t number(CollectiveKind kind) {
    const auto [at, fresh] = numbers_.try_emplace(kind, static_cast<uint32_t>(kinds_.size()));
    if (fresh) kinds_.push_back(std::move(kind));
    return at->second;
  }

 private:
  std::vector<CollectiveKind>& kinds_;
  std::map<CollectiveKind, uint32_t> numbers_;
};

void add_calls(const Trace& trace, const ReadBlock& read, int rank, const std::vector<size_t>& tracks, Kinds& kinds,
               std::vector<CollectiveCall>& calls) {
  std::map<std::pair<std::string, std::string>, size_t> streams;  // lanes of one stream are several tracks
  for (const size_t t : tracks) {
    const Track& track = trace.tracks()[t];
    const size_t order = streams.try_emplace({track.group, track.name}, streams.size()).first->second;
    // Threads of the host take the calls in turn, so that they say nothing about communicators.
    const std::string stream = track.kind != TrackKind::CpuThread && broad_kind(track.kind) != TrackKind::Phases ? "stream " + std::to_string(order + 1) : "";
    std::map<std::tuple<NameId, DetailId, OpTag>, uint32_t> known;
    for (size_t b = 0; b < track.blocks.size(); ++b) {
      if (!communicates(track.blocks[b])) continue;
      read(t, b, [&](std::span<const Span> spans) {
        for (const Span& span : spans) {
          if (span.span_meaning() != Meaning::Communication) continue;
          const auto [at, fresh] = known.try_emplace({span.name, span.detail, span.op}, 0);
          if (fresh) at->second = kinds.number(kind_of(trace, span, stream, rank));
          calls.push_back({span.start, span.end(), at->second, span.step});
        }
      });
    }
  }
  std::ranges::stable_sort(calls, {}, &CollectiveCall::begin);
}

using Indices = std::vector<uint32_t>;  // of the calls of one kind on one rank, in order

// Spread of the differences between the ends of two lists. The lists of the same collectives have a small one.
double spread_of_ends(std::span<const TimeNs> a, std::span<const TimeNs> b) {
  std::vector<double> apart;
  for (size_t i = 0; i < a.size(); ++i) apart.push_back(static_cast<double>(a[i] - b[i]));
  return spread_around_median(std::move(apart));
}

class Matcher {
 public:
  explicit Matcher(const Collectives& found) : found_(found) { matched_.ranks = found.ranks.size(); }

  MatchedCalls by_order() {
    each_kind([this](uint32_t kind, const auto& of, const auto& taking_part) { match_in_order(kind, of, taking_part); });
    return std::move(matched_);
  }
  MatchedCalls by_time(TimeNs error) {
    each_kind([&](uint32_t kind, const auto& of, const auto& taking_part) { match_in_time(kind, of, taking_part, error); });
    return std::move(matched_);
  }

 private:
  const CollectiveCall& call(size_t rank, uint32_t index) const { return found_.calls[rank][index]; }

  // Calls match(kind, its calls by rank, the ranks that have some).
  template <class Match>
  void each_kind(Match match) const {
    std::vector<std::vector<std::pair<uint32_t, uint32_t>>> calls(found_.kinds.size());  // rank and index
    for (uint32_t r = 0; r < found_.ranks.size(); ++r)
      for (uint32_t i = 0; i < found_.calls[r].size(); ++i) calls[found_.calls[r][i].kind].emplace_back(r, i);
    std::vector<Indices> of(found_.ranks.size());
    for (uint32_t kind = 0; kind < calls.size(); ++kind) {
      std::vector<size_t> taking_part;
      for (const auto& [r, i] : calls[kind]) {
        if (of[r].empty()) taking_part.push_back(r);
        of[r].push_back(i);
      }
      match(kind, of, taking_part);
      for (const size_t r : taking_part) of[r].clear();
    }
  }

  // The next call of each rank belongs to the collective that ends first, if it begins before that end.
  void match_in_time(uint32_t kind, const std::vector<Indices>& of, const std::vector<size_t>& taking_part, TimeNs error) {
    struct Rest {
      size_t rank;
      std::span<const uint32_t> calls;
    };
    std::vector<Rest> remaining;
    for (const size_t r : taking_part) remaining.push_back({r, of[r]});
    while (!remaining.empty()) {
      TimeNs end = kAlways;
      for (const Rest& rest : remaining) end = std::min(end, call(rest.rank, rest.calls[0]).end);
      const size_t row = add_rows(kind, 1);
      for (Rest& rest : remaining) {
        if (call(rest.rank, rest.calls[0]).begin > end + error) continue;
        matched_.indices[row * matched_.ranks + rest.rank] = rest.calls[0];
        rest.calls = rest.calls.subspan(1);
      }
      std::erase_if(remaining, [](const Rest& rest) { return rest.calls.empty(); });
    }
  }

  void match_in_order(uint32_t kind, const std::vector<Indices>& of, const std::vector<size_t>& taking_part) {
    if (taking_part.size() < 2) return;
    const size_t longest = *std::ranges::max_element(taking_part, {}, [&](size_t r) { return of[r].size(); });
    const auto as_longest = [&](size_t r) {
      return of[r].size() == of[longest].size() && call(r, of[r][0]).step == call(longest, of[longest][0]).step;
    };
    const auto has_steps = [&](size_t r) {
      return std::ranges::all_of(of[r], [&](uint32_t i) { return call(r, i).step > 0; });
    };
    const bool same = std::ranges::all_of(taking_part, as_longest);
    if (!same && std::ranges::all_of(taking_part, has_steps)) return match_in_steps(kind, of);
    const size_t first = add_rows(kind, of[longest].size());
    for (const size_t r : taking_part) put(first + skipped(r, of[r], longest, of[longest]), r, of[r]);
  }

  size_t add_rows(uint32_t kind, size_t count) {
    const size_t first = matched_.size();
    budget_.take(count * matched_.ranks * kWorkBytes);
    matched_.kinds.resize(first + count, kind);
    matched_.indices.resize((first + count) * matched_.ranks, MatchedCalls::kNone);
    return first;
  }
  void put(size_t row, size_t rank, const Indices& indices) {
    for (size_t i = 0; i < indices.size(); ++i) matched_.indices[(row + i) * matched_.ranks + rank] = indices[i];
  }

  // How many calls of the longest list come before the first one of this list: none, or all that this list lacks.
  size_t skipped(size_t rank, const Indices& of, size_t longest, const Indices& all) const {
    if (of.size() == all.size()) return 0;
    const size_t lacks = all.size() - of.size();
    const auto ends = [&](size_t r, std::span<const uint32_t> indices) {
      std::vector<TimeNs> times;
      for (const uint32_t i : indices) times.push_back(call(r, i).end);
      return times;
    };
    const std::vector<TimeNs> mine = ends(rank, of);
    const double at_begin = spread_of_ends(mine, ends(longest, std::span(all).first(of.size())));
    const double at_end = spread_of_ends(mine, ends(longest, std::span(all).last(of.size())));
    return at_end < at_begin ? lacks : 0;
  }

  void match_in_steps(uint32_t kind, const std::vector<Indices>& of) {
    std::map<std::pair<uint32_t, uint32_t>, size_t> rows;  // by step and place in it
    std::vector<std::vector<size_t>> row_of(of.size());
    for (size_t r = 0; r < of.size(); ++r) {
      std::unordered_map<uint32_t, uint32_t> seen;  // calls by step
      for (const uint32_t i : of[r]) {
        const uint32_t step = call(r, i).step;
        row_of[r].push_back(rows.try_emplace({step, seen[step]++}, rows.size()).first->second);
      }
    }
    const size_t first = add_rows(kind, rows.size());
    for (size_t r = 0; r < of.size(); ++r)
      for (size_t i = 0; i < of[r].size(); ++i)
        matched_.indices[(first + row_of[r][i]) * matched_.ranks + r] = of[r][i];
  }

  static constexpr uint64_t kWorkBytes = 16;  // of a rank in a collective, here and in what is made of it
  const Collectives& found_;
  MatchedCalls matched_;
  Budget budget_;
};

}  // namespace

bool is_point_to_point(const CollectiveKind& kind) {
  constexpr std::string_view kNames[] = {"Send", "Recv", "Send + Recv", "Recv + Send"};
  return kind.name.starts_with("SendRecv") || is_host_message(kind.name) || std::ranges::find(kNames, kind.name) != std::end(kNames);
}

ReadBlock blocks_in_memory(const Trace& trace) {
  return [&trace](size_t track, size_t block, const UseSpans& use) { use(trace.tracks()[track].blocks[block].spans); };
}

void Collectives::add(const Trace& trace, const ReadBlock& read, int rank) {
  Kinds known(kinds);
  TracksOfRanks there = tracks_of_ranks(trace, rank);
  for (auto& [each, by_kind] : there) {
    const auto at = std::ranges::lower_bound(ranks, each);
    const auto place = at - ranks.begin();
    if (at == ranks.end() || *at != each) ranks.insert(at, each), calls.emplace(calls.begin() + place);
    std::vector<size_t> tracks;
    for (const TrackKind kind : {TrackKind::Stream, TrackKind::Other, TrackKind::CpuThread, TrackKind::Phases})
      if (tracks.empty()) tracks = communicating(trace, std::move(by_kind[kind]));
    add_calls(trace, read, each, tracks, known, calls[static_cast<size_t>(place)]);
  }
}

MatchedCalls match_by_order(const Collectives& found) { return Matcher(found).by_order(); }
MatchedCalls match_by_time(const Collectives& found, TimeNs error) { return Matcher(found).by_time(error); }

}  // namespace ws::prof
