#include "app/window/tab_strip.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "app/pages/page.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kGroupsHeight = 31, kPagesHeight = 31, kSides = 8, kSpacing = 10;
constexpr const char* kGap = "  ";  // between a name and its note

}  // namespace

TabRow::TabRow(const QString& style, const QString& name, QWidget* parent) : QTabBar(parent) {
  setObjectName(style);
  setDrawBase(false);
  setExpanding(false);
  setElideMode(Qt::ElideNone);
  setFont(ui_font(12.5));
  setAccessibleName(name);
}

void TabRow::reserveNote(int tab) {
  noted_.insert(tab);
  setTabText(tab, tabText(tab));  // lays the tabs out again
}

void TabRow::setNote(int tab, const QString& note) {
  setTabText(tab, note.isEmpty() ? nameOf(tab) : nameOf(tab) + kGap + note);
}

QString TabRow::nameOf(int tab) const { return tabText(tab).section(kGap, 0, 0); }

void TabRow::setOffered(int tab, bool offered, const QString& tip) {
  setTabToolTip(tab, tip);
  setAccessibleTabName(tab, offered ? QString() : nameOf(tab) + ": " + tip);
  if (isTabEnabled(tab) != offered)
    setTabEnabled(tab, offered);  // Qt may choose another tab here, so only if it changes
}

QSize TabRow::tabSizeHint(int tab) const {
  QSize size = QTabBar::tabSizeHint(tab);
  if (!noted_.contains(tab)) return size;
  const auto width = [this](const QString& text) { return fontMetrics().size(Qt::TextShowMnemonic, text).width(); };
  size.rwidth() += std::max(width(nameOf(tab) + kGap + "9"), width(tabText(tab))) - width(tabText(tab));
  return size;
}

TabStrip::TabStrip(QWidget* parent)
    : QWidget(parent),
      groups_(new TabRow("strip", tr("Tabs"), this)),
      pages_(new TabRow("pages", tr("Pages of this tab"), this)),
      answers_(new QLabel(this)),
      row_(new QHBoxLayout) {
  auto* below = new QWidget(this);
  below->setFixedHeight(kPagesHeight);
  below->setLayout(row_);
  groups_->setFixedHeight(kGroupsHeight);
  pages_->setFixedHeight(kPagesHeight - 1);
  pages_->setUsesScrollButtons(false);
  answers_->setFont(ui_font(11.5));
  answers_->setForegroundRole(QPalette::PlaceholderText);
  row_->setContentsMargins(kSides, 0, kSides, 0);
  row_->setSpacing(kSpacing);
  row_->addWidget(pages_);
  row_->addWidget(answers_);
  row_->addStretch(1);
  auto* rows = new QVBoxLayout(this);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->setSpacing(0);
  rows->addWidget(groups_);
  rows->addWidget(below);
  setFixedHeight(kGroupsHeight + kPagesHeight);
  connect(groups_, &QTabBar::currentChanged, this, &TabStrip::openGroup);
  connect(pages_, &QTabBar::currentChanged, this, &TabStrip::showPage);
}

void TabStrip::takePicker(QWidget* picker) {
  row_->addWidget(picker);
  picker->hide();
  QList<QPushButton*> buttons = picker->findChildren<QPushButton*>();
  if (auto* alone = qobject_cast<QPushButton*>(picker)) buttons << alone;
  for (QPushButton* button : buttons) button->setProperty("small", true);
}

int TabStrip::addPage(const Page& page) {
  const int number = pages_->count();
  if (groups_->count() == 0 || groups_->nameOf(groups_->count() - 1) != page.group) {
    last_.push_back(number);
    const QSignalBlocker quiet(groups_);  // its page comes below
    groups_->addTab(page.group);
  }
  const int group = groups_->count() - 1;
  list_.push_back({group, page.answers, page.needs, page.picker});
  if (page.picker) takePicker(page.picker);
  pages_->addTab(page.title);
  pages_->setOffered(number, true, page.answers);
  pages_->setTabVisible(number, number == pages_->currentIndex());
  if (page.notes) pages_->reserveNote(number), groups_->reserveNote(group);
  return number;
}

int TabStrip::firstOf(int group) const {
  if (const int last = last_[static_cast<size_t>(group)]; list_[static_cast<size_t>(last)].offered) return last;
  for (int page = 0; page < pages_->count(); ++page)
    if (groupOf(page) == group && list_[static_cast<size_t>(page)].offered) return page;
  return -1;
}

void TabStrip::openGroup(int group) {
  if (group >= 0 && groupOf(pages_->currentIndex()) != group) pages_->setCurrentIndex(std::max(0, firstOf(group)));
}

void TabStrip::open(int page) {
  wanted_ = page;
  if (list_[static_cast<size_t>(page)].offered) pages_->setCurrentIndex(page);
}

// A grey page stays closed, whoever asks for it. The pages of its group come first: Qt leaves a tab that is hidden.
void TabStrip::showPage(int page) {
  if (page < 0 || page >= static_cast<int>(list_.size())) return;
  const Entry& front = list_[static_cast<size_t>(page)];
  if (!front.offered) return pages_->setCurrentIndex(front_);
  front_ = page, wanted_ = -1;
  last_[static_cast<size_t>(front.group)] = page;
  for (const bool shown : {true, false})
    for (int i = 0; i < pages_->count(); ++i)
      if ((groupOf(i) == front.group) == shown && pages_->isTabVisible(i) != shown) pages_->setTabVisible(i, shown);
  groups_->setCurrentIndex(front.group);
  answers_->setText(front.answers);
  for (const Entry& entry : list_)
    if (entry.picker) entry.picker->setVisible(entry.picker == front.picker);
  fit();
}

void TabStrip::setOffered(int page, bool offered) {
  Entry& entry = list_[static_cast<size_t>(page)];
  if (std::exchange(entry.offered, offered) == offered) return;
  if (!offered && pages_->currentIndex() == page) pages_->setCurrentIndex(0);
  const auto tip = [](const QString& answers, const QString& needs, bool can) { return can ? answers : (answers + '\n' + needs).trimmed(); };
  pages_->setOffered(page, offered, tip(entry.answers, entry.needs, offered));
  const bool alone = std::ranges::count(list_, entry.group, &Entry::group) == 1, any = firstOf(entry.group) >= 0;
  groups_->setOffered(entry.group, any, tip(alone ? entry.answers : QString(), entry.needs, any));
  if (offered && wanted_ == page) pages_->setCurrentIndex(page);
}

void TabStrip::setNote(int page, const QString& note) {
  pages_->setNote(page, note);
  groups_->setNote(groupOf(page), note);
  fit();
}

int TabStrip::pageNamed(const QString& name) const {
  const auto same = [&name](const QString& other) { return other.compare(name, Qt::CaseInsensitive) == 0; };
  if (same("Live")) return pageNamed("Overview");  // its name in versions before
  int begins = -1;
  for (int i = pages_->count() - 1; i >= 0; --i) {
    if (same(nameOf(i))) return i;
    if (nameOf(i).startsWith(name, Qt::CaseInsensitive)) begins = i;
  }
  for (int group = 0; group < groups_->count(); ++group)
    if (same(groups_->nameOf(group))) return std::max(0, firstOf(group));
  return begins;
}

void TabStrip::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fit();
}

// A picker may have another width now.
bool TabStrip::event(QEvent* event) {
  const bool done = QWidget::event(event);
  if (event->type() == QEvent::LayoutRequest) fit();
  return done;
}

// A group of one page needs no second name. What the page answers gives way to its pickers.
void TabStrip::fit() {
  const int page = pages_->currentIndex();
  if (page < 0 || page >= static_cast<int>(list_.size())) return;
  const Entry& front = list_[static_cast<size_t>(page)];
  const bool several = std::ranges::count(list_, front.group, &Entry::group) > 1;
  const int wanted = pages_->sizeHint().width();
  if (pages_->isVisibleTo(this) != several) pages_->setVisible(several);
  if (pages_->width() != wanted) pages_->setFixedWidth(wanted);
  int left = width() - 2 * kSides - kSpacing;
  if (several) left -= wanted + kSpacing;
  if (front.picker) left -= front.picker->sizeHint().width() + kSpacing;
  const bool fits = answers_->sizeHint().width() <= left;
  if (answers_->isVisibleTo(this) != fits) answers_->setVisible(fits);
}

void TabStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(QRect(0, kGroupsHeight, width(), kPagesHeight), theme().base);
  painter.fillRect(QRect(0, height() - 1, width(), 1), theme().border);
}

}  // namespace ws::app
