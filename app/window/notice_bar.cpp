#include "app/window/notice_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>

#include "app/widgets/theme.h"

namespace ws::app {

NoticeBar::NoticeBar(QWidget* parent)
    : QWidget(parent),
      icon_(new QLabel(this)),
      sentence_(new QLabel(this)),
      row_(new QHBoxLayout(this)),
      dismiss_(new QPushButton(tr("Dismiss"), this)) {
  setAccessibleName(tr("Notice"));
  row_->setContentsMargins(12, 5, 8, 5);
  row_->setSpacing(8);
  sentence_->setWordWrap(true);
  sentence_->setTextFormat(Qt::PlainText);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  dismiss_->setProperty("small", true);
  connect(dismiss_, &QPushButton::clicked, this, &NoticeBar::dismiss);
  row_->addWidget(icon_);
  row_->addWidget(sentence_, 1);
  row_->addWidget(dismiss_);
  refreshIcon();
  hide();
}

void NoticeBar::refreshIcon() { icon_->setPixmap(theme_icon("warn", theme().worse).pixmap(15, 15)); }

QString NoticeBar::text() const { return isHidden() ? QString() : sentence_->text(); }

void NoticeBar::tell(const QString& sentence, std::vector<NoticeAction> actions) {
  for (QPushButton* button : actions_) button->deleteLater();
  actions_.clear();
  for (NoticeAction& action : actions) {
    auto* button = new QPushButton(action.text, this);
    button->setProperty("small", true);
    button->setProperty("primary", actions_.empty());
    connect(button, &QPushButton::clicked, this, std::move(action.run));
    row_->insertWidget(row_->count() - 1, button);
    actions_.push_back(button);
  }
  sentence_->setText(sentence);
  setAccessibleDescription(sentence);
  show();
}

void NoticeBar::dismiss() {
  sentence_->clear();
  for (QPushButton* button : actions_) button->deleteLater();
  actions_.clear();
  hide();
}

void NoticeBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme().raised);
  painter.fillRect(QRect(0, 0, 3, height()), theme().worse);
  painter.fillRect(QRect(0, height() - 1, width(), 1), theme().border);
}

}  // namespace ws::app
