#include "profiling/base/packed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws {
namespace {

constexpr size_t kChunk = 256 * 1024;
constexpr uint64_t kMostInflation = 1032;  // the maximum ratio of deflate
constexpr size_t kFirstStep = 16 * 1024;   // for a text of unknown length; doubled as it grows

std::string system_reason() { return std::strerror(errno); }

// Opens without blocking: a pipe without a writer is then refused, not waited for.
int open_regular(const std::string& path, uint64_t& bytes) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw Failure(path + ": cannot be opened: " + system_reason());
  struct stat info {};
  const char* problem = nullptr;
  if (fstat(descriptor, &info) != 0)
    problem = "cannot be read";
  else if (S_ISDIR(info.st_mode))
    problem = "is a folder, not a file";
  else if (!S_ISREG(info.st_mode))
    problem = "is not a regular file";
  else if (info.st_size == 0)
    problem = "is empty";
  if (problem) {
    close(descriptor);
    throw Failure(path + ": " + problem);
  }
  bytes = static_cast<uint64_t>(info.st_size);
  return descriptor;
}

}  // namespace

void PackedReader::EndInflate::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

PackedReader::PackedReader(const std::string& path) : name_(path), buffer_(kChunk) {
  file_.reset(fdopen(open_regular(path, stored_bytes_), "rb"));
  if (!file_) throw Failure(path + ": cannot be read: " + system_reason());
  setvbuf(file_.get(), nullptr, _IONBF, 0);
  detect_packing();
}

PackedReader::PackedReader(std::string name, std::span<const uint8_t> bytes)
    : name_(std::move(name)), input_(bytes), stored_bytes_(bytes.size()) {
  if (bytes.empty()) throw Failure(name_ + ": is empty");
  detect_packing();
}

PackedReader::~PackedReader() = default;

void PackedReader::detect_packing() {
  refill();
  if (input_.size() < 2 || input_[0] != 0x1f || input_[1] != 0x8b) return;
  auto stream = std::make_unique<z_stream>();
  if (inflateInit2(stream.get(), 16 + MAX_WBITS) != Z_OK) throw Failure("zlib could not start: out of memory");
  inflate_.reset(stream.release());
}

bool PackedReader::refill() {
  if (!input_.empty()) return true;
  if (!file_) return false;
  const size_t got = fread(buffer_.data(), 1, buffer_.size(), file_.get());
  if (got == 0 && ferror(file_.get())) fail(offset_, "cannot be read: " + system_reason());
  input_ = std::span<const uint8_t>(buffer_).first(got);
  return got > 0;
}

size_t PackedReader::read_some(uint8_t* out, size_t count) {
  const size_t got = inflate_ ? inflate_some(out, count) : copy_plain(out, count);
  offset_ += got;
  return got;
}

size_t PackedReader::copy_plain(uint8_t* out, size_t count) {
  size_t done = 0;
  while (done < count && refill()) {
    const size_t part = std::min(count - done, input_.size());
    std::memcpy(out + done, input_.data(), part);
    input_ = input_.subspan(part);
    done += part;
  }
  return done;
}

size_t PackedReader::inflate_some(uint8_t* out, size_t count) {
  size_t done = 0;
  while (done < count && !packed_done_) {
    if (!refill()) fail(offset_ + done, "the gzip data stops before its end: the file is cut off");
    const size_t capacity = std::min<size_t>(count - done, 1u << 30);
    inflate_->next_in = const_cast<Bytef*>(input_.data());
    inflate_->avail_in = static_cast<uInt>(std::min<size_t>(input_.size(), 1u << 30));
    inflate_->next_out = out + done;
    inflate_->avail_out = static_cast<uInt>(capacity);
    const uInt offered = inflate_->avail_in;
    const int status = ::inflate(inflate_.get(), Z_NO_FLUSH);
    input_ = input_.subspan(offered - inflate_->avail_in);
    done += capacity - inflate_->avail_out;
    if (status == Z_STREAM_END)
      finish_member();
    else if (status != Z_OK && status != Z_BUF_ERROR)
      fail(offset_ + done, std::string("the gzip data is damaged: ") + (inflate_->msg ? inflate_->msg : "unknown"));
  }
  return done;
}

// A gzip file may consist of several members in sequence. Anything else after a member is damage.
void PackedReader::finish_member() {
  if (!refill()) {
    packed_done_ = true;
  } else if (input_[0] == 0x1f) {
    inflateReset(inflate_.get());
  } else {
    fail(offset_, "there is something else behind the end of the gzip data");
  }
}

void PackedReader::read_exact(uint8_t* out, size_t count, const char* what) {
  const uint64_t start = offset_;
  const size_t got = read_some(out, count);
  if (got == count) return;
  fail(start,
       std::string("expected ") + std::to_string(count) + " bytes of " + what + ", found only " + std::to_string(got));
}

std::vector<uint8_t> PackedReader::read_count(uint64_t count, const char* what) {
  const uint64_t start = offset_;
  std::vector<uint8_t> out;
  uint64_t capacity = likely_bytes();
  while (out.size() < count) {
    const size_t old = out.size();
    check_memory(static_cast<double>(std::min(count, capacity)), name_);
    out.resize(std::min(count, capacity));
    const size_t got = read_some(out.data() + old, out.size() - old);
    if (got < out.size() - old)
      fail(start, "the header promises " + std::to_string(count) + " bytes of " + what + ", but the file holds only " +
                      std::to_string(old + got));
    capacity *= 2;
  }
  return out;
}

std::string PackedReader::read_text() {
  std::string out;
  size_t got = 0, step = 0;
  do {
    const size_t old = out.size();
    step = inflate_ ? std::max<size_t>(kFirstStep, old) : stored_bytes_ + 1;
    check_memory(static_cast<double>(2 * old + step), name_);  // while it grows, the old text is there, too
    out.resize(old + step);
    got = read_some(reinterpret_cast<uint8_t*>(out.data()) + old, step);
    out.resize(old + got);
    if (inflate_ && out.size() > limits::unpacked_bytes(stored_bytes_))
      fail(offset_, "unpacks to more than such a file can hold");
  } while (got == step);
  return out;
}

bool PackedReader::at_end() {
  uint8_t extra = 0;
  return read_some(&extra, 1) == 0;
}

uint64_t PackedReader::likely_bytes() const { return std::max<uint64_t>(8 * stored_bytes_, 1 << 16); }

uint64_t PackedReader::most_bytes_allowed() const {
  return inflate_ ? std::min(stored_bytes_ * kMostInflation, limits::unpacked_bytes(stored_bytes_)) : stored_bytes_;
}

void PackedReader::fail(uint64_t at, const std::string& reason) const {
  throw Failure(name_ + ": at byte " + std::to_string(at) + (inflate_ ? " of the unpacked data: " : ": ") + reason);
}

PackedStream::int_type PackedStream::underflow() {
  if (!problem_.empty()) return traits_type::eof();
  try {
    const size_t got = reader_.read_some(reinterpret_cast<uint8_t*>(bytes_.data()), bytes_.size());
    if (got > left_) throw Failure(reader_.name() + ": unpacks to more than such a file can hold; it is refused");
    left_ -= got;
    setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
    return got == 0 ? traits_type::eof() : traits_type::to_int_type(bytes_[0]);
  } catch (const Failure& failure) {
    problem_ = failure.what();
    return traits_type::eof();
  }
}

PackedWriter::PackedWriter(const std::string& path)
    : path_(path), file_(gzopen(path.c_str(), path.ends_with(".gz") ? "wb6" : "wbT")) {
  if (!file_) throw Failure("Cannot write " + path + ".");
}

PackedWriter::~PackedWriter() {
  if (file_) gzclose(file_);
}

void PackedWriter::close() {
  flush();
  if (gzclose(std::exchange(file_, nullptr)) != Z_OK) fail();
}

void PackedWriter::flush() {
  if (!buffer_.empty() && gzwrite(file_, buffer_.data(), static_cast<unsigned>(buffer_.size())) <= 0) fail();
  buffer_.clear();
}

void PackedWriter::fail() const { throw Failure("Cannot write " + path_ + ": the disk may be full."); }

std::string gzipped(std::string_view bytes) {
  constexpr int kGzip = 15 + 16, kUsualMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzip, kUsualMemory, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);  // the buffer is large enough for any bytes
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

void check_memory(double bytes, const std::string& what) {
  const auto most = static_cast<double>(memory_limit());
  if (bytes <= most) return;
  throw Failure(what + ": would need " + bytes_text(bytes) + " of memory, and the limit here is " + bytes_text(most) +
                "; --limit allows more");
}

}  // namespace ws
