#include "app/window/notice_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QLayout>
#include <QPainter>
#include <QPushButton>

#include "app/widgets/icon_label.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kSides = 14, kAboveLine = 1, kAboveLines = 7;

}  // namespace

NoticeBar::NoticeBar(QWidget* parent, int height)
    : QWidget(parent),
      icon_(new IconLabel(theme_icon("warn", &Theme::worse), this)),
      sentence_(new QLabel(this)),
      row_(new QHBoxLayout(this)),
      dismiss_(new QPushButton(tr("Dismiss"), this)),
      column_(parent),
      height_(height) {
  setAccessibleName(tr("Notice"));
  row_->setSpacing(8);
  sentence_->setWordWrap(true);
  sentence_->setTextFormat(Qt::PlainText);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  dismiss_->setProperty("small", true);
  connect(dismiss_, &QPushButton::clicked, this, &NoticeBar::dismiss);
  row_->addWidget(icon_);
  row_->addWidget(sentence_, 1);
  row_->addWidget(dismiss_);
  parent->installEventFilter(this);
  hide();
}

QString NoticeBar::text() const { return isHidden() ? QString() : sentence_->text(); }

void NoticeBar::showText(const QString& sentence, std::vector<NoticeAction> actions) {
  show(sentence, std::move(actions), true);
}

void NoticeBar::conclude(const QString& sentence, std::vector<NoticeAction> actions) {
  show(sentence, std::move(actions), false);
}

void NoticeBar::add(const QString& sentence) {
  const QStringList lines = text().isEmpty() || !problem_ ? QStringList() : text().split('\n');
  if (!lines.contains(sentence)) showText((lines + QStringList{sentence}).join('\n'));
}

void NoticeBar::show(const QString& sentence, std::vector<NoticeAction> actions, bool problem) {
  for (QPushButton* button : actions_) button->deleteLater();
  actions_.clear();
  problem_ = problem;
  icon_->setVisible(problem);
  for (NoticeAction& action : actions) {
    auto* button = new QPushButton(action.text, this);
    button->setProperty("small", true);
    connect(button, &QPushButton::clicked, this, std::move(action.run));
    row_->insertWidget(row_->count() - 1, button);
    button->ensurePolished();  // its height decides whether one line is enough
    actions_.push_back(button);
  }
  sentence_->setText(sentence);
  setAccessibleDescription(sentence);
  setVisible(true);
  place();
  raise();
  update();
}

void NoticeBar::keepTo(QWidget* column) {
  column_ = column;
  column->installEventFilter(this);
}

int NoticeBar::heightAt(int width) const {
  row_->activate();
  return std::max(row_->heightForWidth(width), row_->minimumSize().height());
}

void NoticeBar::place() {
  const QRect space = parentWidget()->rect();
  row_->setContentsMargins(kSides, kAboveLine, kSides, kAboveLine);
  if (problem_) takeSpace(0);
  if (const int line = heightAt(space.width()); problem_ && line <= height_)
    return setGeometry(0, space.height() - height_, space.width(), height_);
  row_->setContentsMargins(kSides, kAboveLines, kSides, kAboveLines);
  const QRect column(column_->mapTo(parentWidget(), QPoint()), column_->size());
  const int height = heightAt(column.width()), below = problem_ ? 0 : height_;  // good news leaves the status line in view
  if (!problem_) takeSpace(height);
  setGeometry(column.left(), space.height() - below - height, column.width(), height);
}

void NoticeBar::takeSpace(int height) {
  if (QLayout* pages = column_ == parentWidget() ? nullptr : column_->layout()) pages->setContentsMargins(0, 0, 0, height);
}

bool NoticeBar::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::Resize && !isHidden()) place();
  return QWidget::eventFilter(object, event);
}

void NoticeBar::dismiss() {
  sentence_->clear();
  for (QPushButton* button : actions_) button->deleteLater();
  actions_.clear();
  takeSpace(0);
  hide();
}

void NoticeBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme().raised);
  painter.setPen(theme().strong_border);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
  painter.fillRect(QRect(0, 0, 3, height()), problem_ ? theme().worse : theme().better);
}

}  // namespace ws::app
