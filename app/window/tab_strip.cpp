#include "app/window/tab_strip.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>

#include "app/widgets/pane.h"
#include "app/widgets/theme.h"

namespace ws::app {

void TabRow::tabLayoutChange() {
  QTabBar::tabLayoutChange();
  emit laidOut();
}

TabStrip::TabStrip(QWidget* parent)
    : QWidget(parent), row_(new TabRow(this)), more_(option_button(tr("More tabs"), this)) {
  row_->setObjectName("strip");
  row_->setDrawBase(false);
  row_->setExpanding(false);
  row_->setUsesScrollButtons(false);
  row_->setElideMode(Qt::ElideNone);
  row_->setFixedHeight(31);
  row_->setFont(ui_font(12.5));
  row_->setAccessibleName(tr("Tabs"));
  more_->setMenu(new QMenu(more_));
  more_->setFont(ui_font(12.5));
  auto* line = new QHBoxLayout(this);
  line->setContentsMargins(0, 0, 6, 0);
  line->setSpacing(4);
  line->addWidget(row_);
  line->addWidget(more_);
  line->addStretch(1);
  connect(more_->menu(), &QMenu::aboutToShow, this, &TabStrip::fillMenu);
  connect(row_, &TabRow::laidOut, this, &TabStrip::fit);
  connect(row_, &QTabBar::currentChanged, this, &TabStrip::fit);
}

// A note on a tab that is out of sight ("Insights  3") stands on the button.
void TabStrip::fit() {
  if (fitting_ || row_->count() == 0) return;
  fitting_ = true;
  if (row_->currentIndex() >= kMainTabs) chosen_ = row_->currentIndex();
  QString note;
  for (int i = kMainTabs; i < row_->count(); ++i) {
    if (row_->isTabVisible(i) != (i == chosen_)) row_->setTabVisible(i, i == chosen_);
    if (i != chosen_ && row_->tabText(i).contains("  ")) note = "  " + row_->tabText(i).section("  ", 1);
  }
  more_->setText(tr("More") + note);
  more_->setVisible(row_->count() > kMainTabs);
  row_->updateGeometry();
  fitting_ = false;
}

void TabStrip::fillMenu() {
  more_->menu()->clear();
  for (int i = kMainTabs; i < row_->count(); ++i)
    if (!row_->isTabVisible(i))
      more_->menu()->addAction(row_->tabText(i), row_, [this, i] { row_->setCurrentIndex(i); });
}

}  // namespace ws::app
