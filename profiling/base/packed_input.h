// A text file, packed with gzip or plain, as a stream.
#pragma once
#include <zlib.h>

#include <memory>
#include <streambuf>
#include <string>
#include <vector>

#include "profiling/base/failure.h"

namespace ws::prof {

// Unpacks while reading, and stops at a size that no real trace has.
class PackedBuffer : public std::streambuf {
 public:
  PackedBuffer(const std::string& path, int64_t most) : file_(gzopen(path.c_str(), "rb")), left_(most) {
    if (!file_) throw Failure("Cannot open " + path + ".");
    gzbuffer(file_.get(), 1 << 18);
  }
  bool too_long() const { return left_ <= 0; }
  bool damaged() const { return damaged_; }

 protected:
  int_type underflow() override {
    if (left_ <= 0) return traits_type::eof();
    const int got = gzread(file_.get(), bytes_.data(), static_cast<unsigned>(bytes_.size()));
    int problem = Z_OK;
    if (got < static_cast<int>(bytes_.size())) gzerror(file_.get(), &problem);
    damaged_ |= got < 0 || problem == Z_BUF_ERROR;  // its end is missing
    if (got <= 0) return traits_type::eof();
    left_ -= got;
    setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
    return traits_type::to_int_type(bytes_[0]);
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::unique_ptr<gzFile_s, Close> file_;
  int64_t left_;
  bool damaged_ = false;
  std::vector<char> bytes_ = std::vector<char>(1 << 18);
};

}  // namespace ws::prof
