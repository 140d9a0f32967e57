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

void TabStrip::setOffered(int tab, bool offered) {
  if (offered == !left_out_.contains(tab)) return;
  offered ? static_cast<void>(left_out_.erase(tab)) : static_cast<void>(left_out_.insert(tab));
  if (!offered && row_->currentIndex() == tab) row_->setCurrentIndex(0);
  if (!offered && chosen_ == tab) chosen_ = -1;
  fit();
}

// If a tab with a note is hidden ("Insights  3"), the button names it: "More · Insights 3".
void TabStrip::fit() {
  if (fitting_ || row_->count() == 0) return;
  fitting_ = true;
  if (row_->currentIndex() >= kMainTabs) chosen_ = row_->currentIndex();
  if (const int front = row_->currentIndex(); !row_->isTabVisible(front)) row_->setTabVisible(front, true);
  QString note;
  bool more = false;
  for (int i = 0; i < row_->count(); ++i) {
    const bool offered = !left_out_.contains(i);
    const bool main = i < kMainTabs, shown = main || i == row_->currentIndex() || (offered && i == chosen_);
    if (row_->isTabVisible(i) != shown) row_->setTabVisible(i, shown);
    if (main && row_->isTabEnabled(i) != offered) {  // Qt may choose another tab here, so only if it changes
      row_->setTabEnabled(i, offered);
      row_->setTabToolTip(i, offered ? QString() : tr("Not for a recorded program"));
    }
    more |= offered && !main;
    if (offered && !shown && row_->tabText(i).contains("  ")) note = QString::fromUtf8(" · ") + row_->tabText(i).simplified();
  }
  more_->setText(tr("More") + note);
  more_->setVisible(more);
  row_->updateGeometry();
  fitting_ = false;
}

void TabStrip::keep(int tab) {
  chosen_ = tab;
  fit();
}

void TabStrip::fillMenu() {
  more_->menu()->clear();
  for (int i = 0; i < row_->count(); ++i)
    if (!row_->isTabVisible(i) && !left_out_.contains(i))
      more_->menu()->addAction(row_->tabText(i), row_, [this, i] { row_->setCurrentIndex(i); });
}

}  // namespace ws::app
