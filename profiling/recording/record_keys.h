// Keys of RunSummary::extra in the file of a recorded program.
#pragma once

namespace ws::prof {

// The process that wrote a recording, as this_process() names it; empty: unknown.
inline constexpr const char* kRecordProcess = "process";
// Which recording a file is of, see recording_mark(): another file may be moved to its name.
inline constexpr const char* kRecordingKey = "recording";

// The recording levels.
inline constexpr const char* kTraceLevelKey = "record_trace";
inline constexpr const char* kTraceWindowKey = "record_window";
inline constexpr const char* kXrayTimeKey = "record_xray";
inline constexpr const char* kCapturesKey = "record_captures";  // "1": only capture ranges were recorded
inline constexpr const char* kCountersKey = "record_counters";  // "1": hardware counters were asked for
inline constexpr const char* kFolderKey = "record_folder";  // where the program was started
inline constexpr const char* kSourceKey = "source:";         // before a path: the text of code that is in no file
// Sentences on what this program, Python or PyTorch did not let us record.
inline constexpr const char* kCollectivesInGraphs = "program_collectives_in_graphs";
inline constexpr const char* kCollectivesUnseen = "program_collectives_unseen";
inline constexpr const char* kCollectivesUntimed = "program_collectives_untimed";
inline constexpr const char* kNeverCaptured = "program_captures";
inline constexpr const char* kMissingKeys[] = {kNeverCaptured, "program_lines", "program_ops", "program_memory", "program_log", kCollectivesInGraphs,
                                               kCollectivesUnseen, kCollectivesUntimed};
inline constexpr const char* kExitStatusKey = "exit_status";  // of a program that ended by exit()

}  // namespace ws::prof
