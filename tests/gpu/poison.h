#pragma once

namespace ws::test {

void write_to_nowhere();  // launches a kernel that uses an illegal address
void race_in_shared_memory();

}  // namespace ws::test
