#pragma once

namespace ws::test {

void write_to_nowhere();  // launches a kernel that uses an illegal address

}  // namespace ws::test
