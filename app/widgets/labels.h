// Labels and small buttons, made in one line.
#pragma once
#include <QLabel>
#include <QPushButton>

namespace ws::app {

struct LabelLook {
  bool wraps = true;
  bool quiet = false;       // in the colour of remarks
  bool plain = false;       // words of another program or machine: markup is shown as it is
  bool selectable = false;  // by mouse
};

inline QLabel* label(QWidget* parent, const QFont& font, LabelLook look = {}, const QString& text = {}) {
  auto* made = new QLabel(text, parent);
  made->setFont(font);
  made->setWordWrap(look.wraps);
  if (look.quiet) made->setForegroundRole(QPalette::PlaceholderText);
  if (look.plain) made->setTextFormat(Qt::PlainText);
  if (look.selectable) made->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return made;
}

inline QPushButton* small_button(const QString& text, QWidget* parent, const QString& tip = {}) {
  auto* button = new QPushButton(text, parent);
  button->setProperty("small", true);
  button->setToolTip(tip);
  return button;
}

}  // namespace ws::app
