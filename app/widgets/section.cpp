#include "app/widgets/section.h"

#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/widgets/theme.h"

namespace ws::app {

SectionTitle::SectionTitle(const QString& title, QWidget* parent) : QAbstractButton(parent) {
  setText(title);
  setCheckable(true);
  setChecked(true);
  setAccessibleName(title);
  setFocusPolicy(Qt::StrongFocus);
  setFixedHeight(24);
}

void SectionTitle::setNote(const QString& note) {
  note_ = note;
  setAccessibleDescription(note);
  update();
}

QToolButton* SectionTitle::addHelp() {
  help_ = new QToolButton(this);
  help_->setText("?");
  help_->setObjectName("help");
  help_->setCheckable(true);
  help_->setFont(ui_font(10.5, 600));
  help_->setAccessibleName(tr("Explain %1").arg(text()));
  help_->setToolTip(tr("Explain these settings"));
  const double title = QFontMetricsF(ui_font(12.5, 600)).horizontalAdvance(text());
  help_->setGeometry(22 + static_cast<int>(title) + 8, 4, 16, 16);
  return help_;
}

double SectionTitle::noteLeft() const {
  return help_ ? help_->geometry().right() + 10 : 32 + QFontMetricsF(ui_font(12.5, 600)).horizontalAdvance(text());
}

void SectionTitle::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.fillRect(rect(), t.header);
  painter.fillRect(QRect(0, height() - 1, width(), 1), t.border);
  theme_icon(isChecked() ? "down" : "right", &Theme::secondary).paint(&painter, QRect(5, 5, 14, 14));
  painter.setFont(ui_font(12.5, 600));
  painter.setPen(t.text);
  painter.drawText(QRect(22, 0, width(), height() - 1), Qt::AlignLeft | Qt::AlignVCenter, text());
  painter.setPen(t.quiet);
  const QRectF space(noteLeft(), 0, width() - 10 - noteLeft(), height() - 1);
  for (double size : {11.5, 10.5}) {
    painter.setFont(ui_font(size));
    if (QFontMetricsF(painter.font()).horizontalAdvance(note_) <= space.width()) break;
  }
  const QString note = QFontMetricsF(painter.font()).elidedText(note_, Qt::ElideRight, space.width());
  painter.drawText(space, Qt::AlignRight | Qt::AlignVCenter, note);
  if (!hasFocus()) return;
  painter.setPen(QPen(t.focus, 2));
  painter.drawRect(rect().adjusted(1, 1, -1, -2));
}

Section::Section(const QString& title, QWidget* parent)
    : QWidget(parent), title_(new SectionTitle(title, this)), content_(new QWidget(this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(title_);
  column->addWidget(content_);
  body_ = new QVBoxLayout(content_);
  body_->setContentsMargins(10, 7, 8, 8);
  body_->setSpacing(6);
  connect(title_, &QAbstractButton::toggled, this, [this](bool open) {
    content_->setVisible(open);
    showNote();
    emit toggled(open);
  });
}

void Section::addHelp() {
  connect(title_->addHelp(), &QToolButton::toggled, this, [this](bool on) {
    if (on) setOpen(true);  // in a folded section there is nothing to see
    emit helpToggled(on);
  });
}

bool Section::isOpen() const { return title_->isChecked(); }
void Section::setOpen(bool open) { title_->setChecked(open); }

void Section::setNotes(const QString& open, const QString& folded) {
  open_note_ = open, folded_note_ = folded;
  showNote();
}

void Section::showNote() { title_->setNote(isOpen() ? open_note_ : folded_note_); }

}  // namespace ws::app
