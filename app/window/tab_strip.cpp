#include "app/window/tab_strip.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <iterator>

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

// True for one of the first offered tabs.
bool TabStrip::isMain(int tab) const {
  const auto before = std::distance(left_out_.begin(), left_out_.lower_bound(tab));
  return !left_out_.contains(tab) && tab - static_cast<int>(before) < kMainTabs;
}

// If a tab is hidden, the button shows its note ("Insights  3").
void TabStrip::fit() {
  if (fitting_ || row_->count() == 0) return;
  fitting_ = true;
  if (!isMain(row_->currentIndex())) chosen_ = row_->currentIndex();
  QString note;
  bool more = false;
  for (int i = 0; i < row_->count(); ++i) {
    const bool offered = !left_out_.contains(i);
    const bool shown = isMain(i) || i == row_->currentIndex() || (offered && i == chosen_);
    if (row_->isTabVisible(i) != shown) row_->setTabVisible(i, shown);
    more |= offered && !isMain(i);
    if (offered && !shown && row_->tabText(i).contains("  ")) note = "  " + row_->tabText(i).section("  ", 1);
  }
  more_->setText(tr("More") + note);
  more_->setVisible(more);
  row_->updateGeometry();
  fitting_ = false;
}

void TabStrip::fillMenu() {
  more_->menu()->clear();
  for (int i = 0; i < row_->count(); ++i)
    if (!row_->isTabVisible(i) && !left_out_.contains(i))
      more_->menu()->addAction(row_->tabText(i), row_, [this, i] { row_->setCurrentIndex(i); });
}

}  // namespace ws::app
