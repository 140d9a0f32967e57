#include "app/core/remote/first_progress.h"

#include <utility>

namespace ws::app {
namespace {

template <class T>
void move_to_end(std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
  from.clear();
}

}  // namespace

void FirstProgress::order(RunUpdate& update, bool over) {
  if (std::exchange(known_, known_ || over || update.progress)) return;
  move_to_end(update.steps, early_.steps);
  move_to_end(update.epochs, early_.epochs);
  if (!known_) return;
  std::swap(update.steps, early_.steps);
  std::swap(update.epochs, early_.epochs);
}

}  // namespace ws::app
