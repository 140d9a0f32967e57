// Makes one run of the runs that the ranks of a program left: a file for each rank, or a joined file for each host.
#pragma once
#include <string>
#include <vector>

#include "profiling/base/launched_rank.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

struct RankOfFile {
  int rank = -1;  // the lowest one; -1: the file does not say that it is of one rank among several
  int ranks = 0;  // of the program
  int restart = 0;  // how often the launcher had started all ranks anew
  std::vector<int> held;  // all ranks of this file, in order: several if it was joined before
};
// Reads only the begin of a file. Throws Failure if it cannot be read.
RankOfFile rank_of_file(const std::string& path);

// True if each file is of other ranks, and all are of programs with the same number of ranks. False if a file cannot
// be read. If no trace says its rank, the names of the files do, such as "rank3.json" or "rank_3/trace.json".
bool ranks_of_one_program(const std::vector<std::string>& paths);

// Tracks get their rank and the group "rank 3 · GPU 0". Losses, memory and allocator calls belong to the lowest
// rank. Clocks of one host are one clock. The clock of another host follows from the ends of common collectives, as an
// offset and a drift; RunSummary::extra then has the remaining error (kClockErrorKey). A rank without a file is named
// in `problems` and has an empty track. A run that was joined before, as on another host, keeps its tracks and
// their common clock. Throws Failure if the runs are not ranks of one program.
RunData join_ranks(std::vector<RunData> ranks);

// Each folder is replaced by the traces and run files in it, in the order of their names. Throws Failure if it has none.
std::vector<std::string> with_files_of_folders(const std::vector<std::string>& paths);

// "rank 3", "ranks 0, 1", "ranks 0 to 7"
std::string ranks_text(const std::vector<int>& ranks);

// Reads the files, and the files of folders, and joins them. A single file is only read.
RunData import_ranks(const std::vector<std::string>& paths);
// Joins run files of any size: only one rank's blocks are in memory. `to` may be one of them.
void join_rank_files(const std::vector<std::string>& paths, const std::string& to);

// Keeps the problems of a joined run in its file.
void keep_rank_notes(RunData& joined);
// Notes in the summary which rank a run is, and by which clock its times count. `origin_ns`: that clock at trace time 0.
void keep_rank(RunSummary& summary, int rank, int ranks);
void keep_clock(RunSummary& summary, const std::string& clock, int64_t origin_ns);
// Notes these for a run of this process, whose trace time 0 was `origin_ns` on the steady clock.
void keep_origin(RunSummary& summary, const LaunchedRank& self, int64_t origin_ns);

inline constexpr const char* kClockKey = "clock";
inline constexpr const char* kClockOriginKey = "clock_origin_ns";
inline constexpr const char* kClockWidthKey = "clock_width_ns";  // uncertainty between host time and GPU time
inline constexpr const char* kWallClock = "wall";                // of any machine: equal only to some ms

}  // namespace ws::prof
