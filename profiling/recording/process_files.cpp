#include "profiling/recording/process_files.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>

#include "profiling/base/failure.h"
#include "profiling/base/file_identity.h"
#include "profiling/base/ownership.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/recording/claim_file.h"
#include "profiling/recording/record_keys.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

namespace fs = std::filesystem;

namespace {

bool works_on_gpu(const std::string& path) {
  const Trace trace = RunFileReader(path).outline();
  return std::ranges::any_of(trace.tracks(), [](const Track& track) { return (on_gpu(track) && track.spans > 0) || times_collectives(track); });
}

// True if the program marked modules, ops, steps or losses: a launcher does not.
bool describes_itself(const std::string& path) {
  RunFileReader file(path);
  const Trace trace = file.outline();
  return !file.metrics().empty() || std::ranges::any_of(trace.tracks(), [](const Track& track) {
    return track.spans > 0 && (track.kind == TrackKind::Steps || track.kind == TrackKind::Ranges);
  });
}

// True if the file is from a data loader worker.
bool loads_data(const std::string& path) { return read_run_summary(path).extra.contains("loader_worker"); }

using Identities = std::map<std::string, FileIdentity>;

// Removes a file, unless another one was moved to its name since we looked at it. A writer that was killed leaves its log and
// its claim beside the file.
void remove_run(const std::string& file, const Identities& known) {
  try {
    const Ownership claim(file);
    if (FileIdentity::of(file) == known.at(file)) remove_database(file);
  } catch (const Failure&) {  // nothing can be written in this folder
  }
}

// The other files go once the joined file is on disk. Returns false if they stay apart.
bool join(const std::vector<std::string>& ranks, const Identities& known, const std::string& to) {
  try {
    join_rank_files(ranks, to);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "warpsight: the files of the ranks stay apart: %s\n", problem.what());
    return false;
  }
  for (const std::string& file : ranks)
    if (file != to) remove_run(file, known);
  return true;
}

// Ranks of a program by how often the launcher had started them anew.
using Attempts = std::map<int, std::vector<std::string>>;

Attempts attempts_in(const std::vector<std::string>& files) {
  Attempts attempts;
  for (const std::string& file : files) {
    try {
      if (const RankOfFile rank = rank_of_file(file); rank.rank >= 0) attempts[rank.restart].push_back(file);
    } catch (const Failure&) {
    }
  }
  return attempts;
}

// A rank may have been killed before it recorded anything.
bool can_be_joined(const Attempts& attempts) {
  return !attempts.empty() && std::ranges::all_of(attempts, [&](const auto& attempt) {
    return ranks_of_one_program(attempt.second) || (attempts.size() > 1 && attempt.second.size() == 1);
  });
}

// Makes one run of each attempt. The last one gets the name that was asked for. Returns false if some files stay apart.
bool join_attempts(const Attempts& attempts, const std::vector<std::string>& launchers, const Identities& known, const std::string& wanted) {
  std::string newest;
  for (const auto& [restart, files] : attempts) {
    newest = attempts.size() == 1 ? wanted : files.front();
    if (newest == wanted && files.size() > 1 && attempts.size() > 1) newest = files[1];
    if (files.size() > 1 && !join(files, known, newest)) return false;
  }
  for (const std::string& file : launchers)
    if (file != newest) remove_run(file, known);
  if (newest == wanted) return true;
  const std::string aside = newest + ".aside";
  move_database(wanted, aside), move_database(newest, wanted), move_database(aside, newest);
  return true;
}

// Returns the process number in the name of a file beside `path`, or 0 if it has none.
int64_t process_in_name(const std::string& path, const std::string& file) {
  const std::string begin = fs::path(stem_of(path)).filename().string() + ".";
  if (!file.starts_with(begin) || !file.ends_with(kRunEnding) || file.size() <= begin.size() + kRunEnding.size()) return 0;
  const std::string middle = file.substr(begin.size(), file.size() - begin.size() - kRunEnding.size());
  const size_t digits = middle.find_first_not_of("0123456789");
  const bool again = digits != std::string::npos && middle[digits] == '-' && digits + 1 < middle.size() &&
                     middle.find_first_not_of("0123456789", digits + 1) == std::string::npos;
  if (digits == 0 || (digits != std::string::npos && !again)) return 0;
  return std::strtoll(middle.c_str(), nullptr, 10);
}

}  // namespace

bool holds_something(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none) && fs::file_size(path, none) != 0;
}

bool is_still_written(const std::string& path) { return holds_something(path) && !owner_of(path).empty(); }

std::string recording_mark(const std::string& follower) { return fs::path(follower).parent_path().filename().string(); }

bool is_of_recording(const std::string& path, const std::string& mark) {
  try {
    return holds_something(path) && read_run_summary(path).said(kRecordingKey) == mark;
  } catch (const std::exception&) {  // no run file
    return false;
  }
}

std::vector<std::string> further_files(const std::string& path) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path(), none))
    if (const int64_t process = process_in_name(path, entry.path().filename().string()); process > 0)
      found.emplace_back(process, entry.path().string());
  std::ranges::sort(found);
  std::vector<std::string> files;
  for (auto& [process, file] : found) files.push_back(std::move(file));
  return files;
}

void fold_processes(const std::vector<std::string>& files) {
  std::vector<bool> works, loads, describes;
  Identities known;
  for (const std::string& file : files) {
    if (is_still_written(file)) return;
    known[file] = FileIdentity::of(file);
    try {
      works.push_back(works_on_gpu(file));
      loads.push_back(loads_data(file));
      describes.push_back(!loads.back() && describes_itself(file));
    } catch (const Failure&) {  // do not remove an unreadable file
      works.resize(describes.size(), true), works.push_back(true);
      loads.resize(describes.size(), false), loads.push_back(false);
      describes.push_back(true);
    }
  }
  const bool any = std::ranges::any_of(works, std::identity{}), any_describes = std::ranges::any_of(describes, std::identity{});
  const auto stays = [&](size_t i) { return works[i] || (!any && (any_describes ? describes[i] : !loads[i])); };
  std::vector<std::string> kept, gone;
  for (size_t i = 0; i < files.size(); ++i) (stays(i) ? kept : gone).push_back(files[i]);
  if (kept.empty()) return;
  for (const std::string& file : gone) remove_run(file, known);
  const Attempts attempts = attempts_in(kept);
  std::vector<std::string> launchers = kept;
  for (const auto& [restart, ranks] : attempts)
    std::erase_if(launchers, [&](const std::string& file) { return std::ranges::find(ranks, file) != ranks.end(); });
  if ((!any || launchers.empty()) && can_be_joined(attempts) && join_attempts(attempts, launchers, known, files.front())) return;
  std::error_code none;
  const auto left = std::ranges::find_if(kept, [&](const std::string& file) { return fs::exists(file, none); });
  if (left != kept.end() && !fs::exists(files.front(), none)) move_database(*left, files.front());
}

}  // namespace ws::prof
