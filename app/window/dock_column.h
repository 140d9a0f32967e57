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
  void setOpenDocks(const QStringList& docks);
  void fold(bool folded);  // for a narrow window; no effect after the user opened or closed a dock

 private:
  struct Dock {
    Page page;
    RailButton* button;
  };
  void showColumn();

  SideRail* rail_;
  std::vector<Dock> docks_;
  bool by_hand_ = false;
};

}  // namespace ws::app
