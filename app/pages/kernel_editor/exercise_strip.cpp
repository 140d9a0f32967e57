#include "app/pages/kernel_editor/exercise_strip.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {

ExerciseStrip::ExerciseStrip(QWidget* parent)
    : QWidget(parent), title_(new QLabel(this)), task_(new QLabel(this)), result_(new QLabel(this)), hint_(new QPushButton(tr("Hint"), this)),
      hand_in_(new QPushButton(tr("Copy Result"), this)) {
  title_->setFont(ui_font(12.5, 600));
  result_->setFont(number_font(12, 600));
  task_->setFont(ui_font(12)), task_->setWordWrap(true), task_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  hand_in_->setToolTip(tr("Copies one line of JSON, to hand in."));
  auto* words = new QVBoxLayout;
  words->setSpacing(2);
  words->addWidget(title_), words->addWidget(task_);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 12, 6);
  row->addLayout(words, 1), row->addWidget(result_), row->addWidget(hint_), row->addWidget(hand_in_);
  connect(hint_, &QPushButton::clicked, this, &ExerciseStrip::showHint);
  connect(hand_in_, &QPushButton::clicked, this, &ExerciseStrip::handInWanted);
  setExercise({});
}

void ExerciseStrip::setExercise(const std::optional<Exercise>& exercise) {
  exercise_ = exercise, hints_ = 0;
  setVisible(exercise.has_value());
  if (!exercise) return;
  title_->setText(tr("Exercise %1: %2").arg(text(exercise->name.substr(0, exercise->name.find('-'))), text(exercise->title)));
  task_->setText(text(exercise->text));
  task_->setToolTip(text(exercise->look));
  result_->setText({});
  hint_->setText(tr("Hint")), hint_->setEnabled(!exercise->hints.empty());
  hand_in_->setEnabled(false);
}

void ExerciseStrip::showHint() {
  if (!exercise_ || hints_ >= exercise_->hints.size()) return;
  task_->setText(task_->text() + '\n' + tr("Hint: %1").arg(text(exercise_->hints[hints_])));
  ++hints_;
  hint_->setEnabled(hints_ < exercise_->hints.size());
}

void ExerciseStrip::setResult(const ExerciseResult& r) {
  const QString times = tr("yours %1 µs · goal %2 µs · built in %3 µs").arg(fixed_text(r.own_us, 2), fixed_text(r.goal_us, 2), fixed_text(r.built_in_us, 2));
  const QString reached = r.reached ? tr("Goal reached: ") : QString();
  result_->setText(r.right ? reached + times : tr("not right yet"));
  hand_in_->setEnabled(r.right);
}

QString ExerciseStrip::resultText() const { return result_->text(); }

}  // namespace ws::app
