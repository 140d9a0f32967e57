// What can be reached, and how: the keys that are named do something and the list names them all, every control has a
// name for those who do not see it, and every tab a place.
#include <QAbstractItemView>
#include <QAccessible>
#include <QComboBox>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QtTest>

#include "app/charts/plot.h"
#include "app/pages/setup/field_row.h"
#include "app/widgets/command_palette.h"
#include "app/widgets/segmented_row.h"
#include "app/pages/setup/setup_panel.h"
#include "app/timeline/timeline_pane.h"
#include "app/window/key_list.h"
#include "app/pages/live/live_page.h"
#include "app/window/tab_strip.h"
#include "app/window/top_bar.h"
#include "engine/devices/devices.h"
#include "tests/app/support/window_home.h"

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
    QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
    window->train();
    for (int i = 0; i < 300 && ended.isEmpty(); ++i) QTest::qWait(50);
    for (int i = 0; i < 100 && window->findChild<LivePage*>()->loss()->dirty(); ++i) QTest::qWait(20);
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
  void everyControlHasAName();
  void everyTabIsReachableWhereThereIsLittleRoom();
  void arrowsReachBlockedValues();
  void keysNeverChangeAComboBox();
  void controlKOpensTheCommands();
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
  for (QWidget* widget : std::initializer_list<QWidget*>{timeline->view(), window->findChild<LivePage*>()->loss()->plot()}) {
    const bool before = window->workspace()->cursor()->follow();
    widget->setFocus();
    QTest::keyClick(widget, Qt::Key_Space);
    QCOMPARE(window->workspace()->cursor()->follow(), !before);
    QTest::keyClick(widget, Qt::Key_Space);
    QCOMPARE(window->workspace()->cursor()->follow(), before);
  }
  const bool before = window->workspace()->cursor()->follow();
  auto* box = window->topBar()->train();
  QSignalSpy pressed(box, &QAbstractButton::clicked);
  disconnect(box, nullptr, window->topBar(), nullptr);
  QTest::keyClick(box, Qt::Key_Space);  // a button is pressed
  QCOMPARE(pressed.count(), 1);
  QCOMPARE(window->workspace()->cursor()->follow(), before);
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
  Plot* loss = window->findChild<LivePage*>()->loss()->plot();
  const auto range = [&] {
    return std::pair(window->workspace()->cursor()->begin(), window->workspace()->cursor()->end());
  };
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
  Plot* loss = window->findChild<LivePage*>()->loss()->plot();
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

void KeysTest::everyControlHasAName() {
  auto window = open();
  QStringList nameless;
  for (QWidget* widget : window->findChildren<QWidget*>()) {
    const bool control = qobject_cast<QAbstractButton*>(widget) || qobject_cast<QLineEdit*>(widget) ||
                         qobject_cast<QComboBox*>(widget) || qobject_cast<QAbstractItemView*>(widget) ||
                         qobject_cast<Plot*>(widget);
    if (!control || widget->objectName().startsWith("qt_") || widget->inherits("QComboBoxListView")) continue;
    if (qobject_cast<QLineEdit*>(widget) && widget->parentWidget()->inherits("QAbstractSpinBox")) continue;
    if (widget->parentWidget() && widget->parentWidget()->inherits("QLineEdit")) continue;  // the clear button
    if (widget->parentWidget() && widget->parentWidget()->inherits("QTabBar")) continue;    // its scroll buttons
    if (widget->inherits("QMenuBarExtension") || widget->inherits("QTableCornerButton") ||
        widget->inherits("QHeaderView"))
      continue;
    QAccessibleInterface* face = QAccessible::queryAccessibleInterface(widget);
    if (!face || face->text(QAccessible::Name).trimmed().isEmpty())
      nameless << QString(widget->metaObject()->className()) + " in " +
                      widget->parentWidget()->metaObject()->className();
  }
  QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(", ")));
}

// Five tabs have their places; the others are in a menu, and the one in front is never hidden.
void KeysTest::everyTabIsReachableWhereThereIsLittleRoom() {
  auto window = open();
  QTabBar* tabs = window->tabs();
  QPushButton* more = window->tabStrip()->more();
  window->resize(1100, 680);
  for (int front = 0; front < tabs->count(); ++front) {
    tabs->setCurrentIndex(front);
    QCoreApplication::processEvents();
    QVERIFY(tabs->isTabVisible(front));
    int hidden = 0;
    for (int i = 0; i < tabs->count(); ++i) {
      if (tabs->isTabVisible(i))
        QVERIFY2(tabs->tabRect(i).right() < tabs->width(), qPrintable(tabs->tabText(i)));
      else
        hidden += window->tabStrip()->offered(i);
    }
    QCOMPARE(more->isVisible(), hidden > 0);
    emit more->menu()->aboutToShow();
    QCOMPARE(static_cast<int>(more->menu()->actions().size()), hidden);
  }
  tabs->setCurrentIndex(0);  // with the choices beside it
  QCoreApplication::processEvents();
  QVERIFY(more->isVisible());
  emit more->menu()->aboutToShow();
  const QString name = more->menu()->actions().back()->text();
  more->menu()->actions().back()->trigger();
  QCOMPARE(tabs->tabText(tabs->currentIndex()), name);
  QVERIFY(tabs->isTabVisible(tabs->currentIndex()));
}

void KeysTest::arrowsReachBlockedValues() {
  auto window = open();
  SegmentedRow* row = window->findChild<SetupPanel*>()->row("exec.launch")->findChild<SegmentedRow*>();
  row->segments()[0]->setFocus();
  QTest::keyClick(row->segments()[0], Qt::Key_Right);
  QTest::keyClick(row->segments()[1], Qt::Key_Right);
  QCOMPARE(row->segments()[2]->hasFocus() || !window->isActiveWindow(), true);
  if (ws::device_info().cuda) return;
  QVERIFY(row->segments()[2]->blocked());  // a persistent kernel needs a GPU
  QVERIFY(window->workspace()->choices()->spec().exec.launch != ws::Launch::Persistent);
}

void KeysTest::keysNeverChangeAComboBox() {
  auto window = open();
  int seen = 0;
  for (QComboBox* box : window->findChildren<QComboBox*>()) {
    if (box->count() < 2 || !box->isVisible()) continue;
    const int before = box->currentIndex();
    box->setFocus();
    for (int key : {Qt::Key_S, Qt::Key_K, Qt::Key_F, Qt::Key_Down, Qt::Key_Up, Qt::Key_End, Qt::Key_PageDown}) {
      QTest::keyClick(box, static_cast<Qt::Key>(key));
      QCOMPARE(box->currentIndex(), before);
    }
    QWheelEvent wheel(QPointF(4, 4), box->mapToGlobal(QPointF(4, 4)), {}, {0, -240}, Qt::NoButton, Qt::NoModifier,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(box, &wheel);
    QCOMPARE(box->currentIndex(), before);
    QTest::keyClick(box, Qt::Key_Space);
    QVERIFY(box->view()->isVisible());
    box->hidePopup();
    ++seen;
  }
  QVERIFY(seen >= 2);  // the trace level and the data set
}

void KeysTest::controlKOpensTheCommands() {
  auto window = open();
  window->activateWindow();
  (void)QTest::qWaitForWindowActive(window.get());
  QTest::keyClick(window.get(), Qt::Key_K, Qt::ControlModifier);
  auto* palette = window->findChild<CommandPalette*>();
  QVERIFY(palette && palette->isVisible());
  QStringList all;
  for (int row = 0; row < palette->model()->rowCount(); ++row) all << palette->model()->index(row).data().toString();
  QVERIFY2(all.contains("File › Export a report"), qPrintable(all.join('|')));
  palette->close();
}

QTEST_MAIN(KeysTest)
#include "keys_test.moc"
