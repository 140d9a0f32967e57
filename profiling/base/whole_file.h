// Files that are there whole or not at all: written under another name beside, and only then given their own.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace ws::prof {

// A file that is written piece by piece and lies on the disk after close(). Failures name it and the reason.
class SyncedFile {
 public:
  enum class Begin { Anew, AtEnd };
  explicit SyncedFile(std::string path, Begin begin = Begin::Anew);
  ~SyncedFile();
  SyncedFile(const SyncedFile&) = delete;
  SyncedFile& operator=(const SyncedFile&) = delete;
  void write(std::string_view bytes);
  void sync();  // what was written is on the disk
  void close();

 private:
  std::string path_;
  int handle_;
};

// `write` gets the name to write to, with the same ending. What was at `path` before stays when it throws. Throws Failure
// where another process writes the same file.
void write_whole_file(const std::string& path, const std::function<void(const std::string& part)>& write);
// The same for a file that the caller owns.
void replace_file(const std::string& path, const std::function<void(const std::string& part)>& write);
// What a write that will not come to its end has left beside `path`.
void remove_part_of(const std::string& path);
void write_whole(const std::string& path, std::string_view text);  // a pipe or device is written through
// The file that a path leads to through symbolic links. Throws Failure where it is a folder, a device or a pipe: those are
// never replaced.
std::string file_to_write(const std::string& path);
void check_writable(const std::string& path);  // throws Failure; before the work whose result goes there
bool is_part(const std::string& path);         // a name that `write` above was given
// For caches, which several processes may write at once: the last one wins, and a reader never sees half of a file.
// Makes the folder. False where nothing can be written.
bool write_shared(const std::string& path, std::string_view bytes);

}  // namespace ws::prof
