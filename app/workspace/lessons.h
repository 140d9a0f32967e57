// The lessons of the start page: a few runs that differ in one choice, the result in one sentence,
// and what to try next. No widgets.
#pragma once
#include <QString>
#include <QStringList>
#include <vector>

#include "app/workspace/training_session.h"

namespace ws::app {

struct Lesson {
  QString name, title;
  QString text;         // words in brackets are in the glossary
  QString question;     // what do you expect? It stands on the card with its answers, and beside the training
  QStringList answers;
  bool needs_gpu = false;
  QStringList recorded;  // names of shipped runs that show it without a GPU
  std::vector<StartRequest> (*requests)(bool cuda);
  QString (*conclusion)(const std::vector<const Run*>& runs);  // in the order of the requests; all have ended
  int (*right)(const std::vector<const Run*>& runs);  // which answer the runs gave; −1: they cannot tell
  StartRequest (*next)(bool cuda);  // what to try next, with its title
  // The conclusion of that try, beside the runs of the lesson. nullptr: the result is compared like any training.
  QString (*after)(const std::vector<const Run*>& runs, const Run& tried) = nullptr;
  TrainSpeed speed = TrainSpeed::Full;  // unless the person has chosen another one in this lesson before
};

// Lessons that are useful on this machine, in order.
std::vector<const Lesson*> lessons(bool cuda);
// Paths of the runs to open instead of training; empty if this machine trains them.
QStringList shipped_runs_of(const Lesson& lesson, bool cuda);
QString text_of(const Lesson& lesson, bool cuda);  // includes where the runs were recorded
// "You guessed right: more than 2×." or "You guessed less than 2×. It is more than 2×." Without a guess (−1): "Answer: more than 2×."
QString answer_text(const Lesson& lesson, int expected, const std::vector<const Run*>& runs);
StartRequest the_same_here(const Run& run);  // a similar run for a machine without a GPU

}  // namespace ws::app
