#include "app/window/tab_strip.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QStyle>

#include "app/widgets/pane.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kEnd = 6;        // free behind the last tab
constexpr int kSqueezed = 10;  // what a tab is narrower in a tight row, as the style sheet has it

}  // namespace

void TabRow::tabLayoutChange() {
  QTabBar::tabLayoutChange();
  emit laidOut();
}

TabStrip::TabStrip(QWidget* parent)
    : QWidget(parent), row_(new TabRow(this)), more_(option_button(tr("Tabs without room"), this)) {
  row_->setObjectName("strip");
  row_->setDrawBase(false);
  row_->setExpanding(false);
  row_->setUsesScrollButtons(false);
  row_->setElideMode(Qt::ElideNone);
  row_->setFixedHeight(31);
  row_->setFont(ui_font(12.5));
  row_->setAccessibleName(tr("Tabs"));
  more_->setMenu(new QMenu(more_));
  more_->hide();
  auto* line = new QHBoxLayout(this);
  line->setContentsMargins(0, 0, kEnd, 0);
  line->setSpacing(4);
  line->addWidget(row_, 1);
  line->addWidget(more_);
  connect(more_->menu(), &QMenu::aboutToShow, this, &TabStrip::fillMenu);
  connect(row_, &TabRow::laidOut, this, &TabStrip::fit);
  connect(row_, &QTabBar::currentChanged, this, &TabStrip::fit);
}

// The tabs move together first.
int TabStrip::squeeze() {
  int all = 0;
  for (int i = 0; i < row_->count(); ++i) all += row_->widthOf(i);
  const int wide = tight_ ? all + kSqueezed * row_->count() : all;
  if (tight_ == (wide > width() - kEnd)) return all;
  tight_ = !tight_;
  row_->setProperty("tight", tight_);
  row_->style()->unpolish(row_);
  row_->style()->polish(row_);
  QEvent wider(QEvent::StyleChange);  // else the tabs keep the places that they had
  QApplication::sendEvent(row_, &wider);
  return tight_ ? wide - kSqueezed * row_->count() : wide;
}

// The first tabs stay where they are; the one in front always has a place.
void TabStrip::fit() {
  if (fitting_ || row_->count() == 0) return;
  fitting_ = true;
  const bool enough = squeeze() <= width() - kEnd;
  more_->setText(tr("%1 more").arg(row_->count()));  // as wide as it can get
  int left = width() - kEnd - (enough ? 0 : more_->sizeHint().width() + 8);
  if (row_->currentIndex() >= 0) left -= row_->widthOf(row_->currentIndex());
  int hidden = 0;
  for (int i = 0; i < row_->count(); ++i) {
    const bool front = i == row_->currentIndex();
    const bool fits = enough || front || (hidden == 0 && row_->widthOf(i) <= left);
    if (!front) left -= row_->widthOf(i);
    row_->setTabVisible(i, fits);
    hidden += fits ? 0 : 1;
  }
  more_->setText(tr("%1 more").arg(hidden));
  more_->setVisible(hidden > 0);
  layout()->activate();
  fitting_ = false;
}

void TabStrip::fillMenu() {
  more_->menu()->clear();
  for (int i = 0; i < row_->count(); ++i)
    if (!row_->isTabVisible(i))
      more_->menu()->addAction(row_->tabText(i), row_, [this, i] { row_->setCurrentIndex(i); });
}

}  // namespace ws::app
