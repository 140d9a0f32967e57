// Says what went wrong, whole, and offers what can be done about it. It moves nothing: a sentence of one line covers the
// status line only, a longer one grows upwards over the pages, beside the docks.
#pragma once
#include <QWidget>
#include <functional>
#include <vector>

class QHBoxLayout;
class QLabel;
class QPushButton;

namespace ws::app {

struct NoticeAction {
  QString text;
  std::function<void()> run;
};

class NoticeBar : public QWidget {
  Q_OBJECT
 public:
  // `height`: the part of the parent's lower edge that a sentence of one line may cover.
  NoticeBar(QWidget* parent, int height);
  void keepTo(QWidget* column);  // where longer sentences stand
  // Stays until it is dismissed, replaced or no longer true.
  void tell(const QString& sentence, std::vector<NoticeAction> actions = {});
  void add(const QString& sentence);  // a line more
  // Good news: the end of a lesson.
  void conclude(const QString& sentence, std::vector<NoticeAction> actions = {});
  void dismiss();
  QString text() const;
  bool problem() const { return !isHidden() && problem_; }
  const std::vector<QPushButton*>& actions() const { return actions_; }

 protected:
  void paintEvent(QPaintEvent*) override;
  bool eventFilter(QObject* object, QEvent* event) override;  // the sizes of the parent and the column

 private:
  void show(const QString& sentence, std::vector<NoticeAction> actions, bool problem);
  void place();
  int heightAt(int width) const;

  QWidget* icon_;
  QLabel* sentence_;
  QHBoxLayout* row_;
  QPushButton* dismiss_;
  std::vector<QPushButton*> actions_;
  QWidget* column_;
  int height_;
  bool problem_ = true;
};

}  // namespace ws::app
