// Navigation in the timeline: the next span of the same name, a step, the longest gap, a mark, a name. Each looks in
// memory first, then in the run's file.
#pragma once
#include "app/timeline/stored_search.h"
#include "app/timeline/timeline_viewport.h"

namespace ws::app {

class TimelineSearch : public QObject {
  Q_OBJECT
 public:
  TimelineSearch(TimelineModel* model, Focus* focus, TimelineViewport* viewport);

  void goTo(int run, const prof::FoundSpan& found);
  void nextSame(bool forward);
  bool jumpToStep(int64_t step);
  void jumpToSlowestStep();
  void jumpToLongestGap();
  bool find(const QString& text, bool forward);  // next span whose name, op or layer contains the text
  void addMark();
  void nextMark(bool forward);

 signals:
  void said(const QString& sentence);  // for the status bar

 private:
  using StoredQuestion = std::function<std::optional<StoredHit>(prof::StoredSpans&)>;
  // `known` is the answer from memory, which may be incomplete. Asks the run's file too and shows the better answer.
  void askFile(Run* run, const QString& what, std::optional<prof::FoundSpan> known, const QString& none,
               StoredQuestion ask, const std::function<void(int run, const prof::FoundSpan& found)>& show,
               const std::function<bool(const prof::Span& a, const prof::Span& b)>& better);
  void askNextSame(Run* run, const prof::Track& track, const prof::Span& span, std::optional<prof::FoundSpan> known,
                   bool forward, const QString& none);
  void askStepOnGpu(Run* run, const prof::FoundSpan& known, StoredQuestion ask);
  void askFound(Run* run, const QString& text, prof::TimeNs from, std::optional<prof::FoundSpan> known, bool forward);
  bool showStep(int run, const prof::Span& step, double margin);
  void showGap(int run, TimeRange gap);
  void showSelected();

  TimelineModel* model_;
  Focus* focus_;
  TimelineViewport* viewport_;
  StoredSearch file_;
};

}  // namespace ws::app
