#include "app/core/remote/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

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

 private:
  int handle_;
};

class GrowingFile final : public ByteSource {
 public:
  GrowingFile(JobFolder job, const char* name) : job_(std::move(job)), path_(job_.file(name)) {}
  std::string read(uint64_t offset, size_t most) override {
    if (!file_ || !file_->there()) file_ = std::make_unique<OpenFile>(path_);  // a job that began just now
    return file_->read(offset, most);
  }
  bool may_grow() override { return job_.running(); }

 private:
  JobFolder job_;
  std::string path_;
  std::unique_ptr<OpenFile> file_;
};

class NewestTrace final : public ByteSource {
 public:
  explicit NewestTrace(JobFolder job) : job_(std::move(job)) {}

  std::string read(uint64_t offset, size_t most) override {
    if (!holds(offset) && !find(offset)) return {};
    std::string bytes = piece_->read(offset - begin_, most);
    if (bytes.empty() && find(offset)) bytes = piece_->read(offset - begin_, most);  // the next piece has begun
    return bytes;
  }
  bool may_grow() override { return job_.running(); }

  std::optional<uint64_t> jump(uint64_t offset, uint64_t behind) override {
    const auto pieces = TraceJournal::pieces(job_.path());
    if (pieces.empty()) return std::nullopt;
    const auto& [newest, size] = *pieces.rbegin();
    if (offset < pieces.begin()->first || (newest > offset && newest + size - offset > behind)) return newest;
    return std::nullopt;
  }

 private:
  bool holds(uint64_t offset) const { return piece_ && offset >= begin_; }
  bool find(uint64_t offset) {
    const auto pieces = TraceJournal::pieces(job_.path());
    auto at = pieces.upper_bound(offset);
    if (at == pieces.begin()) return false;
    --at;
    if (piece_ && at->first == begin_) return false;
    begin_ = at->first;
    piece_ = std::make_unique<OpenFile>(TraceJournal::piece(job_.path(), begin_));
    return true;
  }
  JobFolder job_;
  std::unique_ptr<OpenFile> piece_;
  uint64_t begin_ = 0;
};

class FinishedFile final : public ByteSource {
 public:
  explicit FinishedFile(const std::string& path) : file_(path) {
    struct stat now {};
    if (!file_.there() || fstat(file_.handle(), &now) != 0) throw Failure(path + ": cannot be read: " + std::strerror(errno));
    if (!S_ISREG(now.st_mode)) throw Failure(path + ": is no file");
    size_ = static_cast<uint64_t>(now.st_size);
    version_ = std::to_string(now.st_size) + " " + std::to_string(now.st_mtim.tv_sec) + "." + std::to_string(now.st_mtim.tv_nsec);
  }

  std::string read(uint64_t offset, size_t most) override {
    if (offset >= size_) return {};
    while (summed_ < offset) add(file_.read(summed_, std::min<uint64_t>(offset - summed_, 1 << 20)));
    std::string bytes = file_.read(offset, std::min<uint64_t>(most, size_ - offset));
    if (offset == summed_) add(bytes);
    return bytes;
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
std::unique_ptr<ByteSource> newest_trace_of(const JobFolder& job) { return std::make_unique<NewestTrace>(job); }
std::unique_ptr<ByteSource> finished_file(const std::string& path) { return std::make_unique<FinishedFile>(path); }

}  // namespace ws::app
