// Shows a complete error message and offers actions. A one-line message covers only the status line. A longer one grows
// upwards over the pages, beside the docks. Good news stands above the status line and makes the pages shorter.
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
  // `height`: the part of the parent's lower edge that a one-line message may cover.
  NoticeBar(QWidget* parent, int height);
  void keepTo(QWidget* column);  // the place for longer messages; its layout gives space to good news
  // Stays until it is dismissed, replaced or out of date.
  void showText(const QString& sentence, std::vector<NoticeAction> actions = {});
  void add(const QString& sentence);  // appends a line
  // Good news: a lesson has ended.
  void conclude(const QString& sentence, std::vector<NoticeAction> actions = {});
  void dismiss();
  QString text() const;
  bool problem() const { return !isHidden() && problem_; }
  const std::vector<QPushButton*>& actions() const { return actions_; }

 protected:
  void paintEvent(QPaintEvent*) override;
  bool eventFilter(QObject* object, QEvent* event) override;  // watches the sizes of the parent and the column

 private:
  void show(const QString& sentence, std::vector<NoticeAction> actions, bool problem);
  void place();
  void takeSpace(int height);
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
