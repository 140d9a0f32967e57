// The row of tabs: the main ones keep their places, the others stand under "More". The last that was chosen there
// stays in the row.
#pragma once
#include <QTabBar>

class QPushButton;

namespace ws::app {

class TabRow : public QTabBar {
  Q_OBJECT
 public:
  using QTabBar::QTabBar;

 signals:
  void laidOut();

 protected:
  void tabLayoutChange() override;
};

class TabStrip : public QWidget {
  Q_OBJECT
 public:
  static constexpr int kMainTabs = 5;
  explicit TabStrip(QWidget* parent);
  QTabBar* tabs() const { return row_; }
  QPushButton* more() const { return more_; }

 private:
  void fit();
  void fillMenu();

  TabRow* row_;
  QPushButton* more_;
  int chosen_ = -1;  // under "More"; -1: none yet
  bool fitting_ = false;
};

}  // namespace ws::app
