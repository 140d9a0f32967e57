// The row of tabs. Those that have no room are not scrolled out of sight: a button at the end names them.
#pragma once
#include <QTabBar>

class QPushButton;

namespace ws::app {

// A tab bar that may be narrower than its tabs, and can say how wide each is even while it is hidden.
class TabRow : public QTabBar {
  Q_OBJECT
 public:
  using QTabBar::QTabBar;
  int widthOf(int tab) const { return tabSizeHint(tab).width(); }
  QSize minimumSizeHint() const override { return {80, QTabBar::minimumSizeHint().height()}; }

 signals:
  void laidOut();

 protected:
  void tabLayoutChange() override;
};

class TabStrip : public QWidget {
  Q_OBJECT
 public:
  explicit TabStrip(QWidget* parent);
  QTabBar* tabs() const { return row_; }
  QPushButton* more() const { return more_; }

 protected:
  void resizeEvent(QResizeEvent*) override { fit(); }

 private:
  void fit();
  int squeeze();  // the width of all tabs
  void fillMenu();

  TabRow* row_;
  QPushButton* more_;
  bool fitting_ = false, tight_ = false;
};

}  // namespace ws::app
