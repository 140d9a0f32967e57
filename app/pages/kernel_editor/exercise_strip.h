// The exercise that the page works on: its task, its hints, and how far the goal is.
#pragma once
#include <QWidget>
#include <optional>

#include "app/core/kernels/exercise.h"

class QLabel;
class QPushButton;

namespace ws::app {

class ExerciseStrip : public QWidget {
  Q_OBJECT
 public:
  explicit ExerciseStrip(QWidget* parent = nullptr);
  void setExercise(const std::optional<Exercise>& exercise);
  const std::optional<Exercise>& exercise() const { return exercise_; }
  void setResult(const ExerciseResult& result);
  QString resultText() const;

 signals:
  void handInWanted();

 private:
  void showHint();

  std::optional<Exercise> exercise_;
  size_t hints_ = 0;  // shown so far
  QLabel *title_, *task_, *result_;
  QPushButton *hint_, *hand_in_;
};

}  // namespace ws::app
