// Exercises: kernels to write, each with a task, a starter, hidden shapes for the check and a goal. resources/docs/exercises.md
// describes the format of their files.
#pragma once
#include <string>
#include <vector>

#include "app/core/kernels/kernel_check_process.h"

namespace ws::app {

struct Exercise {
  std::string name;  // of its file: "3-softmax-row"
  std::string title, text, look, preset, op;
  std::vector<std::string> hints;
  std::vector<std::string> sets;                 // choices beside the preset: "exec.fusion=off"
  std::vector<std::vector<std::string>> shapes;  // choices of each hidden check
  double built_in = 0, limit = 0;                // the goal, as factors of these times; 0: not part of it
  std::string starter;
};
// Shipped, and of the folders that $WARPSIGHT_EXERCISES names, with : between them. By name.
std::vector<Exercise> exercises();
Exercise read_exercise(const std::string& file);           // throws Failure that names the line
Exercise find_exercise(const std::string& name_or_number);  // throws Failure that lists the names
RunSpec spec_of(const Exercise& exercise);
std::string starter_file(const Exercise& exercise);  // the text of a person's new file
// The exercise that a person's file belongs to, by its second line. Throws Failure.
Exercise exercise_of(const std::string& file);

struct ExerciseResult {
  std::string exercise, file, version, sentence, card;
  bool right = false, reached = false;
  double own_us = 0, built_in_us = 0, limit_us = 0, goal_us = 0;  // limit 0: this GPU was not measured
};
// The result of a check on checked_shapes_of(exercise).
ExerciseResult exercise_result(const Exercise& exercise, const std::string& file, const std::vector<ShapeResult>& results);
std::vector<CheckedShape> checked_shapes_of(const Exercise& exercise);
std::string to_json_line(const ExerciseResult& result);  // to hand in

}  // namespace ws::app
