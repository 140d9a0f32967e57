#include "app/core/remote/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>

#include "app/core/remote/curves.h"
#include "app/core/remote/update_codec.h"
#include "profiling/base/clock.h"
#include "profiling/base/failure.h"

namespace ws::app {
namespace {

using nlohmann::json;

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : handle_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (handle_ >= 0) close(handle_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  bool there() const { return handle_ >= 0; }
  int handle() const { return handle_; }
  std::string read(uint64_t offset, size_t most) const {
    std::string bytes(most, '\0');
    const ssize_t got = there() ? pread(handle_, bytes.data(), most, static_cast<off_t>(offset)) : 0;
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }
  uint64_t size() const {
    struct stat now {};
    return there() && fstat(handle_, &now) == 0 ? static_cast<uint64_t>(now.st_size) : 0;
  }

 private:
  int handle_;
};

NextBytes bytes_at(uint64_t offset, std::string bytes) {
  const uint64_t until = offset + bytes.size();
  return {std::move(bytes), until};
}

class OfJob : public ByteSource {
 public:
  explicit OfJob(JobFolder job) : job_(std::move(job)) {}
  bool may_grow() override { return job_.running(); }

 protected:
  JobFolder job_;
};

class GrowingFile final : public OfJob {
 public:
  GrowingFile(JobFolder job, const char* name) : OfJob(std::move(job)), path_(job_.file(name)) {}
  NextBytes next(uint64_t offset, size_t most) override {
    if (!file_ || !file_->there()) file_ = std::make_unique<OpenFile>(path_);  // the job has just started
    return bytes_at(offset, file_->read(offset, most));
  }

 private:
  std::string path_;
  std::unique_ptr<OpenFile> file_;
};

class StateFile final : public OfJob {
 public:
  StateFile(JobFolder job, const char* name) : OfJob(std::move(job)), path_(job_.file(name)) {}
  NextBytes next(uint64_t offset, size_t /*most*/) override {
    constexpr int64_t kEveryNs = 30'000'000;
    constexpr size_t kMost = 64u << 10;
    const int64_t now = prof::steady_ns();
    const bool over = !may_grow();
    if (!over && now - looked_ns_ < kEveryNs) return {};
    looked_ns_ = now;
    std::string bytes = OpenFile(path_).read(0, kMost);
    if (bytes == said_) return {};
    return bytes_at(offset, said_ = std::move(bytes));
  }

 private:
  std::string path_, said_;
  int64_t looked_ns_ = 0;
};

// Reads the growing pieces of a PieceJournal.
class Pieces {
 public:
  Pieces(const JobFolder& job, const char* name) : folder_(job.path()), name_(name) {}

  // Empty if there is nothing now. It never reads beyond the end of a piece.
  std::string read(uint64_t offset, size_t most) {
    if (!holds(offset) && !find(offset)) return {};
    std::string bytes = piece_->read(offset - begin_, most);
    if (bytes.empty() && open_at(offset)) bytes = piece_->read(0, most);  // the next piece has begun
    return bytes;
  }
  bool gone(uint64_t offset) const { return !holds(offset) && offset < oldest(); }
  uint64_t oldest() const {
    const auto all = PieceJournal::pieces(folder_, name_);
    return all.empty() ? 0 : all.begin()->first;
  }
  // Offsets where the newest piece begins, and where all data ends.
  std::pair<uint64_t, uint64_t> newest() {
    if (!newest_) look_for_newest();
    while (newest_) {
      const uint64_t end = newest_begin_ + newest_->size();
      auto next = std::make_unique<OpenFile>(PieceJournal::piece(folder_, name_, end));
      if (end == newest_begin_ || !next->there()) return {newest_begin_, end};
      newest_ = std::move(next), newest_begin_ = end;
    }
    return {};
  }

 private:
  bool holds(uint64_t offset) const { return piece_ && offset >= begin_ && offset - begin_ <= piece_->size(); }
  bool open_at(uint64_t offset) {
    auto next = std::make_unique<OpenFile>(PieceJournal::piece(folder_, name_, offset));
    if (!next->there()) return false;
    piece_ = std::move(next), begin_ = offset;
    return true;
  }
  bool find(uint64_t offset) {
    const auto all = PieceJournal::pieces(folder_, name_);
    const auto at = all.upper_bound(offset);
    return at != all.begin() && open_at(std::prev(at)->first);
  }
  void look_for_newest() {
    const auto all = PieceJournal::pieces(folder_, name_);
    if (all.empty()) return;
    newest_begin_ = all.rbegin()->first;
    newest_ = std::make_unique<OpenFile>(PieceJournal::piece(folder_, name_, newest_begin_));
  }
  std::string folder_, name_;
  std::unique_ptr<OpenFile> piece_, newest_;
  uint64_t begin_ = 0, newest_begin_ = 0;
};

// How long the data at an offset has waited to be sent.
class Lateness {
 public:
  int64_t of(uint64_t offset, uint64_t end) {
    const int64_t now = prof::steady_ns();
    if (seen_.empty() || seen_.back().end < end) seen_.push_back({end, now});
    while (!seen_.empty() && seen_.front().end <= offset) seen_.pop_front();
    return seen_.empty() ? 0 : now - seen_.front().time_ns;
  }

 private:
  struct Seen {
    uint64_t end;
    int64_t time_ns;
  };
  std::deque<Seen> seen_;
};

class NewestTrace final : public OfJob {
 public:
  explicit NewestTrace(JobFolder job) : OfJob(std::move(job)), pieces_(job_, kTracePieces) {}
  NextBytes next(uint64_t offset, size_t most) override {
    constexpr int64_t kTooLateNs = 1'000'000'000;
    const auto [newest, end] = pieces_.newest();
    const bool late = late_.of(offset, end) > kTooLateNs || (offset < end && pieces_.gone(offset));
    if (late && newest > offset) return {{}, newest, true};
    return bytes_at(offset, pieces_.read(offset, most));
  }

 private:
  Pieces pieces_;
  Lateness late_;
};

class CurvesSource final : public OfJob {
 public:
  explicit CurvesSource(JobFolder job) : OfJob(std::move(job)), pieces_(job_, kCurvePieces) {}
  NextBytes next(uint64_t offset, size_t most) override {
    const uint64_t end = pieces_.newest().second;
    if (offset >= end) return {};
    if (pieces_.gone(offset)) return history(offset);
    const int64_t now = prof::steady_ns(), late = late_.of(offset, end);
    if (late > kLateNs) thinned_until_ns_ = now + kThinnedNs;
    if (now > thinned_until_ns_ || end - offset <= kFew) return whole_frames(offset, most);
    if (now - thinned_ns_ < kEveryNs && job_.running()) return {};
    thinned_ns_ = now;
    return thinned(offset, std::min<uint64_t>(end, offset + kMostThinned));
  }

 private:
  // After a delay, the data of each kEveryNs is thinned to at most kPoints for a while, unless very little is waiting.
  static constexpr int64_t kLateNs = 500'000'000, kThinnedNs = 1'000'000'000, kEveryNs = 50'000'000;
  static constexpr uint64_t kFew = 8u << 10;
  static constexpr size_t kPoints = 256, kReadAtOnce = 1u << 20, kMostThinned = 4u << 20;  // bytes: 17 MB of steps

  NextBytes whole_frames(uint64_t offset, size_t most) {
    const std::string bytes = pieces_.read(offset, kReadAtOnce);
    const size_t whole = whole_frames_in(bytes, most);
    return bytes_at(offset, bytes.substr(0, whole));
  }

  NextBytes thinned(uint64_t offset, uint64_t end) {
    UpdateReader reader;
    RemoteUpdate update;
    uint64_t at = offset;
    while (at < end) {
      const std::string bytes = pieces_.read(at, kReadAtOnce);
      FrameReader frames("The curves");
      frames.add(std::string_view(bytes).substr(0, whole_frames_in(bytes, kReadAtOnce)));
      const uint64_t before = at;
      while (const auto frame = frames.next()) reader.read(*frame, update), at += frame_size(*frame);
      if (at == before) break;
    }
    Curves curves{std::move(update.run.steps), std::move(update.run.epochs)};
    thin(curves, kPoints);
    return {UpdateWriter::curves(curves), at, at > offset};
  }

  // The replacement for deleted pieces.
  NextBytes history(uint64_t offset) {
    constexpr size_t kMost = 8u << 20;
    const std::string bytes = OpenFile(job_.file(kHistory)).read(0, kMost);
    if (!bytes.empty()) {
      auto [until, frames] = read_history(bytes);
      if (until > offset) return {std::move(frames), until, true};
    }
    if (job_.running()) return {};  // it is being written just now
    return {{}, pieces_.oldest(), true};
  }

  Pieces pieces_;
  Lateness late_;
  int64_t thinned_until_ns_ = 0, thinned_ns_ = 0;
};

class FinishedFile final : public ByteSource {
 public:
  explicit FinishedFile(const std::string& path) : file_(path) {
    struct stat now {};
    if (!file_.there() || fstat(file_.handle(), &now) != 0) throw Failure(path + ": cannot be read: " + std::strerror(errno));
    if (!S_ISREG(now.st_mode)) throw Failure(path + ": not a file");
    size_ = static_cast<uint64_t>(now.st_size);
    version_ = std::to_string(now.st_size) + " " + std::to_string(now.st_mtim.tv_sec) + "." + std::to_string(now.st_mtim.tv_nsec);
  }

  NextBytes next(uint64_t offset, size_t most) override {
    const uint64_t known = std::min(offset, size_);  // all of it where only the end of the answer was lost
    while (summed_ < known) add(file_.read(summed_, std::min<uint64_t>(known - summed_, 1 << 20)));
    if (offset >= size_) return {};
    std::string bytes = file_.read(offset, std::min<uint64_t>(most, size_ - offset));
    if (offset == summed_) add(bytes);
    return bytes_at(offset, std::move(bytes));
  }
  bool may_grow() override { return false; }
  json at_end() override { return {{"bytes", size_}, {"sum", sum_}}; }
  std::string version() const override { return version_; }

 private:
  void add(const std::string& bytes) {
    if (bytes.empty()) throw Failure("The file there became shorter while it was being read.");
    sum_ = crc32(sum_, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    summed_ += bytes.size();
  }
  OpenFile file_;
  uint64_t size_ = 0, summed_ = 0;
  unsigned long sum_ = crc32(0, nullptr, 0);
  std::string version_;
};

}  // namespace

json ByteSource::at_end() { return json::object(); }

std::unique_ptr<ByteSource> growing_file(const JobFolder& job, const char* name) {
  return std::make_unique<GrowingFile>(job, name);
}
std::unique_ptr<ByteSource> curves_of(const JobFolder& job) { return std::make_unique<CurvesSource>(job); }
std::unique_ptr<ByteSource> state_of(const JobFolder& job, const char* name) { return std::make_unique<StateFile>(job, name); }
std::unique_ptr<ByteSource> newest_trace_of(const JobFolder& job) { return std::make_unique<NewestTrace>(job); }
std::unique_ptr<ByteSource> finished_file(const std::string& path) { return std::make_unique<FinishedFile>(path); }

}  // namespace ws::app
