// A program that is recorded to its end, and all that its run file holds.
#pragma once
#include <optional>

#include "profiling/recording/record_program.h"
#include "profiling/run_file/run_file.h"

namespace ws::prof {

inline int exit_status(RecordedProgram& program) {
  std::optional<int> status;
  while (!status) status = program.wait(1000);
  return *status;
}

inline Trace whole_trace(RunFileReader& reader) {
  Trace trace = reader.trace();
  reader.fill(trace);
  return trace;
}

}  // namespace ws::prof
