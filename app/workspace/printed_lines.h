// Whole lines of what a program prints, as plain text: a progress bar that overwrites itself is its last state.
#pragma once
#include <QString>
#include <QStringList>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/core/remote/short_log.h"
#include "app/core/runs/traced_training.h"

namespace ws::app {

class PrintedLines {
 public:
  QStringList add(std::string_view printed);  // the lines that are complete now, without empty ones
  QStringList end();                          // the last line, which may have no end
  const QString& last() const { return last_; }

 private:
  void keep(std::string_view line, QStringList& lines);

  std::string rest_;
  QString last_;
};

// What a recorded program printed, as messages of its run: not more than one can read.
class ShownOutput {
 public:
  explicit ShownOutput(ShortLog log = ShortLog()) : log_(std::move(log)) {}
  void add(std::string_view printed, bool over, std::vector<RunMessage>& messages);
  const QString& lastLine() const { return lines_.last(); }

 private:
  ShortLog log_;
  PrintedLines lines_;
};

}  // namespace ws::app
