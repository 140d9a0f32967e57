// The row of tabs: the main tabs keep their places whatever run is shown, the others are under "More". The last one
// chosen there stays in the row.
#pragma once
#include <QTabBar>
#include <set>

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
  void setOffered(int tab, bool offered);  // a tab that is not offered is grey if it is a main tab, else hidden
  void keep(int tab);                      // in the row, as if it had been chosen under "More"
  bool offered(int tab) const { return !left_out_.contains(tab); }

 private:
  void fit();
  void fillMenu();

  TabRow* row_;
  QPushButton* more_;
  std::set<int> left_out_;
  int chosen_ = -1;  // chosen under "More"; -1 if none yet
  bool fitting_ = false;
};

}  // namespace ws::app
