// Shows the selection in detail: a span, an op, a buffer, or the sums of a range.
#pragma once
#include <QTextBrowser>
#include <QTimer>

#include "app/pages/details/range_details.h"

class QLabel;

namespace ws::app {

// HTML in the theme's colours. Links begin with "op:" and lead to an op of the run.
QString span_details(const Run& run, size_t track, const prof::Span& span);
QString op_details(const Run& run, prof::OpTag op);
QString name_details(const Run& run, prof::NameId name);
QString buffer_details(const Run& run, BufferId buffer);
class DetailsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit DetailsPanel(Focus* focus, QWidget* parent = nullptr);
  QString html() const { return html_; }
  bool settled() const { return !soon_.isActive() && !steps_.isActive(); }  // shows the newest figures
  void setRun(Run* run);  // described while nothing is selected

 protected:
  void showEvent(QShowEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void changeEvent(QEvent*) override;

 private:
  void refresh();
  void follow(const QUrl& link);
  void refreshSteps();

  Focus* focus_;
  QLabel* title_;
  QTextBrowser* text_;
  QTimer soon_;   // merges the changes of a dragged range
  QTimer steps_;  // merges the changes of a live run
  QString html_;
  QPointer<Run> run_;
  double shown_wall_us_ = 0;  // the step time of the split that is shown
  RangeDetails ranges_;
};

}  // namespace ws::app
