#include "app/widgets/primary_button.h"

#include <QCoreApplication>
#include <QEvent>
#include <QStyle>
#include <algorithm>
#include <utility>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {

bool is_primary(const QPushButton& button) { return button.property("primary").toBool(); }

}  // namespace

// QDialogButtonBox has styled the button before it returns it, so the style is applied again.
void make_primary(QPushButton& button, bool primary) {
  button.setProperty("primary", primary);
  button.style()->unpolish(&button);
  button.style()->polish(&button);
}

QIcon icon_of_primary(const QPushButton& button, const QString& name) {
  return is_primary(button) ? theme_icon(name, Qt::white) : theme_icon(name);
}

OnePrimary::OnePrimary(QPushButton* button, std::function<void()> changed) : QObject(button), button_(button), changed_(std::move(changed)) {
  make_primary(*button);
  qApp->installEventFilter(this);
}

bool OnePrimary::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::Show && event->type() != QEvent::Hide) return false;
  const auto* other = qobject_cast<QPushButton*>(watched);
  if (other && other != button_ && is_primary(*other) && other->window() == button_->window()) update();
  return false;
}

void OnePrimary::allow(bool blue) {
  if (std::exchange(allowed_, blue) != blue) update();
}

void OnePrimary::update() {
  const QList<QPushButton*> all = button_->window()->findChildren<QPushButton*>();
  const bool alone = std::ranges::none_of(
      all, [this](const QPushButton* one) { return one != button_ && is_primary(*one) && one->isVisible() && one->window() == button_->window(); });
  const bool blue = allowed_ && alone;
  if (blue == is_primary(*button_)) return;
  make_primary(*button_, blue);
  changed_();
}

}  // namespace ws::app
