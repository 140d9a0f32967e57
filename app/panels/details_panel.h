// What is chosen, in full: a span, an op, a buffer, or the sums of a range.
#pragma once
#include <QTextBrowser>
#include <QTimer>

#include "app/timeline/selection.h"

class QLabel;

namespace ws::app {

// As HTML in the theme's colours; links begin with "op:" and lead to an op of the run.
QString span_details(const Run& run, size_t track, const prof::Span& span);
QString op_details(const Run& run, prof::OpTag op);
QString name_details(const Run& run, prof::NameId name);
QString buffer_details(const Run& run, BufferId buffer);
QString range_details(const std::vector<RunRange>& ranges, int letters);  // of a name, at most

class DetailsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit DetailsPanel(Selection* selection, QWidget* parent = nullptr);
  QString html() const { return html_; }

 protected:
  void resizeEvent(QResizeEvent*) override;
  void changeEvent(QEvent*) override;

 private:
  void refresh();
  void follow(const QUrl& link);

  Selection* selection_;
  QLabel* title_;
  QTextBrowser* text_;
  QTimer soon_;  // a dragged range changes many times a second
  QString html_;
};

}  // namespace ws::app
