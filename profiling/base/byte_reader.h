// Reads a plain or gzip-packed file front to back; every failure names the file, the offset and the reason.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct z_stream_s;

namespace ws::data {

class ByteReader {
 public:
  explicit ByteReader(const std::string& path);
  ByteReader(std::string name, std::span<const uint8_t> bytes);  // reads from memory, packed or plain
  ~ByteReader();
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  size_t read_some(uint8_t* out, size_t count);  // fewer than `count` only at the end
  void read_exact(uint8_t* out, size_t count, const char* what);

  // Memory grows with the bytes that arrive, never with a number that a header claims.
  std::vector<uint8_t> read_count(uint64_t count, const char* what);
  std::string read_text();

  bool at_end();  // for a packed file also checks its checksum
  uint64_t offset() const { return offset_; }
  uint64_t likely_bytes() const;         // a first guess at the unpacked size, in proportion to the file
  uint64_t most_bytes_possible() const;  // no file of this size can unpack to more
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
  std::span<const uint8_t> input_;  // read, not yet used
  std::unique_ptr<z_stream_s, EndInflate> inflate_;
  uint64_t stored_bytes_ = 0;
  uint64_t offset_ = 0;
  bool packed_done_ = false;
};

// Throws ws::Failure when `bytes` is more than this machine could hold; `what` starts the sentence.
void check_memory(double bytes, const std::string& what);

}  // namespace ws::data
