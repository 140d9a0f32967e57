#include "profiling/trace/thread_names.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

int64_t number_of(const Track& track) {
  const bool host = track.kind == TrackKind::Api || track.kind == TrackKind::Ranges || track.kind == TrackKind::CpuThread;
  return host && track.name.starts_with("thread ") ? number_in(track.name, -1) : -1;
}

// PyTorch runs the backward pass on a thread of its own. Most of its newest spans belong to that phase.
bool runs_backward(const Trace& trace, const Track& track) {
  if (track.blocks.empty()) return false;
  const auto backward = [&trace](const Span& span) { return span.op < trace.ops.size() && trace.ops[span.op].phase == "backward"; };
  const std::vector<Span>& spans = track.blocks.back().spans;
  return 2 * std::ranges::count_if(spans, backward) > std::ssize(spans);
}

}  // namespace

std::pair<std::string, int64_t> sampled_name(const Track& track) {
  const std::string thread = sampled_thread(track);
  const size_t space = thread.rfind(' ');
  const bool numbered = space != thread.npos && space + 1 < thread.size() && thread.find_first_not_of("0123456789", space + 1) == thread.npos;
  return numbered ? std::pair(thread.substr(0, space), number_in(thread.substr(space), -1)) : std::pair(thread, int64_t{-1});
}

ThreadNames::ThreadNames(const Trace& trace) {
  for (const Track& track : trace.tracks()) {
    if (track.spans == 0) continue;
    Threads& threads = ranks_[track.rank];
    if (track.kind == TrackKind::Samples)
      if (auto [name, number] = sampled_name(track); number >= 0) {
        if (name.starts_with("pt_autograd")) threads.backward.insert(number);
        threads.sampled[number] = std::move(name);
      }
    const int64_t number = number_of(track);
    if (number < 0) continue;
    threads.numbers.insert(number);
    if (runs_backward(trace, track)) threads.backward.insert(number);
  }
}

// Linux gives the main thread the lowest number.
std::string ThreadNames::of(const Track& track) const {
  const auto rank = ranks_.find(track.rank);
  if (rank == ranks_.end()) return {};
  const auto& [numbers, backward, sampled] = rank->second;
  const auto at = numbers.find(number_of(track));
  if (at == numbers.end()) return {};
  if (at == numbers.begin()) return "main";
  if (const auto found = backward.find(*at); found != backward.end()) {
    const auto before = std::distance(backward.begin(), found) - static_cast<int>(backward.contains(*numbers.begin()));
    return before > 0 ? "backward " + std::to_string(before + 1) : "backward";
  }
  const auto named = sampled.find(*at);
  if (named != sampled.end() && !named->second.empty()) return named->second;
  return "thread " + std::to_string(std::distance(numbers.begin(), at) + 1);
}

std::string ThreadNames::ranges(const Track& track) const {
  std::string name = of(track);
  if (name.empty()) name = "ranges";
  if (name == "main" || name.starts_with("backward")) name.insert(name.find_first_of(' ') == name.npos ? name.size() : name.find(' '), " thread");
  if (track.depth == 0) return name;
  return "inside " + name + (track.depth > 1 ? ", level " + std::to_string(track.depth) : "");
}

std::string ThreadNames::title(const Track& track) const {
  if (track.kind == TrackKind::Ranges) return ranges(track);
  const std::string name = track.kind == TrackKind::Api && track.depth == 0 ? of(track) : std::string();
  if (name.empty()) return track.name;
  return name == "main" ? "CUDA API" : "CUDA API · " + name;
}

std::string row_title(const Trace& trace, const Track& track) {
  const bool of_thread = track.kind == TrackKind::Ranges || track.kind == TrackKind::Api;
  return of_thread ? ThreadNames(trace).title(track) : track.name;
}

}  // namespace ws::prof
