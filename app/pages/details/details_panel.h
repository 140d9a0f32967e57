// What is chosen, in full: a span, an op, a buffer, or the sums of a range.
#pragma once
#include <QTextBrowser>
#include <QTimer>

#include "app/workspace/selection.h"
#include "app/timeline/stored_search.h"

class QLabel;

namespace ws::app {

// As HTML in the theme's colours; links begin with "op:" and lead to an op of the run.
QString span_details(const Run& run, size_t track, const prof::Span& span);
QString op_details(const Run& run, prof::OpTag op);
QString name_details(const Run& run, prof::NameId name);
QString buffer_details(const Run& run, BufferId buffer);
// `from_file`: sums of ranges that are not all in memory, as far as they are known. `letters`: of a name, at most.
struct SummedRange {
  RunRange range;
  StoredSums sums;
  QString problem;  // why they are not known
};
QString range_details(const std::vector<RunRange>& ranges, int letters, const std::vector<SummedRange>& from_file = {});

// Where the time of a run's newest steps went, how busy the GPU was, how late its work began, what tracing cost.
QString step_details(const Run& run);

class DetailsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit DetailsPanel(Selection* selection, QWidget* parent = nullptr);
  QString html() const { return html_; }
  void setRuns(const std::vector<Run*>& runs);  // what it tells of while nothing is chosen

 protected:
  void resizeEvent(QResizeEvent*) override;
  void changeEvent(QEvent*) override;

 private:
  void refresh();
  void follow(const QUrl& link);
  void sumFromFiles();
  void refreshSteps();

  Selection* selection_;
  QLabel* title_;
  QTextBrowser* text_;
  QTimer soon_;   // a dragged range changes many times a second
  QTimer steps_;  // and a live run all the time
  QString html_;
  std::vector<QPointer<Run>> runs_;
  StoredSearch* search_ = new StoredSearch(this);
  std::vector<SummedRange> summed_;
};

}  // namespace ws::app
