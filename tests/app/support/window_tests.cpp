#include "tests/app/support/window_tests.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <string>

namespace ws::test {
namespace {

std::map<std::string, RunTest>& tests() {
  static std::map<std::string, RunTest> all;
  return all;
}

// FitTest and fit_test are the same.
std::string plain(std::string name) {
  std::erase(name, '_');
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return name;
}

}  // namespace

InWindowTests::InWindowTests(const char* name, RunTest run) { tests()[plain(name)] = run; }

}  // namespace ws::test

int main(int argc, char** argv) {
  const auto& tests = ws::test::tests();
  const auto chosen = argc > 1 ? tests.find(ws::test::plain(argv[1])) : tests.end();
  if (chosen == tests.end()) {
    std::fprintf(stderr, "window_tests: the first argument names a test class:\n");
    for (const auto& [name, run] : tests) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  argv[1] = argv[0];
  return chosen->second(argc - 1, argv + 1);
}
