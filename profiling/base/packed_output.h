// A text file that is written packed when its name ends in .gz.
#pragma once
#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>

#include "profiling/base/failure.h"

namespace ws::prof {

class PackedOutput {
 public:
  explicit PackedOutput(const std::string& path) : path_(path) {
    const bool packed = path.ends_with(".gz");
    file_.reset(gzopen(path.c_str(), packed ? "wb6" : "wbT"));
    if (!file_) throw Failure("Cannot write " + path + ".");
  }
  void put(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() > (1 << 20)) flush();
  }
  void close() {
    flush();
    if (gzclose(file_.release()) != Z_OK) throw Failure("Cannot write " + path_ + ": the disk may be full.");
  }

 private:
  void flush() {
    if (!buffer_.empty() && gzwrite(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size())) <= 0) {
      throw Failure("Cannot write " + path_ + ": the disk may be full.");
    }
    buffer_.clear();
  }
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string path_, buffer_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace ws::prof
