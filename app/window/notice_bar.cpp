#include "app/window/notice_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>

#include "app/widgets/icon_label.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kWidest = 900, kMargin = 10;

}  // namespace

NoticeBar::NoticeBar(QWidget* parent, int above)
    : QWidget(parent),
      icon_(new IconLabel(theme_icon("warn", &Theme::worse), this)),
      sentence_(new QLabel(this)),
      row_(new QHBoxLayout(this)),
      dismiss_(new QPushButton(tr("Dismiss"), this)),
      above_(above) {
  setAccessibleName(tr("Notice"));
  row_->setContentsMargins(14, 7, 8, 7);
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

void NoticeBar::tell(const QString& sentence, std::vector<NoticeAction> actions) {
  show(sentence, std::move(actions), true);
}

void NoticeBar::conclude(const QString& sentence, std::vector<NoticeAction> actions) {
  show(sentence, std::move(actions), false);
}

void NoticeBar::add(const QString& sentence) {
  const QStringList lines = text().isEmpty() || !problem_ ? QStringList() : text().split('\n');
  if (!lines.contains(sentence)) tell((lines + QStringList{sentence}).join('\n'));
}

void NoticeBar::show(const QString& sentence, std::vector<NoticeAction> actions, bool problem) {
  for (QPushButton* button : actions_) button->deleteLater();
  actions_.clear();
  problem_ = problem;
  icon_->setVisible(problem);
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
  setVisible(true);
  place();
  raise();
  update();
}

void NoticeBar::place() {
  const QSize room = parentWidget()->size();
  const int width = std::min(kWidest, room.width() - 2 * kMargin);
  row_->activate();
  const int height = std::max(row_->heightForWidth(width), row_->minimumSize().height());
  setGeometry((room.width() - width) / 2, room.height() - above_ - height - kMargin, width, height);
}

bool NoticeBar::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::Resize && !isHidden()) place();
  return QWidget::eventFilter(object, event);
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
  painter.setPen(theme().strong_border);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
  painter.fillRect(QRect(0, 0, 3, height()), problem_ ? theme().worse : theme().better);
}

}  // namespace ws::app
