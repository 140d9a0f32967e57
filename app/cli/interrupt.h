// Ctrl+C asks for a clean stop; a second one ends the program at once.
#pragma once

namespace ws::cli {

void catch_interrupts();
bool interrupted();

}  // namespace ws::cli
