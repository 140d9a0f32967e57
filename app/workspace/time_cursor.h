// The time range that all panes share: the visible range, the cursor, and whether the view follows the live end.
#pragma once
#include <QObject>
#include <optional>
#include <utility>

#include "profiling/trace/trace.h"

namespace ws::app {

// Times are ns since the origin of the first ticked run.
class TimeCursor : public QObject {
  Q_OBJECT
 public:
  explicit TimeCursor(QObject* parent = nullptr) : QObject(parent) {}

  prof::TimeNs begin() const { return begin_; }
  prof::TimeNs end() const { return end_; }
  std::optional<prof::TimeNs> cursor() const { return cursor_; }
  bool pointed() const { return pointed_; }  // the pointer is still at the cursor: values beside it cover nothing for long
  bool follow() const { return follow_; }

 public slots:
  void setRange(ws::prof::TimeNs begin, ws::prof::TimeNs end) {
    if (begin >= end || (begin == begin_ && end == end_)) return;
    begin_ = begin, end_ = end;
    emit rangeChanged(begin, end);
  }
  void setCursor(ws::prof::TimeNs time) {
    if (cursor_ == time && pointed_) return;
    cursor_ = time, pointed_ = true;
    emit cursorChanged();
  }
  // The pointer went elsewhere. The cursor stays, so that a menu can set a mark there.
  void leave() {
    if (!std::exchange(pointed_, false)) return;
    emit cursorChanged();
  }
  void clearCursor() {
    if (!cursor_) return;
    cursor_.reset();
    emit cursorChanged();
  }
  // Panning or zooming by hand turns following off. The Follow button turns it on again.
  void setFollow(bool on) {
    if (follow_ == on) return;
    follow_ = on;
    emit followChanged(on);
  }
  void toggleFollow() { setFollow(!follow_); }

 signals:
  void rangeChanged(ws::prof::TimeNs begin, ws::prof::TimeNs end);
  void cursorChanged();
  void followChanged(bool on);

 private:
  prof::TimeNs begin_ = 0, end_ = 1'000'000;
  std::optional<prof::TimeNs> cursor_;
  bool follow_ = true, pointed_ = false;
};

}  // namespace ws::app
