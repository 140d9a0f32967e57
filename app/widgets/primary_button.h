// The blue button: the main action of a dialog or a page.
#pragma once
#include <QObject>
#include <QPushButton>
#include <functional>

namespace ws::app {

void make_primary(QPushButton& button, bool primary = true);
QIcon icon_of_primary(const QPushButton& button, const QString& name);  // white on blue

// Keeps one blue button a window: `button` is blue only while no other blue button of its window is visible.
class OnePrimary : public QObject {
 public:
  OnePrimary(QPushButton* button, std::function<void()> changed);
  void allow(bool blue);  // false: the button is not blue in any case

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void update();
  QPushButton* button_;
  std::function<void()> changed_;
  bool allowed_ = true;
};

}  // namespace ws::app
