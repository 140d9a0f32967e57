// Progress of a run: one line that is redrawn on a terminal, plain lines elsewhere.
#pragma once
#include <cstdio>
#include <string>

#include "app/core/runs/traced_training.h"

namespace ws::cli {

class ProgressLine {
 public:
  explicit ProgressLine(std::FILE* out);
  void show(const app::RunUpdate& update);
  void say(const std::string& line);  // prints a line above the bar
  void clear();

 private:
  void epoch_line(const EpochResult& epoch, bool last);
  void bar(const Progress& progress);

  std::FILE* out_;
  bool terminal_;
  bool drawn_ = false;
  double last_line_s_ = -1;  // when a plain line was written
  double loss_ = 0, accuracy_ = 0;
  int64_t epochs_ = 0;
  bool text_ = false;  // the run learns text: its loss is also shown in bits
};

}  // namespace ws::cli
