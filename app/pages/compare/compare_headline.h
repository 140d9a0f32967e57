// The top of the Compare page: the verdict, its causes, the choices that differ, and what makes it unfair. It keeps its
// height, so that nothing below it moves.
#pragma once
#include <QWidget>

class QHBoxLayout;
class QLabel;

namespace ws::app {

class WordLabel;

struct ComparedRuns;

class CompareHeadline : public QWidget {
  Q_OBJECT
 public:
  explicit CompareHeadline(QWidget* parent = nullptr);
  void setRuns(const ComparedRuns& compared);
  void showWaiting(const QString& baseline, const QString& candidate);  // until setRuns()
  QString judgedText() const;  // the verdict of the pinned baseline; empty without one
  void addButton(QWidget* button);  // to the right of the verdict

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  int usualHeight() const;
  void fitHeight();
  void showVerdict(const ComparedRuns& compared);
  void showJudged(const ComparedRuns& compared);
  void showCauses(const ComparedRuns& compared);
  void showChoices(const ComparedRuns& compared);
  void showWarnings(const ComparedRuns& compared);

  QHBoxLayout* top_;
  QLabel *verdict_, *judged_, *causes_, *choices_, *warnings_;
  WordLabel* times_;
  int height_ = 0;  // the most that a comparison needed at this width
};

}  // namespace ws::app
