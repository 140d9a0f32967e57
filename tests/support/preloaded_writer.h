// The process that writes a recording gets nothing of the program's environment. Where a test preloads something into all
// processes of a recording, a script that stands in for the writer does so, too.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>

#include "profiling/base/process.h"
#include "profiling/recording/record_environment.h"

namespace ws::test {

// `settings` with a variable that names the script, which is made at `script`. `writer`: the program that it starts.
inline Process::Environment with_writer(Process::Environment settings, const std::filesystem::path& script, const std::string& writer) {
  std::ofstream out(script);
  out << "#!/bin/sh\n";
  for (const auto& [key, value] : settings) out << "export " << key << "='" << value << "'\n";
  out << "exec '" << writer << "' \"$@\"\n";
  out.close();
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  settings[prof::kRecordWriter] = script;
  return settings;
}

}  // namespace ws::test
