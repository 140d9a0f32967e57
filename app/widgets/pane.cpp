#include "app/widgets/pane.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <functional>
#include <utility>

#include "app/widgets/theme.h"
#include "app/text/units.h"

namespace ws::app {

// The note beside the title: the whole note if it fits, otherwise a shorter one, otherwise none.
class NoteLabel : public QLabel {
 public:
  using QLabel::QLabel;
  QString brief;
  std::function<void()> resized;
  bool fits(const QString& words) const { return fontMetrics().horizontalAdvance(words) <= width(); }

 protected:
  void paintEvent(QPaintEvent*) override {
    const QString& words = fits(text()) ? text() : brief;
    if (!fits(words)) return;
    QPainter painter(this);
    painter.setPen(palette().color(foregroundRole()));
    painter.drawText(rect(), Qt::AlignLeft | Qt::AlignVCenter, words);
  }
  void resizeEvent(QResizeEvent* event) override {
    QLabel::resizeEvent(event);
    if (resized) resized();
  }
};

Legend::Legend(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  setFixedHeight(20);
}

void Legend::setItems(std::vector<LegendItem> items) {
  const QSize before = sizeHint();
  items_ = std::move(items);
  QStringList said;
  for (const LegendItem& item : items_) said << run_letter(item.slot) + " " + item.value;
  setAccessibleName(tr("Values at the cursor"));
  setAccessibleDescription(said.join(", "));
  if (sizeHint() != before) updateGeometry();
  update();
}

QSize Legend::sizeHint() const {
  double width = 0;
  for (const LegendItem& item : items_)
    width += 15 + 8 + (badgesOnly() ? 0 : 5 + number_width(ui_font(12.5, 600), item.value));
  return {static_cast<int>(width), 20};
}

// A partly visible number would be misread, so show all of it or none.
void Legend::setQuiet(bool quiet) {
  if (std::exchange(quiet_, quiet) != quiet) update();
}

bool Legend::showsValues() const { return !badgesOnly() && width() + 1 >= sizeHint().width(); }

// Badges move closer together if there is little space.
double Legend::badgePitch() const {
  const double each = static_cast<double>(width()) / static_cast<double>(std::max<size_t>(1, items_.size()));
  return std::clamp(each, 16.0, 23.0);
}

void Legend::paintEvent(QPaintEvent*) {
  if (quiet_) return;
  QPainter painter(this);
  double x = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    const LegendItem& item = items_[i];
    if (!showsValues()) {
      const bool last = i + 1 == items_.size();
      if (!last && x + 2 * badgePitch() > width() + 8) {  // no space for this one and the next
        painter.setPen(theme().secondary);
        painter.setFont(ui_font(11));
        painter.drawText(QRectF(x, 0, 24, 20), Qt::AlignVCenter, QString("+%1").arg(items_.size() - i));
        return;
      }
      draw_badge(painter, QRectF(x, 2.5, 15, 15), item.slot);
      x += badgePitch();
      continue;
    }
    draw_badge(painter, QRectF(x, 2.5, 15, 15), item.slot);
    x += 20;
    painter.setFont(ui_font(12.5, 600));
    painter.setPen(theme().text);
    const double width = number_width(painter.font(), item.value);
    draw_number(painter, QRectF(x, 0, width, 20), Qt::AlignLeft | Qt::AlignVCenter, item.value);
    x += width + 8;
  }
}

Pane::Pane(const QString& title, QWidget* parent)
    : QWidget(parent),
      bar_(new QWidget(this)),
      title_(new QLabel(title, bar_)),
      note_(new NoteLabel(bar_)),
      legend_(new Legend(bar_)) {
  setObjectName("pane");
  setAccessibleName(title);
  bar_->setFixedHeight(28);
  row_ = new QHBoxLayout(bar_);
  row_->setContentsMargins(9, 0, 6, 0);
  row_->setSpacing(6);
  title_->setFont(ui_font(12.5, 600));
  note_->setFont(ui_font(11.5));
  note_->setObjectName("note");
  note_->setMinimumWidth(0);
  note_->resized = [this] { emit noteResized(); };
  note_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  row_->addWidget(title_);
  row_->addWidget(note_, 1);
  row_->addWidget(legend_);
  column_ = new QVBoxLayout(this);
  column_->setContentsMargins(1, 1, 1, 1);
  column_->setSpacing(0);
  column_->addWidget(bar_);
}

void Pane::setTitle(const QString& title, const QString& note, const QString& brief) {
  title_->setText(title);
  note_->setText(note);
  note_->brief = brief;
  note_->setForegroundRole(QPalette::PlaceholderText);
  setAccessibleName(title);
}

bool Pane::noteFits() const { return note_->fits(note_->text()); }

void Pane::setTitleButton(QPushButton* button) {
  row_->insertWidget(0, button);
  button->setProperty("title", true);
  row_->setContentsMargins(4, 0, 6, 0);
  button->setFont(title_->font());
  title_->hide();
}

QString Pane::title() const { return title_->text(); }

void Pane::addOption(QWidget* option) { row_->addWidget(option); }

void Pane::setBody(QWidget* body) { column_->addWidget(body, 1); }

void Pane::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme().base);
  painter.setPen(theme().border);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

QPushButton* option_button(const QString& name, QWidget* parent) {
  auto* button = new QPushButton(parent);
  button->setProperty("small", true);
  button->setProperty("menu", true);
  button->setFont(ui_font(12));
  button->setAccessibleName(name);
  button->setToolTip(name);
  return button;
}

}  // namespace ws::app
