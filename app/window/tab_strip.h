// Two rows over the whole window: the groups of pages, and below them the pages of the group in front, what the page
// answers and its pickers. Every tab keeps its place, whatever run is shown and page is in front; a page that has
// nothing to show is grey.
#pragma once
#include <QTabBar>
#include <set>
#include <vector>

class QLabel;
class QHBoxLayout;

namespace ws::app {

struct Page;

class TabRow : public QTabBar {
  Q_OBJECT
 public:
  TabRow(const QString& style, const QString& name, QWidget* parent);
  void reserveNote(int tab);                   // space for a number beside the name: "Advice  3"
  void setNote(int tab, const QString& note);  // empty: none
  QString nameOf(int tab) const;               // without its note
  void setOffered(int tab, bool offered, const QString& tip);

 protected:
  QSize tabSizeHint(int tab) const override;

 private:
  std::set<int> noted_;
};

class TabStrip : public QWidget {
  Q_OBJECT
 public:
  explicit TabStrip(QWidget* parent);
  int addPage(const Page& page);             // its group is new, or the one of the page before
  QTabBar* pages() const { return pages_; }  // all pages; the row shows the pages of the group in front
  QTabBar* groups() const { return groups_; }
  int groupOf(int page) const { return list_[static_cast<size_t>(page)].group; }
  void setOffered(int page, bool offered);
  void open(int page);  // as soon as it is offered, if no other page is opened before
  void setNote(int page, const QString& note);
  int pageNamed(const QString& name) const;  // a page, a group or the beginning of a name; -1: none
  QString nameOf(int page) const { return pages_->nameOf(page); }

 protected:
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void paintEvent(QPaintEvent*) override;

 private:
  struct Entry {
    int group;
    QString answers, needs;
    QWidget* picker;  // nullptr: none
    bool offered = true;
  };
  void takePicker(QWidget* picker);
  int firstOf(int group) const;  // the offered page that was in front last, else the first offered one; -1: none
  void showPage(int page);
  void openGroup(int group);
  void fit();

  TabRow *groups_, *pages_;
  QLabel* answers_;
  QHBoxLayout* row_;         // of the pages
  std::vector<Entry> list_;  // by page
  std::vector<int> last_;    // by group: the page that was in front
  int front_ = 0;
  int wanted_ = -1;  // opened once it is offered
};

}  // namespace ws::app
