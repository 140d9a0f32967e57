// What the user selected: a span, an op, a kernel name or a buffer, and a range. The timeline and the panels share it.
#pragma once
#include <QObject>
#include <QPointer>
#include <variant>
#include <vector>

#include "app/workspace/run.h"
#include "profiling/trace/trace.h"

namespace ws::app {

using prof::TimeRange;

struct SpanChoice {
  QPointer<Run> run;
  size_t track = 0;
  prof::Span span;
};
struct OpChoice {
  QPointer<Run> run;
  prof::OpTag op = prof::kNoOp;
};
struct NameChoice {
  QPointer<Run> run;
  prof::NameId name{};
};
struct BufferChoice {
  QPointer<Run> run;
  BufferId buffer = BufferId::None;
};
using Choice = std::variant<std::monostate, SpanChoice, OpChoice, NameChoice, BufferChoice>;

struct RunRange {
  QPointer<Run> run;
  TimeRange range;
};  // in the run's own time

class Focus : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  const Choice& choice() const { return choice_; }
  template <class T>
  const T* get() const {
    const T* chosen = std::get_if<T>(&choice_);
    return chosen && chosen->run ? chosen : nullptr;
  }
  const std::vector<RunRange>& ranges() const { return ranges_; }  // empty if no range is selected

  void choose(Choice choice) {
    choice_ = std::move(choice);
    emit changed();
  }
  // Also moves the timeline there.
  void reveal(Choice choice) {
    choose(std::move(choice));
    emit revealed();
  }
  // Also shows its surroundings: a step around its span.
  void reveal(Choice choice, Choice around) { emit revealedIn(std::move(choice), std::move(around)); }
  void chooseRanges(std::vector<RunRange> ranges) {
    ranges_ = std::move(ranges);
    emit changed();
  }
  void clear() {
    choice_ = {};
    ranges_.clear();
    emit changed();
  }

 signals:
  void changed();
  void revealed();
  void revealedIn(const ws::app::Choice& choice, const ws::app::Choice& around);

 private:
  Choice choice_;
  std::vector<RunRange> ranges_;
};

}  // namespace ws::app
