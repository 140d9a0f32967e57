// The right column: docks on top of each other, and the rail whose buttons show and hide them.
#pragma once
#include <QSplitter>
#include <QStringList>
#include <vector>

#include "app/pages/page.h"

namespace ws::app {

class RailButton;
class SideRail;

class DockColumn : public QSplitter {
  Q_OBJECT
 public:
  DockColumn(SideRail* rail, QWidget* parent);
  void add(const Page& page);
  void showRuns(const std::vector<Run*>& runs);
  RailButton* button(const QString& dock) const;  // nullptr if there is none
  QStringList openDocks() const;
  QByteArray heights() const { return dragged_ ? saveState() : QByteArray(); }  // empty until the user chose them
  void restoreHeights(const QByteArray& heights) { dragged_ = restoreState(heights); }
  void setOpenDocks(const QStringList& docks);
  void fold(bool folded);  // for a narrow window; no effect after the user opened or closed a dock

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Dock {
    Page page;
    RailButton* button;
  };
  void showColumn();
  void shareHeight();

  SideRail* rail_;
  std::vector<Dock> docks_;
  bool by_hand_ = false;
  bool dragged_ = false;  // the user chose the heights
};

}  // namespace ws::app
