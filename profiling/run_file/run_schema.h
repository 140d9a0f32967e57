// Defines the tables of a run file, and converts the run summary to and from key/value rows.
#pragma once
#include <map>
#include <string>

#include "profiling/run_file/run_file.h"
#include "profiling/run_file/sqlite.h"

namespace ws::prof {

inline constexpr int kApplicationId = 0x57735275;  // "WsRu"

// A newer version may add tables, columns and keys. It must not change the meaning of existing ones: tracks.kind is a broad
// kind, which older versions know, and tracks.row_kind is the kind.
inline constexpr const char* kRunSchema = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE names(id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE details(id INTEGER PRIMARY KEY, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, static_shared,
  dynamic_shared, bytes, copy_kind TEXT);
CREATE TABLE ops(id INTEGER PRIMARY KEY, name TEXT, detail TEXT, layer TEXT, phase TEXT, meaning INTEGER, flops INTEGER, bytes INTEGER,
  stack INTEGER);
CREATE TABLE stacks(id INTEGER PRIMARY KEY, frames BLOB NOT NULL);
CREATE TABLE name_stacks(id INTEGER PRIMARY KEY, frames BLOB NOT NULL);
CREATE TABLE tracks(id INTEGER PRIMARY KEY, kind INTEGER, name TEXT, grp TEXT, depth INTEGER, rank INTEGER, row_kind INTEGER);
CREATE TABLE blocks(id INTEGER PRIMARY KEY, track INTEGER NOT NULL, idx INTEGER NOT NULL, first INTEGER NOT NULL,
  last INTEGER NOT NULL, count INTEGER NOT NULL, sums BLOB NOT NULL);
CREATE TABLE block_data(id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE counters(id INTEGER PRIMARY KEY, name TEXT, unit TEXT, kind INTEGER);
CREATE TABLE counter_data(id INTEGER PRIMARY KEY, counter INTEGER NOT NULL, first INTEGER, last INTEGER, count INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE memory_sources(id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE memory_data(id INTEGER PRIMARY KEY, first INTEGER, last INTEGER, count INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE allocation_data(id INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE metric_data(id INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE sampled_windows(id INTEGER PRIMARY KEY, begin INTEGER, "end" INTEGER, first_step INTEGER, end_step INTEGER, period INTEGER,
  samples INTEGER, dropped INTEGER, hidden INTEGER);
CREATE TABLE sampled_code(id INTEGER PRIMARY KEY, module INTEGER, function INTEGER, "offset" INTEGER, file INTEGER, line INTEGER);
CREATE TABLE sampled_functions(id INTEGER PRIMARY KEY, module INTEGER, function INTEGER, compute INTEGER, code BLOB NOT NULL, calls BLOB NOT NULL);
CREATE TABLE stalls(id INTEGER PRIMARY KEY, samples INTEGER);
CREATE TABLE metrics(id INTEGER PRIMARY KEY, step INTEGER, wall_s REAL, loss REAL, accuracy REAL);
CREATE TABLE evaluations(id INTEGER PRIMARY KEY, step INTEGER, epoch REAL, wall_s REAL, test_loss REAL, test_accuracy REAL);
CREATE TABLE marks(id INTEGER PRIMARY KEY, step INTEGER, wall_s REAL, text TEXT);
CREATE TABLE step_windows(id INTEGER PRIMARY KEY, first_step INTEGER, steps INTEGER, begin INTEGER, "end" INTEGER, matrix_ns INTEGER,
  pointwise_ns INTEGER, loss_ns INTEGER, optimizer_ns INTEGER, copy_ns INTEGER, allocation_ns INTEGER, sync_ns INTEGER,
  launch_ns INTEGER, idle_ns INTEGER, other_ns INTEGER, allocations INTEGER, frees INTEGER, communication_ns INTEGER,
  reduction_ns INTEGER);
)sql";

// Id of a block: blocks of one track follow each other.
inline int64_t block_id(int64_t track, int64_t index) { return track << 40 | index; }

// Id of a row of `stalls`: samples of one reason at one row of `sampled_code`.
inline int64_t stall_id(int64_t code, size_t reason) { return code << 8 | static_cast<int64_t>(reason); }

using MetaMap = std::map<std::string, std::string>;
MetaMap to_meta(const RunSummary& summary);
RunSummary from_meta(MetaMap meta);
MetaMap read_meta(Database& db);

Database open_run(const std::string& path);      // throws Failure if it is not a run file
int64_t claimed_bytes(const std::string& path);  // the size according to the header of the database

// Rows of blocks and tracks as stored in the file.
struct StoredBlock {
  int64_t key;
  TimeNs first, last;
  uint32_t count;
  std::string sums;
};
// Location of a block, sorted by `first`. `reach`: the greatest end of this block and all blocks before it.
struct StoredRow {
  TimeNs first, last;
  uint32_t count;
  int64_t key;
  TimeNs reach = 0;
};
struct StoredTrack {
  int64_t id;
  TrackKind kind;
  std::string name, group;
  int depth;
  int rank;
};

// Encodes the sums of a block and its first span, which are stored in the row of the block.
std::string pack_sums(const SpanBlock& block);
void unpack_sums(std::string_view bytes, SpanBlock& block);

}  // namespace ws::prof
