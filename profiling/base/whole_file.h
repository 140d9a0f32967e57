// Writes files that are either complete or absent: they are written under a temporary name beside the target, then
// renamed.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "profiling/base/file_identity.h"

namespace ws::prof {

// A file that is written piece by piece and is safely on disk after close(). Failures name the file and the reason.
class SyncedFile {
 public:
  enum class Begin { Anew, AtEnd };
  explicit SyncedFile(std::string path, Begin begin = Begin::Anew);
  ~SyncedFile();
  SyncedFile(const SyncedFile&) = delete;
  SyncedFile& operator=(const SyncedFile&) = delete;
  void write(std::string_view bytes);
  void sync();  // returns once everything written is on disk
  void close();

 private:
  std::string path_;
  int handle_;
};

// `write` gets the temporary name, which has the same ending as `path`. If it throws, the old file at `path` stays.
// Throws Failure if another process writes the same file, or if `path` has another file than the one found at the beginning of the
// work: a file that came meanwhile stays. Without `found`, any file is replaced.
void write_whole_file(const std::string& path, const std::function<void(const std::string& part)>& write, const std::optional<FoundFile>& found = {});
// Like write_whole_file(), for a file that the caller has already claimed.
void replace_file(const std::string& path, const std::function<void(const std::string& part)>& write, const std::optional<FoundFile>& found = {});
// Removes the temporary file that an interrupted write left beside `path`.
void remove_part_of(const std::string& path);
std::string whole_text(const std::string& path);  // empty if it cannot be read
void write_whole(const std::string& path, std::string_view text);  // pipes and devices are written directly
// Follows symbolic links to a file. Throws Failure if it is a folder, a device or a pipe, which are never replaced.
std::string file_to_write(const std::string& path);
void check_writable(const std::string& path);  // Throws Failure. Call it before the work whose result goes there.
bool is_part(const std::string& path);         // true for a temporary name, as passed to `write` above
// For caches that several processes may write at once: the last one wins, and readers never see a partial file. Creates
// the folder. Returns false if it cannot write.
bool write_shared(const std::string& path, std::string_view bytes);

}  // namespace ws::prof
