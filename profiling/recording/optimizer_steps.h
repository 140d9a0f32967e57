// The steps of a recorded Python program: those that it says, or else the calls of step() of its first optimizer. A step() is
// recorded in C: a program calls it once per step, when all code has left the caches, and then a Python function of ours around it
// costs as much as the two events of a collective.
#pragma once
#include <cstdint>

namespace ws::prof {

// `learn`: a Python function that returns the place of an optimizer's ranges. It is called for an optimizer of a new class, if
// there are `ranges`, and when no optimizer leads: from then on this one ends the steps, until forget_leader().
void learn_optimizers(void* learn, bool ranges);
void forget_leader();
// `function`: a step(), a Python function. Returns false if the caller has to put enter_optimizer() and leave_optimizer()
// around it.
bool watch_optimizer(void* function);
// A class may call its base's step() inside of its own: that is one call. `failed`: there is an exception.
void enter_optimizer(void* optimizer);
void leave_optimizer(bool failed);

void begin_program_step();  // the first one: later ones begin when the previous one ends
void end_program_step();    // the program says its steps itself
int64_t program_steps();    // that have ended
// `then`, a Python function, is called after each step of the leading optimizer while it is wanted.
void after_steps(void* then, bool wanted);

}  // namespace ws::prof
