#include "app/widgets/headlined.h"

#include <QLabel>
#include <QVBoxLayout>

#include "app/widgets/glossary.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

void make_quiet(QLabel* label) {
  label->setWordWrap(true);
  label->setForegroundRole(QPalette::PlaceholderText);
}

}  // namespace

Headlined::Headlined(QWidget* parent)
    : QWidget(parent), headline_(new QLabel(this)), notes_(new WordLabel(this)), empty_(new QLabel(this)) {
  headline_->setFont(ui_font(17, 600));
  headline_->setWordWrap(true);
  headline_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  make_quiet(notes_), make_quiet(empty_);
  notes_->setFont(ui_font(11));
  empty_->setAlignment(Qt::AlignCenter);
  auto* words = new QVBoxLayout;
  words->setContentsMargins(10, 0, 10, 4);
  words->setSpacing(2);
  words->addWidget(headline_);
  words->addWidget(notes_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addLayout(words);
  column->addWidget(empty_, 1);
}

void Headlined::setPicture(QWidget* picture) {
  picture_ = picture;
  static_cast<QVBoxLayout*>(layout())->insertWidget(1, picture, 1);
}

QString Headlined::headline() const { return headline_->text(); }
QString Headlined::notes() const { return notes_->words(); }

void Headlined::showResult(const QString& headline, const QString& notes, const QString& tip) {
  headline_->setText(headline);
  headline_->setToolTip(tip);
  notes_->setWords(notes);
  headline_->setVisible(true);
  notes_->setVisible(!notes.isEmpty());
  picture_->setVisible(true);
  empty_->setVisible(false);
}

void Headlined::showReason(const QString& why_empty) {
  headline_->clear();
  empty_->setText(why_empty);
  for (QWidget* part : std::initializer_list<QWidget*>{headline_, notes_, picture_}) part->setVisible(false);
  empty_->setVisible(true);
}

}  // namespace ws::app
