#include "profiling/recording/process_files.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "profiling/base/failure.h"
#include "profiling/base/launched_rank.h"
#include "profiling/base/ownership.h"
#include "profiling/recording/record_program.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

bool works_on_gpu(const std::string& path) {
  const Trace trace = RunFileReader(path).outline();
  return std::ranges::any_of(trace.tracks(), [](const Track& track) { return (on_gpu(track) || times_collectives(track)) && track.spans > 0; });
}

// True if the program marked modules, ops, steps or losses: a launcher does not.
bool tells_of_itself(const std::string& path) {
  RunFileReader file(path);
  const Trace trace = file.outline();
  return !file.metrics().empty() || std::ranges::any_of(trace.tracks(), [](const Track& track) {
    return track.spans > 0 && (track.kind == TrackKind::Steps || track.name.ends_with(" ranges"));
  });
}

// True if the file is from a data loader worker.
bool loads_data(const std::string& path) { return read_run_summary(path).extra.contains("loader_worker"); }

std::vector<std::string> ranks_in(const std::vector<std::string>& files) {
  std::vector<std::string> ranks;
  for (const std::string& file : files) {
    try {
      if (rank_of_file(file).rank >= 0) ranks.push_back(file);
    } catch (const Failure&) {
    }
  }
  return ranks;
}

// A writer that was killed leaves its log and its claim beside the file.
void remove_run(const std::string& file) {
  std::error_code none;
  try {
    const Ownership claim(file);
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file + suffix, none);
  } catch (const Failure&) {  // nothing can be written in this folder
  }
}

// The other files go once the joined file is on disk.
void join(const std::vector<std::string>& ranks, const std::vector<std::string>& files, const std::string& to) {
  try {
    join_rank_files(ranks, to);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "warpscope: the files of the ranks stay apart: %s\n", problem.what());
    return;
  }
  for (const std::string& file : files)
    if (file != to) remove_run(file);
}

}  // namespace

std::string rank_text() {
  const LaunchedRank self = launched_rank();
  return self.rank < 0 ? "" : "rank " + std::to_string(self.rank) + " of " + std::to_string(self.ranks);
}

void fold_processes(const std::vector<std::string>& files) {
  std::vector<bool> works, loads, tells;
  for (const std::string& file : files) {
    if (is_still_written(file)) return;
    try {
      works.push_back(works_on_gpu(file));
      loads.push_back(loads_data(file));
      tells.push_back(!loads.back() && tells_of_itself(file));
    } catch (const Failure&) {  // do not remove an unreadable file
      works.resize(tells.size(), true), works.push_back(true);
      loads.resize(tells.size(), false), loads.push_back(false);
      tells.push_back(true);
    }
  }
  const bool any = std::ranges::any_of(works, std::identity{}), any_tells = std::ranges::any_of(tells, std::identity{});
  const auto stays = [&](size_t i) { return works[i] || (!any && (any_tells ? tells[i] : !loads[i])); };
  std::vector<std::string> kept, gone;
  for (size_t i = 0; i < files.size(); ++i) (stays(i) ? kept : gone).push_back(files[i]);
  if (kept.empty()) return;
  for (const std::string& file : gone) remove_run(file);
  const std::vector<std::string> ranks = ranks_in(kept);
  const bool launchers_only = !any || ranks.size() == kept.size();  // beside the ranks
  if (launchers_only && ranks_of_one_program(ranks)) return join(ranks, kept, files.front());
  std::error_code none;
  if (kept.front() != files.front()) std::filesystem::rename(kept.front(), files.front(), none);
}

}  // namespace ws::prof
