// A card over the lower edge of the window that says what went wrong, whole, and offers what can be done about it.
// It covers a strip of the window and moves nothing.
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
  // `above`: the part of the parent's lower edge that stays free.
  NoticeBar(QWidget* parent, int above);
  // Stays until it is dismissed, replaced or no longer true.
  void tell(const QString& sentence, std::vector<NoticeAction> actions = {});
  void add(const QString& sentence);  // a line more
  // Good news: the end of a lesson.
  void conclude(const QString& sentence, std::vector<NoticeAction> actions = {});
  void dismiss();
  QString text() const;
  const std::vector<QPushButton*>& actions() const { return actions_; }

 protected:
  void paintEvent(QPaintEvent*) override;
  bool eventFilter(QObject* object, QEvent* event) override;  // the parent's size

 private:
  void show(const QString& sentence, std::vector<NoticeAction> actions, bool problem);
  void place();

  QWidget* icon_;
  QLabel* sentence_;
  QHBoxLayout* row_;
  QPushButton* dismiss_;
  std::vector<QPushButton*> actions_;
  int above_;
  bool problem_ = true;
};

}  // namespace ws::app
