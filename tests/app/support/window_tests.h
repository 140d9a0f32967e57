// All tests of the window are one program: Qt and the window are then linked once, and headers are read for several tests at
// a time. The program's first argument names the class to run, as FitTest or fit_test; the rest is Qt Test's.
#pragma once

#include <QApplication>
#include <QTest>

namespace ws::test {

using RunTest = int (*)(int argc, char** argv);

// Adds a test class to the program.
struct InWindowTests {
  InWindowTests(const char* name, RunTest run);
};

template <class Test, class Application = QApplication>
int run_test(int argc, char** argv) {
  Application application(argc, argv);
  Application::setAttribute(Qt::AA_Use96Dpi, true);
  Test test;
  return QTest::qExec(&test, argc, argv);
}

}  // namespace ws::test

// What must come is awaited for a minute and looked for every 10 ms: Qt's five seconds are few on a busy machine, and its
// 50 ms long on a free one.
#undef QTRY_VERIFY
#undef QTRY_COMPARE
#define QTRY_VERIFY(expression) \
  do { \
    (void)QTest::qWaitFor([&] { return static_cast<bool>(expression); }, 60'000); \
    QVERIFY(expression); \
  } while (false)
#define QTRY_COMPARE(expression, expected) \
  do { \
    (void)QTest::qWaitFor([&] { return (expression) == (expected); }, 60'000); \
    QCOMPARE(expression, expected); \
  } while (false)

#define WARPSIGHT_QTEST(Test) const ws::test::InWindowTests in_window_tests_##Test(#Test, ws::test::run_test<Test>);
