// The keys of the window: those that are named do something, and the list names them all.
#include <QLineEdit>
#include <QMenuBar>
#include <QtTest>

#include "app/charts/plot.h"
#include "app/timeline/timeline_pane.h"
#include "app/window/key_list.h"
#include "app/window/live_page.h"
#include "app/window/top_bar.h"
#include "tests/app/window_home.h"

using namespace ws::app;

class KeysTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  // A window in front, with an ended run in it.
  std::unique_ptr<MainWindow> trained() const {
    auto window = open();
    window->activateWindow();
    (void)QTest::qWaitForWindowActive(window.get());
    iris(*window, 20);
    QSignalSpy ended(window->session(), &Session::ended);
    window->train();
    for (int i = 0; i < 300 && ended.isEmpty(); ++i) QTest::qWait(50);
    for (int i = 0; i < 100 && window->livePage()->loss()->dirty(); ++i) QTest::qWait(20);
    return window;
  }
  static void undo(MainWindow& window) { QTest::keyClick(&window, Qt::Key_Z, Qt::ControlModifier); }

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void slashFinds();
  void spaceFollows();
  void theListNamesEveryKey();
  void undoIsOfThePaneInUse();
  void fitCanBeUndone();
};

void KeysTest::slashFinds() {
  auto window = trained();
  auto* timeline = window->findChild<TimelinePane*>();
  QLineEdit* field = nullptr;
  for (QLineEdit* each : timeline->findChildren<QLineEdit*>())
    if (each->accessibleName() == "Find in the timeline") field = each;
  QVERIFY(field && !field->isVisible());
  timeline->view()->setFocus();
  QTest::keyClick(timeline->view(), Qt::Key_Slash);
  QVERIFY(field->isVisible() && field->hasFocus());
  QTest::keyClick(field, Qt::Key_Slash);  // here it is text
  QCOMPARE(field->text(), QString("/"));
  QTest::keyClick(field, Qt::Key_Escape);
  QVERIFY(!field->isVisible());
  window->tabs()->setCurrentIndex(1);
  QTest::keyClick(window.get(), Qt::Key_Slash);
  QCOMPARE(window->tabs()->currentIndex(), 0);
  QVERIFY(field->isVisible());
}

void KeysTest::spaceFollows() {
  auto window = trained();
  auto* timeline = window->findChild<TimelinePane*>();
  for (QWidget* widget : std::initializer_list<QWidget*>{timeline->view(), window->livePage()->loss()->plot()}) {
    const bool before = window->cursor()->follow();
    widget->setFocus();
    QTest::keyClick(widget, Qt::Key_Space);
    QCOMPARE(window->cursor()->follow(), !before);
    QTest::keyClick(widget, Qt::Key_Space);
    QCOMPARE(window->cursor()->follow(), before);
  }
  const bool before = window->cursor()->follow();
  auto* box = window->topBar()->train();
  QSignalSpy pressed(box, &QAbstractButton::clicked);
  disconnect(box, nullptr, window->topBar(), nullptr);
  QTest::keyClick(box, Qt::Key_Space);  // a button is pressed
  QCOMPARE(pressed.count(), 1);
  QCOMPARE(window->cursor()->follow(), before);
}

void KeysTest::theListNamesEveryKey() {
  auto window = open();
  const KeyList list(window->menuBar(), window.get());
  const auto named = [&](const QString& what, QString keys) {
    if (keys.size() > 1) keys.replace('+', ' ');
    return std::any_of(list.entries().begin(), list.entries().end(),
                       [&](const KeyEntry& entry) { return entry.what == what && entry.keys == keys; });
  };
  int keys = 0;
  for (const QAction* command : window->findChild<TimelinePane*>()->commands()) {
    const QString text = command->shortcut().isEmpty() ? command->property("keys").toString()
                                                       : command->shortcut().toString(QKeySequence::NativeText);
    if (text.isEmpty()) continue;
    QVERIFY2(named(command->text(), text), qPrintable(command->text()));
    ++keys;
  }
  QVERIFY(keys >= 8);
  QVERIFY(std::any_of(list.entries().begin(), list.entries().end(), [](const auto& e) { return e.keys == "Space"; }));
  QVERIFY(std::any_of(list.entries().begin(), list.entries().end(), [](const auto& e) { return e.keys == "/"; }));
}

void KeysTest::undoIsOfThePaneInUse() {
  auto window = trained();
  auto* view = window->findChild<TimelinePane*>()->view();
  Plot* loss = window->livePage()->loss()->plot();
  const auto range = [&] { return std::pair(window->cursor()->begin(), window->cursor()->end()); };
  const auto before = range();
  const QCPRange x = loss->xAxis->range();
  view->setFocus();
  QTest::keyClick(view, Qt::Key_W);
  QVERIFY(range() != before);
  loss->setFocus();
  QTest::keyClick(loss, Qt::Key_W);
  QVERIFY(loss->xAxis->range().size() < x.size());
  const auto zoomed = range();
  undo(*window);
  QVERIFY(std::abs(loss->xAxis->range().size() - x.size()) < 1e-9);
  QCOMPARE(range(), zoomed);  // the timeline stays
  view->setFocus();
  undo(*window);
  QCOMPARE(range(), before);
}

void KeysTest::fitCanBeUndone() {
  auto window = trained();
  Plot* loss = window->livePage()->loss()->plot();
  const QCPRange all = loss->xAxis->range();
  loss->setFocus();
  QTest::keyClick(loss, Qt::Key_W);
  const QCPRange zoomed = loss->xAxis->range();
  QTest::keyClick(loss, Qt::Key_F);
  QVERIFY(!loss->zoomed());
  QVERIFY(std::abs(loss->xAxis->range().size() - all.size()) < 1e-9);
  undo(*window);
  QVERIFY(loss->zoomed());
  QVERIFY(std::abs(loss->xAxis->range().size() - zoomed.size()) < 1e-9);
  undo(*window);
  QVERIFY(!loss->zoomed());  // and grows again with what comes
  QVERIFY(!loss->canUndoZoom());
}

QTEST_MAIN(KeysTest)
#include "keys_test.moc"
