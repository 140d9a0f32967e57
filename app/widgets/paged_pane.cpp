#include "app/widgets/paged_pane.h"

#include <QHBoxLayout>
#include <QPainter>
#include <QStackedWidget>
#include <QTabBar>
#include <QVBoxLayout>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr const char *kHidden = "hiddenOption", *kGivesWay = "givesWay";

}  // namespace

PagedPane::PagedPane(const QString& name, QWidget* parent)
    : QWidget(parent), strip_(new QTabBar(this)), pages_(new QStackedWidget(this)) {
  setAccessibleName(name);
  strip_->setObjectName("strip");
  strip_->setDrawBase(false);
  strip_->setExpanding(false);
  strip_->setFont(ui_font(12.5, 600));
  strip_->setFixedHeight(28);
  strip_->setAccessibleName(name);
  auto* bar = new QWidget(this);
  bar->setFixedHeight(29);
  row_ = new QHBoxLayout(bar);
  row_->setContentsMargins(2, 0, 6, 0);
  row_->setSpacing(6);
  row_->addWidget(strip_);
  row_->addStretch(1);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(1, 1, 1, 1);
  column->setSpacing(0);
  column->addWidget(bar);
  column->addWidget(pages_, 1);
  connect(strip_, &QTabBar::currentChanged, this, &PagedPane::show);
}

int PagedPane::addPage(const QString& name, QWidget* page) {
  pages_->addWidget(page);
  return strip_->addTab(name);
}

void PagedPane::addOption(int page, QWidget* option) {
  row_->addWidget(option);
  options_.emplace_back(page, option);
  option->setVisible(page == this->page() && !option->property(kHidden).toBool());
  fit();
}

void PagedPane::addExplanation(int page, QWidget* option) {
  option->setProperty(kGivesWay, true);
  addOption(page, option);
}

void PagedPane::setPageVisible(int page, bool visible) {
  if (strip_->isTabVisible(page) == visible) return;
  strip_->setTabVisible(page, visible);
  fit();
}

void PagedPane::setOptionVisible(QWidget* option, bool visible) {
  option->setProperty(kHidden, !visible);
  for (const auto& [owner, each] : options_)
    if (each == option) option->setVisible(visible && owner == page());
  fit();
}

int PagedPane::page() const { return strip_->currentIndex(); }

void PagedPane::setPage(int page) { strip_->setCurrentIndex(page); }

void PagedPane::show(int page) {
  pages_->setCurrentIndex(page);
  for (const auto& [owner, option] : options_) option->setVisible(owner == page && !option->property(kHidden).toBool());
  fit();
}

// Qt 6.4 does not ask again for the size of a strip whose tabs were shown or hidden.
void PagedPane::fit() {
  strip_->setMinimumWidth(strip_->sizeHint().width());
  strip_->updateGeometry();
  const QMargins around = row_->contentsMargins();
  int left = width() - 2 - around.left() - around.right() - strip_->minimumWidth();
  const auto shown = [this](QWidget* option, int owner) { return owner == page() && !option->property(kHidden).toBool(); };
  for (const auto& [owner, option] : options_)
    if (shown(option, owner) && !option->property(kGivesWay).toBool()) left -= option->sizeHint().width() + row_->spacing();
  for (const auto& [owner, option] : options_)
    if (option->property(kGivesWay).toBool()) option->setVisible(shown(option, owner) && option->sizeHint().width() + row_->spacing() <= left);
}

void PagedPane::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme().base);
  painter.fillRect(QRect(1, 1, width() - 2, 29), theme().header);
  painter.setPen(theme().border);
  painter.drawLine(0, 29, width(), 29);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

}  // namespace ws::app
