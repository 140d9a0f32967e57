// Reads and writes files that are plain or compressed with gzip. Every failure of a reader names the file, the offset
// and the reason.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s;
struct z_stream_s;

namespace ws {

// Reads from front to back.
class PackedReader {
 public:
  explicit PackedReader(const std::string& path);
  PackedReader(std::string name, std::span<const uint8_t> bytes);  // reads from memory, packed or plain
  ~PackedReader();
  PackedReader(const PackedReader&) = delete;
  PackedReader& operator=(const PackedReader&) = delete;

  size_t read_some(uint8_t* out, size_t count);  // fewer than `count` only at the end
  void read_exact(uint8_t* out, size_t count, const char* what);

  // Allocates as bytes arrive, and never trusts a size that a header claims.
  std::vector<uint8_t> read_count(uint64_t count, const char* what);
  std::string read_text();

  bool at_end();  // also verifies the checksum of a compressed file
  uint64_t offset() const { return offset_; }
  uint64_t likely_bytes() const;         // a first guess at the unpacked size: a multiple of the file size
  uint64_t most_bytes_allowed() const;   // more than that, an honest file of this size does not hold
  const std::string& name() const { return name_; }
  [[noreturn]] void fail(uint64_t at, const std::string& reason) const;

 private:
  struct EndInflate {
    void operator()(z_stream_s* stream) const;
  };
  struct CloseFile {
    void operator()(FILE* file) const { fclose(file); }
  };
  void detect_packing();
  bool refill();
  size_t copy_plain(uint8_t* out, size_t count);
  size_t inflate_some(uint8_t* out, size_t count);
  void finish_member();

  std::string name_;
  std::unique_ptr<FILE, CloseFile> file_;
  std::vector<uint8_t> buffer_;
  std::span<const uint8_t> input_;  // read, not used yet
  std::unique_ptr<z_stream_s, EndInflate> inflate_;
  uint64_t stored_bytes_ = 0;
  uint64_t offset_ = 0;
  bool packed_done_ = false;
};

// Stream buffer for a std::istream, which cannot pass on exceptions: after an error it ends, and problem() says why.
class PackedStream : public std::streambuf {
 public:
  PackedStream(const std::string& path, uint64_t most) : reader_(path), left_(most), bytes_(1 << 18) {}
  const std::string& problem() const { return problem_; }  // empty if there is none

 protected:
  int_type underflow() override;

 private:
  PackedReader reader_;
  uint64_t left_;
  std::vector<char> bytes_;
  std::string problem_;
};

// Compresses if the name ends in .gz.
class PackedWriter {
 public:
  explicit PackedWriter(const std::string& path);
  ~PackedWriter();
  PackedWriter(const PackedWriter&) = delete;
  PackedWriter& operator=(const PackedWriter&) = delete;
  void put(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() > (1 << 20)) flush();
  }
  void close();

 private:
  void flush();
  [[noreturn]] void fail() const;
  std::string path_, buffer_;
  gzFile_s* file_;
};

std::string gzipped(std::string_view bytes);

// Throws Failure if `bytes` is more than memory_limit(). The message begins with `what`.
void check_memory(double bytes, const std::string& what);

}  // namespace ws
