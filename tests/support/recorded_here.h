// A program that records itself, as one does that was started by `record`. A thread stands in for the process that writes the
// run file.
#pragma once
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "profiling/recording/program_sender.h"
#include "profiling/recording/program_writer.h"

namespace ws::test {

class RecordedHere {
 public:
  RecordedHere(const std::string& path, const std::string& name, const prof::CollectorOptions& options, const std::string& follower = "",
               std::function<prof::TraceBatch()> source = {})
      : sender_(emptied(path), name, options, follower, [this](const prof::FrameRing& ring) { return start(ring); }, std::move(source)) {}
  ~RecordedHere() { finish(); }
  RecordedHere(const RecordedHere&) = delete;
  RecordedHere& operator=(const RecordedHere&) = delete;

  void finish() {
    sender_.finish();
    if (writer_.joinable()) writer_.join();
  }
  prof::HostNotes& notes() { return sender_.notes(); }

 private:
  static const std::string& emptied(const std::string& path) {
    std::ofstream(path, std::ios::trunc);
    return path;
  }
  int start(const prof::FrameRing& ring) {
    writer_ = std::thread([number = ring.number()] {
      prof::FrameRing read(number);
      prof::write_run(read);
    });
    return 0;  // it ends with this process
  }
  std::thread writer_;
  prof::ProgramSender sender_;
};

}  // namespace ws::test
