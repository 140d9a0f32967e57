// The folder of a job that may run while the user is away. Beside its run file, the job writes its messages to files
// that only grow. A client that reconnects continues to read where it stopped.
//
//   RUNS/NAME.wsrun         RUNS/.jobs/NAME/job.json  now  news  log  curves.OFFSET  history  trace.OFFSET  control
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ws::app {

class JobFolder {
 public:
  JobFolder(std::string runs, const std::string& name);  // throws Failure if the name is not valid
  static JobFolder of(const std::string& path);          // from the path of the folder

  std::string path() const;
  std::string file(const char* name) const { return path() + "/" + name; }
  std::string run_file() const { return runs_ + "/" + name_ + ".wsrun"; }
  const std::string& runs() const { return runs_; }
  const std::string& name() const { return name_; }
  bool running() const;  // True if its process is alive

 private:
  std::string runs_, name_;
};

// True for a name of a run or a file that cannot lead out of its folder and is not hidden.
bool is_plain_name(const std::string& name);

// A file that only grows. Bytes that the disk does not take now are written later. It stops if too much is waiting.
// It keeps some disk space, so that the end of a job is written even if the job has filled the disk.
class Journal {
 public:
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  void add(const std::string& frames);

 private:
  std::string path_, waiting_;
  int file_ = -1;
  uint64_t written_ = 0;   // only complete frames
  uint64_t reserved_ = 0;  // up to this offset the disk has space
  bool too_slow_ = false;
};

// Keeps only the newest bytes, in pieces that begin with a frame. Offsets count from the very first byte.
class PieceJournal {
 public:
  PieceJournal(std::string folder, std::string name, uint64_t kept)
      : folder_(std::move(folder)), name_(std::move(name)), most_(kept) {}
  // Returns true if these frames begin a new piece.
  bool add(const std::string& frames);
  uint64_t newest() const { return begin_; }  // offset of the newest piece
  uint64_t oldest() const { return kept_.empty() ? begin_ : kept_.begin()->first; }
  // Returns the existing pieces: offset of the first byte → size.
  static std::map<uint64_t, uint64_t> pieces(const std::string& folder, const std::string& name);
  static std::string piece(const std::string& folder, const std::string& name, uint64_t offset);
  static void remove_all(const std::string& folder, const std::string& name);

 private:
  std::string folder_, name_;
  uint64_t most_, begin_ = 0, size_ = 0;  // begin_, size_: the newest piece
  std::map<uint64_t, uint64_t> kept_;
};

inline constexpr const char* kTracePieces = "trace";
inline constexpr const char* kCurvePieces = "curves";

// Writes a small file with the current state. The file stays unchanged if the disk is full.
void say_now(const JobFolder& job, const char* name, const std::string& frame);

// Requests to a running job, in order of arrival. Each is taken once, even if it was sent more than once.
void add_request(const JobFolder& job, const nlohmann::json& request);  // throws Failure
class JobRequests {
 public:
  explicit JobRequests(const JobFolder& job);
  std::vector<nlohmann::json> take();

 private:
  bool is_new(const nlohmann::json& request);
  std::string path_, bytes_;
  uint64_t at_ = 0;
  std::map<std::string, int64_t> taken_;  // the last number of each sender
};

}  // namespace ws::app
