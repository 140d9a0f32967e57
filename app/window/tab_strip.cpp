#include "app/window/tab_strip.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <algorithm>

#include "app/widgets/pane.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kRightMargin = 6, kSpacing = 4;

bool has_note(const QString& name) { return name.contains("  "); }

}  // namespace

void TabRow::reserveNote(int tab) {
  noted_.insert(tab);
  setTabText(tab, tabText(tab));  // lays the tabs out again
}

QSize TabRow::tabSizeHint(int tab) const {
  QSize size = QTabBar::tabSizeHint(tab);
  if (!noted_.contains(tab)) return size;
  const auto width = [this](const QString& text) { return fontMetrics().size(Qt::TextShowMnemonic, text).width(); };
  const QString name = tabText(tab).section("  ", 0, 0);
  size.rwidth() += std::max(width(name + "  9"), width(tabText(tab))) - width(tabText(tab));
  return size;
}

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
  line->setContentsMargins(0, 0, kRightMargin, 0);
  line->setSpacing(kSpacing);
  line->addWidget(row_);
  line->addStretch(1);
  line->addWidget(more_);
  connect(more_->menu(), &QMenu::aboutToShow, this, &TabStrip::fillMenu);
  connect(row_, &TabRow::laidOut, this, &TabStrip::fit);
  connect(row_, &QTabBar::currentChanged, this, &TabStrip::fit);
}

void TabStrip::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fit();
}

void TabStrip::setOffered(int tab, bool offered) {
  if (offered == !left_out_.contains(tab)) return;
  offered ? static_cast<void>(left_out_.erase(tab)) : static_cast<void>(left_out_.insert(tab));
  if (!offered && row_->currentIndex() == tab) row_->setCurrentIndex(0);
  if (!offered && chosen_ == tab) chosen_ = -1;
  fit();
}

// Where they do not all fit, the widest of the rest has a place as well: for the one that is chosen under "More".
int TabStrip::mainTabs() const {
  int needed = 0, widest = 0;
  for (int i = 0; i < row_->count(); ++i) needed += row_->widthOf(i), widest = std::max(widest, row_->widthOf(i));
  if (needed <= width() - kRightMargin) return row_->count();
  int left = width() - kRightMargin - kSpacing - more_->sizeHint().width() - widest, tabs = 0;
  while (tabs < row_->count() && left >= row_->widthOf(tabs)) left -= row_->widthOf(tabs++);
  return std::max(1, tabs);
}

// If a tab with a note is hidden ("Insights  3"), the button names it: "More · Insights 3".
void TabStrip::fit() {
  if (fitting_ || row_->count() == 0) return;
  fitting_ = true;
  const int main = mainTabs();
  if (row_->currentIndex() >= main) chosen_ = row_->currentIndex();
  if (const int front = row_->currentIndex(); !row_->isTabVisible(front)) row_->setTabVisible(front, true);
  QString note;
  bool more = false;
  for (int i = 0; i < row_->count(); ++i) {
    const bool offered = !left_out_.contains(i), shown = i < main || i == row_->currentIndex() || i == chosen_;
    if (row_->isTabVisible(i) != shown) row_->setTabVisible(i, shown);
    if (row_->isTabEnabled(i) != offered) {  // Qt may choose another tab here, so only if it changes
      row_->setTabEnabled(i, offered);
      row_->setTabToolTip(i, offered ? QString() : tr("This run has nothing for this page."));
    }
    more |= !shown && offered;
    if (offered && !shown && has_note(row_->tabText(i))) note = QString::fromUtf8(" · ") + row_->tabText(i).simplified();
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
