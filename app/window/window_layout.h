// How the window adapts to its size, and what it stores from one start to the next.
#pragma once
#include <QObject>
#include <map>
#include <vector>

#include "app/window/all_pages.h"

class QAbstractButton;
class QMainWindow;
class QSplitter;

namespace ws::app {

class DockColumn;
class TabStrip;
class TopBar;

// The largest size up to `wanted` that fits the screen, including the window frame.
QSize fitting(QSize wanted, QSize screen);

class WindowLayout : public QObject {
  Q_OBJECT
 public:
  struct Parts {
    QMainWindow* window;
    TopBar* bar;
    QSplitter* columns;
    DockColumn* docks;
    TabStrip* strip;
    QAbstractButton* setup;
  };
  WindowLayout(Workspace& workspace, const Parts& parts, const AllPages& pages);
  bool compact() const { return compact_; }
  void fitScreen();          // before the window is shown
  void resized(bool first);  // the width of the window changed
  void remember();
  void restore();
  void offerSetup(bool open);  // beside Overview; a person's own choice wins
  void setKeep(bool keep) { keep_ = keep; }
  bool keep() const { return keep_; }  // false: a closing window stores nothing

 signals:
  void compactChanged(bool compact);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;  // watches the size of the columns

 private:
  void setCompact(bool compact);
  void showTab(int tab);
  void foldSetup();
  int placeOf(int tab) const { return tab >= 0 && folds_setup_[static_cast<size_t>(tab)] ? tab : kUsual; }
  void shareWidth();
  bool narrow() const;
  void rememberRuns() const;
  void restoreSizes();
  void restorePages(bool layout);
  void restoreRuns();

  Workspace& workspace_;
  Parts parts_;
  std::vector<Remembered> remembered_;
  std::vector<std::function<void(bool)>> set_compact_;
  static constexpr int kUsual = -1;      // the tabs beside which Setup stands
  std::vector<bool> folds_setup_;        // by tab
  std::map<int, bool> setup_open_;       // as the user left it: beside the usual tabs, and beside each tab that folds it
  int tab_ = 0;
  bool compact_ = false, keep_ = true;
  bool kept_widths_ = false;  // dragged by the user, or restored
  bool chose_setup_ = false;  // the user opened or closed Setup beside the usual tabs, today or before
};

}  // namespace ws::app
