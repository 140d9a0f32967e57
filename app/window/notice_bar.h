// A strip below the toolbar that says what went wrong, whole, and offers what can be done about it.
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
  explicit NoticeBar(QWidget* parent = nullptr);
  // Stays until it is dismissed, replaced or no longer true.
  void tell(const QString& sentence, std::vector<NoticeAction> actions = {});
  void dismiss();
  QString text() const;
  const std::vector<QPushButton*>& actions() const { return actions_; }
  void refreshIcon();

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  QLabel *icon_, *sentence_;
  QHBoxLayout* row_;
  QPushButton* dismiss_;
  std::vector<QPushButton*> actions_;
};

}  // namespace ws::app
