// A file that is there whole or not at all: written under another name beside it, and only then given its own.
#pragma once
#include <filesystem>
#include <string>

#include "profiling/failure.h"

namespace ws::prof {

// `write` gets the name to write to, with the same ending. What was at `path` before stays when it throws.
template <class Write>
void write_whole_file(const std::string& path, const Write& write) {
  namespace fs = std::filesystem;
  const fs::path target(path);
  const std::string part = (target.parent_path() / (".part-" + target.filename().string())).string();
  std::error_code error;
  const auto clean = [&error](const std::string& file) {
    for (const char* name : {"", ".new"})  // a run file begins under a name of its own
      for (const char* suffix : {"", "-wal", "-shm", "-journal"}) fs::remove(file + name + suffix, error);
  };
  clean(part);
  try {
    write(part);
  } catch (const std::exception& problem) {
    clean(part);
    std::string said = problem.what();
    if (const size_t at = said.find(part); at != said.npos) said.replace(at, part.size(), path);
    throw Failure(said.find(path) != said.npos ? said : path + ": " + said);
  }
  for (const char* suffix : {"-wal", "-shm"}) fs::remove(path + suffix, error);  // of the database that it replaces
  fs::rename(part, target, error);
  if (!error) return;
  const std::string why = error.message();
  clean(part);
  throw Failure("Cannot write " + path + ": " + why + ".");
}

}  // namespace ws::prof
