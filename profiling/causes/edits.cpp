#include "profiling/causes/edits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "profiling/analysis/kernel_table.h"
#include "profiling/base/failure.h"
#include "profiling/base/statistics.h"
#include "profiling/base/text.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

constexpr double kUsualPinned = 25;     // bytes a ns over PCIe, where the trace has no large copy from pinned memory
constexpr int64_t kCopyStart = 1500;    // ns before the first byte
constexpr double kUsualLaunch = 4500;   // ns of a call, where the trace has none
constexpr size_t kFewestTimes = 8;      // of a kind of call
constexpr double kLargeCopy = 1 << 20;  // bytes
// What a program waits for a batch that its loader has ready, with PyTorch's workers on the host of an H200: they pass each tensor on through
// a socket, and where the loader pins memory, a thread of the program has taken them before.
constexpr int64_t kHandOver = 900'000, kHandOverPinned = 60'000;

// The text behind `word` and a space; nullopt if it begins with something else. Upper and lower case are the same.
std::optional<std::string> after(const std::string& text, std::string_view word) {
  if (!matches(word, text.substr(0, word.size()))) return std::nullopt;
  if (text.size() > word.size() && text[word.size()] != ' ') return std::nullopt;
  return std::string(trimmed(std::string_view(text).substr(word.size())));
}

std::optional<double> number(std::string_view text) {
  if (text.ends_with("×")) text.remove_suffix(std::string_view("×").size());
  if (text.ends_with("x")) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

constexpr const char *kProgram = "Syncs, calls and copies", *kMachine = "The machine";

// `title`: of the offers that have it; null: another form offers the same.
struct Form {
  std::string_view text;
  EditKind kind;
  const char* title;
};
constexpr Form kForms[] = {
    {"no sync", EditKind::NoWaits, kProgram},
    {"no waits", EditKind::NoWaits, nullptr},
    {"no allocator calls", EditKind::NoAllocator, kProgram},
    {"one graph launch", EditKind::OneGraph, kProgram},
    {"copies pinned", EditKind::PinnedCopies, kProgram},
    {"copies overlapped", EditKind::OverlappedCopies, kProgram},
    {"loader ready", EditKind::LoaderReady, kProgram},
    {"infinitely fast host", EditKind::FastHost, kMachine},
    {"infinitely fast GPU", EditKind::FastGpu, kMachine},
};

constexpr std::pair<std::string_view, EditKind> kNamedForms[] = {
    {"no sync", EditKind::NoWaits},
    {"no waits", EditKind::NoWaits},
    {"copies pinned", EditKind::PinnedCopies},
    {"copies overlapped", EditKind::OverlappedCopies},
    {"fuse", EditKind::FusedWithNext},
};

class Parser {
 public:
  Parser(size_t number, std::string text) : number_(number) { edit_.text = std::move(text); }

  Edit parse() {
    for (const Form& form : kForms)
      if (matches(form.text, edit_.text)) return of_kind(form.kind);
    for (const auto& [word, kind] : kNamedForms)
      if (const auto name = after(edit_.text, word)) return of_name(kind, *name);
    if (edit_.text.ends_with(" on time")) return of_rank();
    if (const auto count = edit_.text.ends_with(" ranks") ? number(trimmed(std::string_view(edit_.text).substr(0, edit_.text.size() - 6))) : std::nullopt) return of_ranks(*count);
    if (edit_.text.ends_with(" gone")) return of_name(EditKind::Gone, trimmed(std::string_view(edit_.text).substr(0, edit_.text.size() - 5)));
    return of_factor();
  }

 private:
  Edit of_kind(EditKind kind) {
    edit_.kind = kind;
    return edit_;
  }
  // "fc1", "fc1, rank 1", "rank 1"
  Edit of_name(EditKind kind, std::string_view name) {
    if (name.empty()) refuse("it names nothing");
    const size_t comma = name.rfind(',');
    const std::string_view last = comma == name.npos ? name : trimmed(name.substr(comma + 1));
    if (const auto rank = rank_of(last)) edit_.rank = *rank, name = comma == name.npos ? "" : trimmed(name.substr(0, comma));
    edit_.name = name;
    return of_kind(kind);
  }
  static std::optional<int> rank_of(std::string_view text) {
    const auto digits = after(std::string(text), "rank");
    const auto rank = digits ? number(*digits) : std::nullopt;
    return rank && *rank >= 0 && *rank == std::floor(*rank) && *rank <= 1e6 ? std::optional(static_cast<int>(*rank)) : std::nullopt;
  }
  Edit of_rank() {
    const auto rank = rank_of(trimmed(std::string_view(edit_.text).substr(0, edit_.text.size() - std::string_view(" on time").size())));
    if (!rank) refuse("expected \"rank N on time\"");
    edit_.rank = *rank;
    return of_kind(EditKind::RankOnTime);
  }
  Edit of_ranks(double count) {
    if (count < 1 || count != std::floor(count) || count > 1e6) refuse("expected a whole number of ranks, from 1 to a million");
    edit_.rank = static_cast<int>(count);
    return of_kind(EditKind::OtherRanks);
  }
  Edit of_factor() {
    constexpr std::pair<std::string_view, bool> kSigns[] = {{"÷", true}, {"/", true}, {"*", false}, {"×", false}};
    for (const auto& [sign, divides] : kSigns) {
      const size_t at = edit_.text.rfind(sign);
      if (at == std::string::npos) continue;
      const auto value = number(trimmed(std::string_view(edit_.text).substr(at + sign.size())));
      if (!value) continue;
      if (*value <= 0 || *value > 1e6) refuse("the factor must be above 0 and at most a million");
      edit_.factor = divides ? 1 / *value : *value;
      return of_name(EditKind::Faster, trimmed(std::string_view(edit_.text).substr(0, at)));
    }
    refuse("this is no edit");
  }
  [[noreturn]] void refuse(const std::string& reason) const {
    throw Failure("Edit " + std::to_string(number_) + ", \"" + edit_.text + "\": " + reason + ". Write one of: " + kEditForms + ".");
  }

  size_t number_;
  Edit edit_;
};

}  // namespace

std::string own_edit(const PathCauseId& cause) {
  switch (cause.cause) {
    case PathCause::SyncCalls:
      return edit_kind_name(EditKind::NoWaits);
    case PathCause::AllocatorCalls:
      return edit_kind_name(EditKind::NoAllocator);
    default:
      return {};
  }
}

std::string edit_kind_name(EditKind kind) {
  for (const Form& form : kForms)
    if (form.kind == kind) return std::string(form.text);
  switch (kind) {
    case EditKind::Gone:
      return "NAME gone";
    case EditKind::FusedWithNext:
      return "fuse NAME";
    case EditKind::RankOnTime:
      return "rank N on time";
    case EditKind::OtherRanks:
      return "N ranks";
    default:
      return "NAME /N";
  }
}

namespace {

// "fc1", "fc1 of rank 1", "rank 1"
std::string selected_text(const Edit& edit) {
  const std::string name = shortened(edit.name, 40), rank = edit.rank < 0 ? "" : "rank " + std::to_string(edit.rank);
  return name + (name.empty() || rank.empty() ? "" : " of ") + rank;
}

// "remove the sync at train.py:12", "remove the syncs of fc1", "remove all syncs"
std::string syncs_phrase(const Edit& edit) {
  if (const auto line = after(edit.name, group_kind_name(GroupKind::Line)); line && edit.rank < 0) return "remove the sync at " + line->substr(0, line->find(" in "));
  const std::string of = selected_text(edit);
  return of.empty() ? "remove all syncs" : "remove the syncs of " + of;
}

std::string phrase_of(const Edit& edit) {
  const std::string what = selected_text(edit), of = what.empty() ? "" : " of " + what;
  switch (edit.kind) {
    case EditKind::Faster:
      return "make " + what + " " + formatted("{:.3g}", edit.factor < 1 ? 1 / edit.factor : edit.factor) + (edit.factor < 1 ? "× faster" : "× slower");
    case EditKind::Gone:
      return "remove " + what;
    case EditKind::NoWaits:
      return syncs_phrase(edit);
    case EditKind::NoAllocator:
      return "remove all allocator calls";
    case EditKind::PinnedCopies:
      return "pin the memory of " + (what.empty() ? "copies" : what);
    case EditKind::OverlappedCopies:
      return "overlap the copies" + of;
    case EditKind::OneGraph:
      return "use one CUDA graph";
    case EditKind::FusedWithNext:
      return "fuse " + what + " with the next kernel";
    case EditKind::LoaderReady:
      return "add loader workers";
    case EditKind::RankOnTime:
      return "let " + what + " arrive on time";
    case EditKind::OtherRanks:
      return "use " + std::to_string(edit.rank) + (edit.rank == 1 ? " rank" : " ranks");
    case EditKind::FastHost:
      return "make the host infinitely fast";
    case EditKind::FastGpu:
      break;
  }
  return "make the GPU infinitely fast";
}

}  // namespace

std::string edits_phrase(const std::string& edits) {
  std::vector<std::string> phrases;
  const std::vector<Edit> all = parse_edits(edits);
  for (const Edit& edit : all) phrases.push_back(phrase_of(edit));
  return joined_names(phrases, all.back().kind == EditKind::OneGraph ? ", then " : " and ");  // no graph can hold a sync or an allocator call
}

bool can_be_done(const std::string& edits) {
  if (edits.empty()) return false;
  return std::ranges::all_of(parse_edits(edits), [](const Edit& edit) {
    const EditKind kind = edit.kind;
    return kind == EditKind::NoWaits || kind == EditKind::NoAllocator || kind == EditKind::PinnedCopies || kind == EditKind::OverlappedCopies ||
           kind == EditKind::OneGraph || kind == EditKind::LoaderReady || kind == EditKind::RankOnTime;
  });
}

std::vector<Edit> parse_edits(const std::string& text) {
  std::vector<Edit> edits;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    if (std::string one(trimmed(std::string_view(text).substr(begin, end - begin))); !one.empty()) edits.push_back(Parser(edits.size() + 1, std::move(one)).parse());
    begin = end + 1;
  }
  if (edits.empty()) throw Failure(std::string("There is no edit. Write one of: ") + kEditForms + ".");
  return edits;
}

Editor::Editor(const StepCauses& causes, const Trace& trace)
    : causes_(causes), graph_(causes.graph), trace_(trace), groups_(path_groups(causes.graph, trace)), pinned_bytes_ns_(kUsualPinned) {
  double best = 0;
  std::map<uint32_t, uint32_t> last;
  launched_by_.resize(graph_.nodes.size()), next_in_row_.resize(graph_.nodes.size());
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
    const CauseNode& n = graph_.nodes[node];
    launched_by_[node] = next_in_row_[node] = node;
    for (uint32_t e = graph_.first_edge[start_of(node)]; e < graph_.first_edge[start_of(node) + 1]; ++e)
      if (graph_.edges[e].kind == EdgeKind::Launch) launched_by_[node] = graph_.edges[e].from / 2;
    if (n.kind == NodeKind::Meeting) continue;
    if (const auto before = last.find(n.row); before != last.end()) next_in_row_[before->second] = node;
    last[n.row] = node;
    if (n.kind != NodeKind::Copy || n.measured_ns <= 0) continue;
    const Detail& detail = trace_.detail(n.detail);
    if (copy_ends(detail.copy_kind).from != MemoryPlace::Pinned) continue;
    copies_pinned_ = true;
    if (static_cast<double>(detail.bytes) >= kLargeCopy)
      best = std::max(best, static_cast<double>(detail.bytes) / static_cast<double>(n.measured_ns));
  }
  if (best > 0) pinned_bytes_ns_ = best;
  learn_times();
}

// What calls of this trace take, by their kind.
void Editor::learn_times() {
  std::unordered_set<uint32_t> copies;  // calls that begin a copy of pinned memory
  std::vector<double> copy_calls, event_calls, launches;
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
    const CauseNode& n = graph_.nodes[node];
    if (n.kind == NodeKind::Copy && launched_by_[node] != node) {
      const CopyEnds ends = copy_ends(trace_.detail(n.detail).copy_kind);
      if (ends.from == MemoryPlace::Pinned || ends.to == MemoryPlace::Pinned) copies.insert(launched_by_[node]);
    }
    if (!runs_on_host(n.kind)) continue;
    const auto own = static_cast<double>(n.work_ns);
    if (n.kind == NodeKind::Launch) launches.push_back(own);
    const std::string_view name = trace_.name(n.name);
    if (n.kind == NodeKind::OtherCall && (name.find("EventRecord") != name.npos || name.find("WaitEvent") != name.npos)) event_calls.push_back(own);
  }
  for (const uint32_t call : copies) copy_calls.push_back(static_cast<double>(graph_.nodes[call].work_ns));
  // On an H200 a call that begins a copy of pinned memory takes 2.5 µs and one of events 0.75, where a launch takes 3.75.
  const double launch = launches.size() >= kFewestTimes ? median(std::move(launches)) : kUsualLaunch;
  copy_call_ns_ = std::llround(0.65 * launch), event_call_ns_ = std::llround(0.2 * launch);
  const auto usual = [this](const std::vector<double>& calls) { return static_cast<double>(calls.size()) >= std::max<double>(kFewestTimes, 0.5 * causes_.steps); };
  if (usual(copy_calls)) copy_call_ns_ = std::llround(median(std::move(copy_calls)));
  if (usual(event_calls)) event_call_ns_ = std::llround(median(std::move(event_calls)));
  event_call_ns_ += graph_.around_call_ns;
}

void Editor::refuse(const Edit& edit, const std::string& reason) const { throw Failure("\"" + edit.text + "\": " + reason); }

// What has work or a delay, most first.
std::vector<const PathGroup*> Editor::most_work() const {
  std::vector<std::pair<double, const PathGroup*>> by_work;
  for (const PathGroup& group : groups_) {
    double work = 0;
    for (const auto& [node, share] : group.nodes) work += static_cast<double>(graph_.nodes[node].work_ns) * static_cast<double>(share);
    for (const uint32_t edge : group.edges)
      if (graph_.edges[edge].lag > 0) work += static_cast<double>(graph_.edges[edge].lag);
    if (work > 0) by_work.emplace_back(-work, &group);
  }
  std::ranges::stable_sort(by_work, {}, [](const auto& one) { return one.first; });
  std::vector<const PathGroup*> groups;
  for (const auto& [work, group] : by_work) groups.push_back(group);
  return groups;
}

// Names for a message.
std::string Editor::some_names() const {
  size_t left = 8;
  std::string names;
  for (const PathGroup* group : most_work())
    if (group->kind != GroupKind::Line && left > 0) names += (names.empty() ? "" : ", ") + shortened(group->name, 40), --left;
  return names;
}

bool Editor::changes_a_step(const std::string& text) const try {
  const std::vector<Edit> edits = parse_edits(text);
  const Timing before = measured_timing(graph_);
  Timing timing = before;
  for (const Edit& edit : edits) apply(edit, timing);
  return edits.size() == 1 && (timing.work_ns != before.work_ns || timing.lag != before.lag);
} catch (const Failure&) {
  return false;
}

// The groups of a kind with most work, faster and gone. Calls have edits as a kind of work.
std::vector<EditOffer> Editor::offers_of(GroupKind kind) const {
  constexpr size_t kMost = 5;
  std::vector<EditOffer> offers;
  for (const PathGroup* group : most_work()) {
    const bool calls = !group->nodes.empty() && runs_on_host(graph_.nodes[group->nodes[0].node].kind) && graph_.nodes[group->nodes[0].node].kind != NodeKind::CpuOp;
    if (group->kind != kind || (kind == GroupKind::Op && calls) || (kind == GroupKind::Cause && !own_edit(group->cause).empty())) continue;
    const bool ambiguous = kind != GroupKind::Op && std::ranges::any_of(groups_, [&](const PathGroup& other) { return other.kind != kind && matches(group->name, other.name); });
    const std::string name = (ambiguous ? std::string(group_kind_name(kind)) + " " : std::string()) + group->name;
    if (!changes_a_step(name + " /2")) continue;
    for (const std::string& text : {name + " /2", name + " gone"}) offers.push_back({edits_phrase(text), text});
    if (offers.size() >= 2 * kMost) break;
  }
  return offers;
}

std::vector<EditOffers> Editor::offers() const {
  constexpr size_t kMostRanksNamed = 8;
  std::set<int> ranks;
  for (const CauseNode& node : graph_.nodes)
    if (node.rank >= 0) ranks.insert(node.rank);
  std::vector<EditOffers> all{{kProgram, {}}, {"One rank or more ranks", {}}, {"One op", offers_of(GroupKind::Op)}, {"One kind of work", offers_of(GroupKind::Cause)}, {kMachine, {}}};
  const auto add = [&](const std::string& title, const std::string& text) {
    if (changes_a_step(text)) std::ranges::find(all, title, &EditOffers::title)->offers.push_back({edits_phrase(text), text});
  };
  for (const Form& form : kForms)
    if (form.title) add(form.title, std::string(form.text));
  if (ranks.size() > 1 && ranks.size() <= kMostRanksNamed)
    for (const int rank : ranks) add(all[1].title, "rank " + std::to_string(rank) + " on time");
  add(all[1].title, std::to_string(2 * ranks.size()) + " ranks");
  std::erase_if(all, [](const EditOffers& one) { return one.offers.empty(); });
  return all;
}

// Each completes "What if …".
std::vector<EditOffer> Editor::general_offers_for(const CauseNode& node) const {
  if (allocates(node.kind)) return {{"no call allocated memory", edit_kind_name(EditKind::NoAllocator)}};
  if (node.kind == NodeKind::Wait) return {{"there was no sync", edit_kind_name(EditKind::NoWaits)}};
  if (node.kind == NodeKind::DataWait) return {{"the loader was always ready", edit_kind_name(EditKind::LoaderReady)}};
  if (node.kind == NodeKind::Launch) return {{"one graph launch started each step", edit_kind_name(EditKind::OneGraph)}};
  if (node.kind != NodeKind::Kernel || node.meaning != Meaning::Communication || node.rank < 0) return {};
  const std::string rank = "rank " + std::to_string(node.rank);
  return {{rank + " was on time", rank + " on time"}};
}

std::vector<EditOffer> Editor::offers_for(const Track& track, const Span& span) const {
  const auto like = std::ranges::find_if(graph_.nodes, [&](const CauseNode& node) {
    return node.kind != NodeKind::Meeting && node.name == span.name && node.op == span.op && node.rank == track.rank && runs_on_host(node.kind) != on_gpu(track);
  });
  if (like == graph_.nodes.end()) return {};
  const auto at = static_cast<uint32_t>(like - graph_.nodes.begin());
  std::vector<EditOffer> offers = general_offers_for(*like);
  for (const GroupKind kind : {GroupKind::Op, GroupKind::Module, GroupKind::Line})
    for (const PathGroup& group : groups_) {
      if (group.kind != kind || std::ranges::none_of(group.nodes, [at](const auto& one) { return one.node == at && one.share >= 1; })) continue;
      const std::string name = std::string(group_kind_name(kind)) + " " + group.name, words = kind == GroupKind::Op ? shortened(group.name, 40) : shortened(name, 40);
      const NodeKind what = like->kind;
      if (allocates(what)) continue;  // a program that makes no such call makes none of any op
      if (what == NodeKind::Wait) offers.push_back({words + " made no sync", "no sync " + name});
      if (what == NodeKind::Copy || what == NodeKind::CopyCall) offers.push_back({words + " used pinned memory", "copies pinned " + name}), offers.push_back({words + " overlapped with other work", "copies overlapped " + name});
      offers.push_back({words + " took no time", name + " gone"}), offers.push_back({words + " took half the time", name + " /2"});
    }
  std::erase_if(offers, [this](const EditOffer& offer) { return !changes_a_step(offer.text); });
  return offers;
}

// A name names an op, a module, a line or a cause, in this order, unless the word before it says which. Several names of
// one kind match a pattern with *.
std::vector<const PathGroup*> Editor::named(const Edit& edit) const {
  std::string name = edit.name;
  std::optional<GroupKind> only;
  for (const GroupKind kind : {GroupKind::Op, GroupKind::Line, GroupKind::Module, GroupKind::Cause})
    if (const auto rest = after(name, group_kind_name(kind)); rest && !rest->empty()) only = kind, name = *rest;
  for (const bool begins : {false, true})
    for (const GroupKind kind : {GroupKind::Op, GroupKind::Module, GroupKind::Line, GroupKind::Cause}) {
      if (only && kind != *only) continue;
      std::vector<const PathGroup*> found;
      for (const PathGroup& group : groups_)
        if (group.kind == kind && matches(begins ? name + "*" : name, group.name)) found.push_back(&group);
      if (!found.empty()) return found;
    }
  refuse(edit, "no " + std::string(only ? group_kind_name(*only) : "op, module, line or cause") + " is called " + name + ". There are " + some_names() + ".");
}

std::string Editor::other_meaning(const Edit& edit) const {
  if (edit.name.empty() || edit.name.find('*') != std::string::npos) return {};
  const PathGroup* const meant = named(edit).front();
  if (!matches(edit.name, meant->name)) return {};
  for (const PathGroup& other : groups_)
    if (other.kind != meant->kind && other.kind != GroupKind::Cause && matches(edit.name, other.name)) {
      const std::string first = group_kind_name(meant->kind), second = group_kind_name(other.kind);
      return "“" + edit.name + "” is the " + first + " here. Write “" + second + " " + edit.name + "” for the " + second + ", which has all calls and kernels inside of it.";
    }
  return {};
}

// Its work and delays on one rank.
PathGroup Editor::of_rank(const PathGroup& group, int rank) const {
  PathGroup part = group;
  std::erase_if(part.nodes, [&](const auto& one) { return graph_.nodes[one.node].rank != rank; });
  std::erase_if(part.edges, [&](uint32_t edge) {
    const auto event = static_cast<EventId>(std::ranges::upper_bound(graph_.first_edge, edge) - graph_.first_edge.begin() - 1);
    return graph_.nodes[event / 2].rank != rank;
  });
  return part;
}

std::vector<PathGroup> Editor::selected(const Edit& edit) const {
  std::vector<PathGroup> groups;
  for (const PathGroup* group : named(edit)) groups.push_back(edit.rank < 0 ? *group : of_rank(*group, edit.rank));
  return groups;
}

void Editor::make_free(const PathGroup& group, Timing& timing) const {
  const bool call = group.kind == GroupKind::Cause && group.cause.cause != PathCause::Work;
  for (const auto& [node, share] : group.nodes) {
    if (call && runs_on_host(graph_.nodes[node].kind) && graph_.nodes[node].kind != NodeKind::DataWait)
      drop_call(node, timing);
    else
      scale_work(graph_, timing, node, 0, static_cast<double>(share));
  }
  for (const uint32_t edge : group.edges) {
    const EdgeKind kind = graph_.edges[edge].kind;
    if (kind == EdgeKind::Arrival || kind == EdgeKind::QueueFull) timing.lag[edge] = kNoLag;
    else if (timing.lag[edge] != kNoLag) timing.lag[edge] = std::min<int64_t>(0, timing.lag[edge]);
  }
}

size_t Editor::faster(const Edit& edit, Timing& timing) const {
  if (edit.name.empty()) return work_of_rank(edit.rank, edit.factor, timing);
  size_t changed = 0;
  for (const PathGroup& group : selected(edit)) {
    for (const auto& [node, share] : group.nodes) scale_work(graph_, timing, node, edit.factor, static_cast<double>(share)), ++changed;
    for (const uint32_t edge : group.edges)
      if (timing.lag[edge] > 0) timing.lag[edge] = std::llround(static_cast<double>(timing.lag[edge]) * edit.factor), ++changed;
  }
  return changed;
}

size_t Editor::gone(const Edit& edit, Timing& timing) const {
  if (edit.name.empty()) return work_of_rank(edit.rank, 0, timing);
  size_t changed = 0;
  const std::vector<PathGroup> groups = selected(edit);
  for (const PathGroup& group : groups) make_free(group, timing), changed += group.nodes.size() + group.edges.size();
  for (const PathGroup& group : groups)
    for (const auto& [node, share] : group.nodes)
      if (runs_on_host(graph_.nodes[node].kind)) drop_call(node, timing);
  return changed;
}

void Editor::apply(const Edit& edit, Timing& timing) const {
  size_t changed = 0;
  const auto each_of = [&](NodeKind kind, auto change) {
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
      if (graph_.nodes[node].kind == kind && (edit.rank < 0 || graph_.nodes[node].rank == edit.rank)) change(node), ++changed;
  };
  switch (edit.kind) {
    case EditKind::Faster:
      changed = faster(edit, timing);
      break;
    case EditKind::Gone:
      changed = gone(edit, timing);
      break;
    case EditKind::NoWaits:
      if (edit.name.empty()) each_of(NodeKind::Wait, [&](uint32_t node) { drop_call(node, timing); });
      else changed = without_waits(selected(edit), timing);
      break;
    case EditKind::NoAllocator:
      for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
        if (allocates(graph_.nodes[node].kind)) drop_call(node, timing), ++changed;
      break;
    case EditKind::PinnedCopies:
      changed = pinned(copies(edit), timing);
      break;
    case EditKind::OverlappedCopies:
      changed = overlapped(copies(edit), timing);
      break;
    case EditKind::OneGraph:
      changed = one_graph(timing);
      break;
    case EditKind::FusedWithNext:
      changed = fuse(selected(edit), timing);
      break;
    case EditKind::LoaderReady:
      each_of(NodeKind::DataWait, [&](uint32_t node) { timing.work_ns[node] = std::min(timing.work_ns[node], copies_pinned_ ? kHandOverPinned : kHandOver); });
      break;
    case EditKind::RankOnTime:
      changed = work_of_rank(edit.rank, 0, timing);
      break;
    case EditKind::OtherRanks:
      changed = other_ranks(edit.rank, timing);
      break;
    case EditKind::FastHost:
      changed = fast_host(timing);
      break;
    case EditKind::FastGpu:
      if (std::ranges::none_of(graph_.nodes, [](const CauseNode& node) { return runs_on_host(node.kind); }))
        refuse(edit, "the trace has no calls of these steps, so nothing says how long the host takes.");
      changed = fast_gpu(timing);
      break;
  }
  if (changed == 0) refuse(edit, "the steps of this run have nothing that this edit could change.");
}

// The time between this call and the one before it; null without one.
int64_t* Editor::time_before(uint32_t node, Timing& timing) const {
  for (uint32_t e = graph_.first_edge[start_of(node)]; e < graph_.first_edge[start_of(node) + 1]; ++e)
    if (graph_.edges[e].kind == EdgeKind::HostOrder && timing.lag[e] != kNoLag) return &timing.lag[e];
  return nullptr;
}

// The call is not made: it takes no time and waits for nothing. Of the short times before and after it the shorter one stays: the
// rest is spent for the call and its recording. A long time is the program's own work.
void Editor::drop_call(uint32_t node, Timing& timing) const {
  constexpr int64_t kShort = 5000;
  drop_waits(graph_, timing, node);
  timing.work_ns[node] = 0;
  int64_t* before = time_before(node, timing);
  if (!before) return;
  const uint32_t next = next_in_row_[node];
  int64_t* after = next == node ? nullptr : time_before(next, timing);
  const bool short_after = after && *after > 0 && *after < kShort;
  if (*before >= kShort) *before -= graph_.around_call_ns;
  else if (short_after) *before = std::max<int64_t>(0, *before + std::exchange(*after, 0) - graph_.around_call_ns);
  else if (*before > 0 && after && *after >= kShort) *before = 0;
}

// The call takes no time and waits for nothing, after the edits before this one.
bool Editor::is_dropped(uint32_t node, const Timing& timing) const {
  if (timing.work_ns[node] != 0) return false;
  for (uint32_t e = graph_.first_edge[end_of(node)]; e < graph_.first_edge[end_of(node) + 1]; ++e)
    if (is_wait(graph_.edges[e].kind) && timing.lag[e] != kNoLag) return false;
  return true;
}

// The call of a wait goes; other calls stay and wait no more. Returns how many waits there were.
size_t Editor::without_waits(const std::vector<PathGroup>& groups, Timing& timing) const {
  size_t waits = 0;
  for (const PathGroup& group : groups)
    for (const auto& [node, share] : group.nodes) {
      if (graph_.nodes[node].kind == NodeKind::Wait) drop_call(node, timing), ++waits;
      else waits += drop_waits(graph_, timing, node);
    }
  return waits;
}

// Calls that copy from or to the host: their data is another one in each step.
std::unordered_set<uint32_t> Editor::calls_that_copy_with_the_host() const {
  std::unordered_set<uint32_t> calls;
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
    if (graph_.nodes[node].kind != NodeKind::Copy) continue;
    const CopyEnds ends = copy_ends(trace_.detail(graph_.nodes[node].detail).copy_kind);
    if (on_host(ends.from) || on_host(ends.to)) calls.insert(launched_by_[node]);
  }
  return calls;
}

// The first launch of each step stands for all of them; the other launches and the copies on the GPU are nodes of the graph. The
// program's work between them goes too, where no other call stays there.
size_t Editor::one_graph(Timing& timing) const {
  const std::unordered_set<uint32_t> outside = calls_that_copy_with_the_host();
  std::map<uint32_t, std::vector<uint32_t>> chains;
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
    if (const NodeKind kind = graph_.nodes[node].kind; kind == NodeKind::Launch || (kind == NodeKind::CopyCall && !outside.contains(node)))
      chains[graph_.nodes[node].row].push_back(node);
  size_t changed = 0;
  for (const auto& [row, chain] : chains) changed += graph_in_chain(chain, timing);
  return changed;
}

size_t Editor::graph_in_chain(const std::vector<uint32_t>& chain, Timing& timing) const {
  const auto step_of = [&](uint32_t node) { return std::ranges::upper_bound(causes_.marks, graph_.nodes[node].start) - causes_.marks.begin(); };
  size_t changed = 0;
  std::unordered_set<uint32_t> in_graph;  // calls that are not made
  for (size_t i = 1; i < chain.size(); ++i) {
    if (step_of(chain[i]) != step_of(chain[i - 1])) continue;
    ++changed;
    bool alone = true;  // no call between the two stays
    for (uint32_t node = next_in_row_[chain[i - 1]]; alone && node != chain[i]; node = next_in_row_[node]) alone = is_dropped(node, timing);
    if (alone) {
      drop_waits(graph_, timing, chain[i]);
      timing.work_ns[chain[i]] = 0;
      for (uint32_t node = chain[i - 1]; node != chain[i];)
        if (int64_t* before = time_before(node = next_in_row_[node], timing)) *before = 0;
    } else {
      drop_call(chain[i], timing);
    }
    in_graph.insert(chain[i]);
  }
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
    if (in_graph.contains(launched_by_[node]))
      for (uint32_t e = graph_.first_edge[start_of(node)]; e < graph_.first_edge[start_of(node) + 1]; ++e)
        if (graph_.edges[e].kind == EdgeKind::StreamOrder) timing.lag[e] = std::min(timing.lag[e], causes_.graph_gap_ns);
  return changed;
}

// All of them, or those that belong to the name: the copy does, or its call.
std::vector<uint32_t> Editor::copies(const Edit& edit) const {
  std::unordered_set<uint32_t> wanted;
  if (!edit.name.empty())
    for (const PathGroup& group : selected(edit))
      for (const auto& [node, share] : group.nodes) wanted.insert(node);
  std::vector<uint32_t> found;
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
    const CauseNode& n = graph_.nodes[node];
    const bool named = edit.name.empty() ? edit.rank < 0 || n.rank == edit.rank : wanted.contains(node) || wanted.contains(launched_by_[node]);
    if (n.kind == NodeKind::Copy && named) found.push_back(node);
  }
  return found;
}

size_t Editor::pinned(const std::vector<uint32_t>& copies, Timing& timing) const {
  size_t changed = 0;
  for (const uint32_t node : copies) {
    const CauseNode& n = graph_.nodes[node];
    const CopyEnds ends = copy_ends(trace_.detail(n.detail).copy_kind);
    if (ends.from != MemoryPlace::Pageable && ends.to != MemoryPlace::Pageable) continue;
    const auto bytes = static_cast<double>(trace_.detail(n.detail).bytes);
    timing.work_ns[node] = std::min<int64_t>(timing.work_ns[node], kCopyStart + std::llround(bytes / pinned_bytes_ns_));
    if (const uint32_t call = launched_by_[node]; call != node) {
      if (timing.work_ns[call] > 0) timing.work_ns[call] = std::min(graph_.nodes[call].measured_ns, copy_call_ns_);
      if (ends.from == MemoryPlace::Pageable) {
        drop_waits(graph_, timing, call);
        timing.work_ns[call] += causes_.pinned_copy_calls * event_call_ns_;
      }
    }
    ++changed;
  }
  return changed;
}

// The copies have a stream of their own, and the data of a step is there when it begins.
size_t Editor::overlapped(const std::vector<uint32_t>& copies, Timing& timing) const {
  for (const uint32_t node : copies) {
    timing.work_ns[node] = 0;
    without_gap_before(node, timing);
    if (launched_by_[node] != node) drop_waits(graph_, timing, launched_by_[node]);
  }
  return copies.size();
}

void Editor::without_gap_before(uint32_t node, Timing& timing) const {
  for (uint32_t e = graph_.first_edge[start_of(node)]; e < graph_.first_edge[start_of(node) + 1]; ++e)
    if (graph_.edges[e].kind == EdgeKind::StreamOrder) timing.lag[e] = std::min<int64_t>(0, timing.lag[e]);
}

// Both kernels keep their time; the launch of the second one goes, and so does the gap between them.
size_t Editor::fuse(const std::vector<PathGroup>& groups, Timing& timing) const {
  size_t changed = 0;
  for (const PathGroup& group : groups)
    for (const auto& [node, share] : group.nodes) {
      if (graph_.nodes[node].kind != NodeKind::Kernel || next_in_row_[node] == node) continue;
      const uint32_t next = next_in_row_[node];
      without_gap_before(next, timing);
      if (launched_by_[next] != next) drop_call(launched_by_[next], timing);
      for (uint32_t e = graph_.first_edge[start_of(next)]; e < graph_.first_edge[start_of(next) + 1]; ++e)
        if (graph_.edges[e].kind == EdgeKind::Launch) timing.lag[e] = kNoLag;
      ++changed;
    }
  return changed;
}

// Its own work takes this part of its time; transfers stay. Without time, it is never the last one to arrive.
size_t Editor::work_of_rank(int rank, double factor, Timing& timing) const {
  const auto shorter = [factor](int64_t ns) { return std::llround(factor * static_cast<double>(ns)); };
  size_t changed = 0;
  for (EventId to = 0; to + 1 < graph_.first_edge.size(); ++to) {
    if (graph_.nodes[to / 2].rank != rank || graph_.nodes[to / 2].kind == NodeKind::Meeting) continue;
    if (to == start_of(to / 2)) timing.work_ns[to / 2] = shorter(timing.work_ns[to / 2]), ++changed;
    for (uint32_t e = graph_.first_edge[to]; e < graph_.first_edge[to + 1]; ++e)
      if (graph_.edges[e].kind != EdgeKind::Transfer && timing.lag[e] > 0) timing.lag[e] = shorter(timing.lag[e]);
  }
  return changed;
}

namespace {

// Times before and after an edit that belong together. Between two of them, time passes evenly.
class TimeMap {
 public:
  void add(TimeNs before, TimeNs after) { points_.emplace_back(before, after); }
  void sort() {
    std::ranges::sort(points_);
    std::vector<std::pair<TimeNs, TimeNs>> rising;
    for (const auto& point : points_)
      if (rising.empty() || (point.first > rising.back().first && point.second >= rising.back().second)) rising.push_back(point);
    points_ = std::move(rising);
  }
  TimeNs after(TimeNs before) const {
    const auto next = std::ranges::upper_bound(points_, before, {}, [](const auto& point) { return point.first; });
    if (points_.empty()) return before;
    if (next == points_.begin()) return next->second - (next->first - before);
    const auto last = next - 1;
    if (next == points_.end()) return last->second + (before - last->first);
    const double share = static_cast<double>(before - last->first) / static_cast<double>(next->first - last->first);
    return last->second + std::llround(share * static_cast<double>(next->second - last->second));
  }

 private:
  std::vector<std::pair<TimeNs, TimeNs>> points_;
};

}  // namespace

void fit_between_meetings(const CauseGraph& graph, int rank, const std::vector<TimeNs>& before, std::vector<TimeNs>& times) {
  TimeMap map;
  const auto of_rank = [&](uint32_t node) { return graph.nodes[node].rank == rank && graph.nodes[node].kind != NodeKind::Meeting; };
  for (uint32_t node = 0; node < graph.nodes.size(); ++node)
    for (uint32_t e = graph.first_edge[end_of(node)]; of_rank(node) && e < graph.first_edge[end_of(node) + 1]; ++e)
      if (graph.edges[e].kind == EdgeKind::Transfer) map.add(before[graph.edges[e].from], times[graph.edges[e].from]), map.add(before[end_of(node)], times[end_of(node)]);
  map.sort();
  for (uint32_t node = 0; node < graph.nodes.size(); ++node)
    for (const EventId event : {start_of(node), end_of(node)})
      if (of_rank(node)) times[event] = map.after(before[event]);
}

// Each of n ranks in a ring sends (n - 1) / n of the bytes, so transfers grow with this share. A rank alone has none. The last rank
// to arrive comes as late as now.
size_t Editor::other_ranks(int count, Timing& timing) const {
  std::unordered_set<int> ranks;
  for (const CauseNode& node : graph_.nodes)
    if (node.rank >= 0) ranks.insert(node.rank);
  const auto share = [](double of) { return (of - 1) / of; };
  if (ranks.size() < 2) return 0;
  const double factor = share(count) / share(static_cast<double>(ranks.size()));
  size_t changed = 0;
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
    for (uint32_t e = graph_.first_edge[end_of(node)]; e < graph_.first_edge[end_of(node) + 1]; ++e) {
      if (graph_.edges[e].kind != EdgeKind::Transfer || timing.lag[e] == kNoLag) continue;
      scale_work(graph_, timing, node, factor), ++changed;
      if (count == 1) timing.lag[e] = kNoLag;
    }
  return changed;
}

// Waits for data stay: the loader has processes of its own.
size_t Editor::fast_host(Timing& timing) const {
  size_t changed = 0;
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
    if (runs_on_host(graph_.nodes[node].kind) && graph_.nodes[node].kind != NodeKind::DataWait) timing.work_ns[node] = 0, ++changed;
  for (size_t e = 0; e < graph_.edges.size(); ++e)
    if (graph_.edges[e].kind == EdgeKind::HostOrder && timing.lag[e] > 0) timing.lag[e] = 0;
  return changed;
}

size_t Editor::fast_gpu(Timing& timing) const {
  size_t changed = 0;
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
    if (!runs_on_host(graph_.nodes[node].kind)) scale_work(graph_, timing, node, 0), ++changed;
  for (size_t e = 0; e < graph_.edges.size(); ++e)
    if (graph_.edges[e].kind == EdgeKind::StreamOrder && timing.lag[e] > 0) timing.lag[e] = 0;
  return changed;
}

}  // namespace ws::prof
