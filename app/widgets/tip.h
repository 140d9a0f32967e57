// Tooltips for content that a widget paints itself.
#pragma once
#include <QHelpEvent>
#include <QToolTip>
#include <QWidget>

namespace ws::app {

// True if the event asks for a tooltip; it is then shown. `text_at` returns the text at a
// place, or empty for no tooltip.
template <class TextAt>
bool showed_tip(QEvent* event, QWidget* widget, const TextAt& text_at) {
  if (event->type() != QEvent::ToolTip) return false;
  const auto* help = static_cast<const QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), text_at(QPointF(help->pos())), widget);
  return true;
}

}  // namespace ws::app
