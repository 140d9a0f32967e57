// A text file that is written packed when its name ends in .gz.
#pragma once
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "profiling/failure.h"

namespace ws::prof {

// Writes under another name first, so that a reader never sees half a file.
class PackedOutput {
 public:
  explicit PackedOutput(const std::string& path) : path_(path), part_(path + ".part") {
    const bool packed = path.ends_with(".gz");
    file_.reset(gzopen(part_.c_str(), packed ? "wb6" : "wbT"));
    if (!file_) throw Failure("Cannot write " + path + ".");
  }
  ~PackedOutput() {
    if (file_) std::remove(part_.c_str());
  }
  void put(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() > (1 << 20)) flush();
  }
  void close() {
    flush();
    const bool good = gzclose(file_.release()) == Z_OK;
    std::error_code error;
    if (good) std::filesystem::rename(part_, path_, error);
    if (!good || error) throw Failure("Cannot write " + path_ + ": the disk may be full.");
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
  std::string path_, part_, buffer_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace ws::prof
