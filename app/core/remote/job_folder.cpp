#include "app/core/remote/job_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/base/ownership.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kJobs = ".jobs";
constexpr size_t kMostWaiting = 64u << 20;         // bytes kept while the disk is full
constexpr uint64_t kPiece = 256u << 10;
constexpr uint64_t kLastWords = 128u << 10, kReserve = 2 * kLastWords;  // disk space that a journal keeps for its end

// Appends all or nothing.
bool append_whole(int file, uint64_t at, std::string_view bytes) {
  const ssize_t went = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
  if (went == static_cast<ssize_t>(bytes.size())) return true;
  return ftruncate(file, static_cast<off_t>(at)) != 0 && false;
}

// Takes disk space for what is appended later, so that it still goes there when the disk is full. Where the file system
// cannot do that, there is none.
uint64_t reserved_after(int file, uint64_t size) {
  return fallocate(file, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size), kReserve) == 0 ? size + kReserve : size;
}

}  // namespace

bool is_plain_name(const std::string& name) {
  constexpr size_t kMostBytes = 200;
  const auto refused = [](unsigned char c) { return c < ' ' || c == 0x7f || c == '/'; };
  return !name.empty() && name.size() <= kMostBytes && name[0] != '.' && std::ranges::none_of(name, refused);
}

JobFolder::JobFolder(std::string runs, const std::string& name) : runs_(std::move(runs)), name_(name) {
  if (!is_plain_name(name)) throw Failure("\"" + name + "\" cannot be the name of a run.");
}

JobFolder JobFolder::of(const std::string& path) {
  const fs::path folder(path);
  return {folder.parent_path().parent_path().string(), folder.filename().string()};
}

std::string JobFolder::path() const { return runs_ + "/" + kJobs + "/" + name_; }

bool JobFolder::running() const { return !owner_of(path()).empty(); }

Journal::Journal(std::string path) : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0) throw Failure(path_ + ": cannot be written: " + std::strerror(errno));
  reserved_ = reserved_after(file_, 0);
}

Journal::~Journal() { close(file_); }

void Journal::add(const std::string& frames) {
  if (too_slow_) return;
  const std::string& bytes = waiting_.empty() ? frames : waiting_ += frames;
  if (bytes.empty()) return;
  if (append_whole(file_, written_, bytes)) {
    written_ += bytes.size();
    waiting_.clear();
    if (written_ + kLastWords > reserved_) reserved_ = reserved_after(file_, written_);
  } else {
    reserved_ = 0;  // the file was cut after its last frame
    if (waiting_.empty()) waiting_ = frames;
  }
  too_slow_ = waiting_.size() > kMostWaiting;
  if (too_slow_) waiting_ = {};  // never drop single frames: data after a gap would be read as complete
}

std::string PieceJournal::piece(const std::string& folder, const std::string& name, uint64_t offset) {
  return folder + "/" + name + "." + std::to_string(offset);
}

std::map<uint64_t, uint64_t> PieceJournal::pieces(const std::string& folder, const std::string& name) {
  std::map<uint64_t, uint64_t> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(name + ".")) continue;
    const auto size = entry.file_size(none);
    if (!none) found[std::strtoull(file.c_str() + name.size() + 1, nullptr, 10)] = size;
  }
  return found;
}

void PieceJournal::remove_all(const std::string& folder, const std::string& name) {
  std::error_code none;
  for (const auto& [offset, size] : pieces(folder, name)) fs::remove(piece(folder, name, offset), none);
}

// With a full disk, a part of the live view is lost. The run file reports its own problems.
bool PieceJournal::add(const std::string& frames) {
  if (frames.empty()) return false;
  const bool anew = size_ >= kPiece;
  if (anew) begin_ += size_, size_ = 0;
  const int file = open(piece(folder_, name_, begin_).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return anew;
  if (append_whole(file, size_, frames)) kept_[begin_] = size_ += frames.size();
  close(file);
  std::error_code none;
  while (!kept_.empty() && begin_ + size_ - kept_.begin()->first > most_) {
    fs::remove(piece(folder_, name_, kept_.begin()->first), none);
    kept_.erase(kept_.begin());
  }
  return anew;
}

void say_now(const JobFolder& job, const char* name, const std::string& frame) {
  const std::string path = job.file(name), part = path + ".part";
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  const bool whole = append_whole(file, 0, frame);
  close(file);
  if (whole) rename(part.c_str(), path.c_str());
}

void add_request(const JobFolder& job, const json& request) {
  // The first newline also ends a line that a full disk cut off. That line is then not valid.
  const std::string line = "\n" + request.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  const int file = open(job.file("control").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) throw Failure(job.name() + " takes no requests: " + std::strerror(errno));
  const ssize_t went = write(file, line.data(), line.size());
  const int error = errno;
  close(file);
  if (went != static_cast<ssize_t>(line.size())) throw Failure(job.name() + " takes no requests: " + std::strerror(error));
}

// A request may have come already, between the job's first sign of life and this.
JobRequests::JobRequests(const JobFolder& job) : path_(job.file("control")) {
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) throw Failure(path_ + ": cannot be written: " + std::strerror(errno));
  reserved_after(file, 0);
  close(file);
}

std::vector<json> JobRequests::take() {
  std::vector<json> requests;
  struct stat now {};
  if (stat(path_.c_str(), &now) != 0 || static_cast<uint64_t>(now.st_size) <= at_) return requests;
  const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return requests;
  std::array<char, 1 << 14> part;
  for (ssize_t got; (got = pread(file, part.data(), part.size(), static_cast<off_t>(at_))) > 0; at_ += static_cast<uint64_t>(got))
    bytes_.append(part.data(), static_cast<size_t>(got));
  close(file);
  for (size_t end; (end = bytes_.find('\n')) != bytes_.npos; bytes_.erase(0, end + 1)) {
    json request = parse_json_or_null(std::string_view(bytes_).substr(0, end));
    if (is_new(request)) requests.push_back(std::move(request));
  }
  return requests;
}

bool JobRequests::is_new(const json& request) {
  if (!request.is_object()) return false;
  try {
    const JsonInput in(request, "");
    const int64_t number = in.at("number").whole(0);
    int64_t& last = taken_[in.at("from").text()];
    return number > std::exchange(last, std::max(last, number));
  } catch (const Failure&) {
    return false;
  }
}

}  // namespace ws::app
