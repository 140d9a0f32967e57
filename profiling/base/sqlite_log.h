// The files that SQLite keeps beside a database while it is open, and after its writer was killed.
#pragma once
#include <cstdint>
#include <string>

#include "profiling/base/file_identity.h"

namespace ws::prof {

inline constexpr const char* kLogEndings[] = {"-wal", "-shm"};  // data that is not in the database yet, and its index

int64_t bytes_of_log(const std::string& path);  // of the data; 0 without a log
// The log that is beside a database now, to know it from one that takes its place.
class LogFile {
 public:
  explicit LogFile(std::string path);
  bool is_there() const;

 private:
  std::string path_;
  FileIdentity file_;
};
void remove_log(const std::string& path);
void move_log(const std::string& from, const std::string& to);
// The database with all that is beside it. What is not there is no failure.
void remove_database(const std::string& path);
void move_database(const std::string& from, const std::string& to);

}  // namespace ws::prof
