// Edits of a graph of causes, and the language in which people write them: "no sync; fc1 /2; one graph launch".
#pragma once
#include <string>
#include <unordered_set>
#include <vector>

#include "profiling/causes/path_groups.h"
#include "profiling/causes/step_causes.h"

namespace ws::prof {

enum class EditKind : uint8_t {
  Faster,         // NAME /2, or NAME *2 for slower
  Gone,           // NAME gone
  NoWaits,        // no sync; no sync NAME
  NoAllocator,    // no allocator calls
  PinnedCopies,   // copies pinned
  OverlappedCopies,  // copies overlapped
  OneGraph,       // one graph launch
  FusedWithNext,  // fuse NAME
  LoaderReady,    // loader ready
  RankOnTime,     // rank 3 on time
  OtherRanks,     // 16 ranks, each with the work that a rank has now
  FastHost,       // infinitely fast host
  FastGpu,        // infinitely fast GPU
};

struct Edit {
  EditKind kind = EditKind::Gone;
  std::string name;       // what it selects; empty: everything that the edit can change
  double factor = 0;      // of the time of Faster
  int rank = -1;          // of one rank only; or how many ranks
  std::string text;       // as written
};

// The edit that takes a cause away, if it has one of its own: "no sync"; else empty.
std::string own_edit(const PathCauseId& cause);
std::string edit_kind_name(EditKind kind);  // "no sync", "NAME /N"
// What a person reads for edits: "remove all syncs, then use one CUDA graph", "make fc1 2× faster". Every view names them so; a person types
// the edits themselves. Throws Failure if the text is no edit.
std::string edits_phrase(const std::string& edits);
// True if a person can do what the edits say. "fc1 /2" only shows what it would be worth.
bool can_be_done(const std::string& edits);

// Edits are separated by ";". Throws Failure that says which one is wrong, and what an edit may be.
std::vector<Edit> parse_edits(const std::string& text);
inline constexpr const char* kEditForms =
    "NAME /2, NAME *2, NAME gone, no sync, no sync NAME, no allocator calls, copies pinned, copies pinned NAME, copies overlapped, copies overlapped NAME, "
    "one graph launch, fuse NAME, loader ready, rank N on time, rank N /2, N ranks, infinitely fast host, infinitely fast GPU";

// Edits that change something in the steps of a run, under titles. A menu offers them.
struct EditOffer {
  std::string words;  // "make fc1 2× faster"
  std::string text;   // "fc1 /2", as it is written
};
struct EditOffers {
  std::string title;
  std::vector<EditOffer> offers;
};

// Applies edits to the steps of a run. It keeps the names that the run has, so that many edits can be tried.
class Editor {
 public:
  Editor(const StepCauses& causes, const Trace& trace);
  // Throws Failure if the edit selects nothing.
  void apply(const Edit& edit, Timing& timing) const;
  std::vector<EditOffers> offers() const;
  // What can be asked of a span: of its op, module and line in all steps. Empty if the steps have no such span.
  std::vector<EditOffer> offers_for(const Track& track, const Span& span) const;
  // "“fc1” is an op and a module. …" where a name says several things; else empty.
  std::string other_meaning(const Edit& edit) const;
  const std::vector<PathGroup>& groups() const { return groups_; }
  void make_free(const PathGroup& group, Timing& timing) const;  // its work takes no time, its delays go

 private:
  std::vector<PathGroup> selected(const Edit& edit) const;
  std::vector<const PathGroup*> named(const Edit& edit) const;
  PathGroup of_rank(const PathGroup& group, int rank) const;
  [[noreturn]] void refuse(const Edit& edit, const std::string& reason) const;
  bool changes_a_step(const std::string& text) const;
  std::vector<const PathGroup*> most_work() const;
  std::vector<EditOffer> offers_of(GroupKind kind) const;
  std::vector<EditOffer> general_offers_for(const CauseNode& node) const;
  std::string some_names() const;
  void learn_times();
  bool is_dropped(uint32_t node, const Timing& timing) const;
  void drop_call(uint32_t node, Timing& timing) const;
  int64_t* time_before(uint32_t node, Timing& timing) const;
  std::unordered_set<uint32_t> calls_that_copy_with_the_host() const;
  size_t one_graph(Timing& timing) const;
  size_t graph_in_chain(const std::vector<uint32_t>& chain, Timing& timing) const;
  size_t faster(const Edit& edit, Timing& timing) const;
  size_t gone(const Edit& edit, Timing& timing) const;
  std::vector<uint32_t> copies(const Edit& edit) const;
  size_t pinned(const std::vector<uint32_t>& copies, Timing& timing) const;
  size_t overlapped(const std::vector<uint32_t>& copies, Timing& timing) const;
  void without_gap_before(uint32_t node, Timing& timing) const;
  size_t without_waits(const std::vector<PathGroup>& groups, Timing& timing) const;
  size_t fuse(const std::vector<PathGroup>& groups, Timing& timing) const;
  size_t work_of_rank(int rank, double factor, Timing& timing) const;
  size_t other_ranks(int count, Timing& timing) const;
  size_t fast_host(Timing& timing) const;
  size_t fast_gpu(Timing& timing) const;

  const StepCauses& causes_;
  const CauseGraph& graph_;
  const Trace& trace_;
  std::vector<PathGroup> groups_;
  double pinned_bytes_ns_;                  // rate of a copy from pinned memory
  bool copies_pinned_ = false;              // some copy from the host is
  int64_t copy_call_ns_;                    // of a call that only begins a copy
  int64_t event_call_ns_;                   // of a call that records an event or waits for one on a stream
  std::vector<uint32_t> launched_by_;       // by node: its call, or itself
  std::vector<uint32_t> next_in_row_;       // by node; itself at the end
};

// Work of a rank on time takes no time. A picture shows it as short as it must be: it keeps its order and shares, and fills the
// time between the meetings of the ranks. `before`: the replay without edits. `times`: the replay with them; gets the new times.
void fit_between_meetings(const CauseGraph& graph, int rank, const std::vector<TimeNs>& before, std::vector<TimeNs>& times);

}  // namespace ws::prof
