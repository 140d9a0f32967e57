// What a run file reader holds, shared by the parts that read rows and those that read the trace.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "profiling/base/failure.h"
#include "profiling/run_file/run_file.h"
#include "profiling/run_file/run_schema.h"

namespace ws::prof {

struct RunFileReader::Impl {
  explicit Impl(const std::string& path) : db(open_run(path)) {}

  void add_problem(std::string text) {
    for (auto& [known, times] : problems) {
      if (known == text) return void(++times);
    }
    if (problems.size() < 100) problems.emplace_back(std::move(text), 1);
  }

  // Runs a part of the reading; when the file is damaged there, says so and goes on with the rest.
  template <class Part>
  void guard(const char* what, Part part) {
    try {
      part();
    } catch (const Failure& failure) {
      add_problem(std::string(what) + ": " + failure.what());
    }
  }

  // Rows in order of id; when a damaged page stops us, the rows behind it are read from the other end.
  template <class Row>
  void each_row(const char* what, const std::string& table, const std::string& columns, Row row) {
    int64_t highest = std::numeric_limits<int64_t>::min();
    bool whole = false;
    guard(what, [&] {
      Statement query = db.prepare("SELECT id, " + columns + " FROM " + table + " ORDER BY id");
      for (; query.step(); row(query)) highest = query.integer(0);
      whole = true;
    });
    if (whole) return;
    guard(what, [&] {
      Statement query = db.prepare("SELECT id, " + columns + " FROM " + table + " ORDER BY id DESC");
      while (query.step() && query.integer(0) > highest) row(query);
    });
  }

  void read_header(const std::string& path);
  void read_tracks();
  void read_names();
  std::unordered_map<int64_t, std::vector<StoredBlock>> read_index();
  void read_sums(const std::string& bytes, SpanBlock& block);
  void add_stubs(Trace& trace);
  void add_points(Trace& trace);
  const StoredTrack* find(const Track& track) const;

  // Name and detail numbers of the file become those of the trace.
  struct Renumbering {
    std::vector<NameId> names;
    std::vector<DetailId> details;
  };
  Renumbering renumber(Trace& trace) const;
  static void put_in_order(std::vector<StoredRow>& list);
  void read_new_rows();
  int64_t key_of(int64_t stored_track, const SpanBlock& block);
  const std::vector<Span>& decoded(int64_t key);
  void renumber(Trace& trace, std::vector<Span>& spans, const Renumbering& to) const;
  std::vector<Span> gathered(const Track& track, size_t index, int64_t stored_track);
  bool read_block(Trace& trace, TrackId id, size_t index, int64_t stored_track, const Renumbering& to);
  size_t fill(Trace& trace, TimeNs begin, TimeNs end, size_t most);
  static size_t first_block(const Track& track, TimeNs begin);

  Database db;
  int64_t file_bytes = 0;
  MetaMap meta;
  RunSummary summary;
  Losses losses;
  std::vector<std::pair<std::string, int>> problems;  // and how often
  std::vector<std::string> names;
  std::vector<Detail> details;
  std::vector<OpInfo> ops{{}};
  std::vector<StoredTrack> tracks;
  std::unordered_map<int64_t, std::vector<StoredRow>> rows;     // by track
  std::deque<std::pair<int64_t, std::vector<Span>>> just_read;  // the newest few, by key and in the file's numbers
  Renumbering outline_to;                                       // of what outline() gave
  bool looked_again = false;
  int64_t summed = 0;                      // over all blocks of the trace
  std::unordered_set<int64_t> unreadable;  // damaged blocks are tried once
};

}  // namespace ws::prof
