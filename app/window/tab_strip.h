// The row of tabs over the whole window. Every tab keeps its place, whatever run is shown and page is in front;
// a tab that has nothing to show is grey. What does not fit into a narrow window is under "More".
#pragma once
#include <QTabBar>
#include <set>

class QPushButton;

namespace ws::app {

class TabRow : public QTabBar {
  Q_OBJECT
 public:
  using QTabBar::QTabBar;
  void reserveNote(int tab);
  int widthOf(int tab) const { return tabSizeHint(tab).width(); }

 signals:
  void laidOut();

 protected:
  QSize tabSizeHint(int tab) const override;
  void tabLayoutChange() override;

 private:
  std::set<int> noted_;
};

class TabStrip : public QWidget {
  Q_OBJECT
 public:
  explicit TabStrip(QWidget* parent);
  QTabBar* tabs() const { return row_; }
  QPushButton* more() const { return more_; }
  void setOffered(int tab, bool offered);
  bool offered(int tab) const { return !left_out_.contains(tab); }
  void reserveNote(int tab) { row_->reserveNote(tab); }  // space for a number beside the name: "Insights  3"
  int mainTabs() const;  // the first tabs, which have their places at this width

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fit();
  void fillMenu();

  TabRow* row_;
  QPushButton* more_;
  std::set<int> left_out_;
  int chosen_ = -1;  // chosen under "More": it stays in the row
  bool fitting_ = false;
};

}  // namespace ws::app
