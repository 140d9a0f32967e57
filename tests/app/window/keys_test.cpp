// What can be reached, and how: the keys that are named do something and the list names them all, every control has a
// name for those who do not see it, and every tab a place.
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QComboBox>
#include <QDirIterator>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <functional>
#include <map>

#include "app/charts/plot.h"
#include "app/pages/setup/field_row.h"
#include "app/widgets/command_palette.h"
#include "app/widgets/segmented_row.h"
#include "app/pages/setup/setup_panel.h"
#include "app/timeline/timeline_pane.h"
#include "app/window/key_list.h"
#include "app/pages/live/live_page.h"
#include "app/pages/multiprocessors/multiprocessors_panel.h"
#include "app/pages/ranks/ranks_panel.h"
#include "app/window/tab_strip.h"
#include "app/window/top_bar.h"
#include "engine/devices/devices.h"
#include "tests/app/support/all_dialogs.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/made_inside_run.h"
#include "tests/app/support/made_ranks.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;
using namespace ws::test;

class KeysTest : public QObject, FilledWindow {
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
    (void)QTest::qWaitFor([&] { return !ended.isEmpty(); }, 60'000);
    (void)QTest::qWaitFor([&] { return !window->findChild<LivePage*>()->loss()->dirty(); }, 60'000);
    return window;
  }
  static void turnWheel(QWidget& widget, int by) {
    QWheelEvent wheel(QPointF(4, 4), widget.mapToGlobal(QPointF(4, 4)), {}, {0, by}, Qt::NoButton, Qt::NoModifier,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(&widget, &wheel);
  }
  // Between two other values, each key could change it.
  static void tryKeysAndWheel(QComboBox& box) {
    const QSignalBlocker quiet(box);
    while (box.count() < 3) box.addItem(QString("some %1").arg(box.count()));
    box.setCurrentIndex(1);
    const QString name = box.accessibleName() + " " + box.metaObject()->className();
    for (int key : {Qt::Key_S, Qt::Key_K, Qt::Key_F, Qt::Key_Down, Qt::Key_Up, Qt::Key_End, Qt::Key_Home, Qt::Key_PageDown,
                    Qt::Key_PageUp}) {
      QTest::keyClick(&box, static_cast<Qt::Key>(key));
      QVERIFY2(box.currentIndex() == 1, qPrintable(name));
    }
    turnWheel(box, -240);
    QVERIFY2(box.currentIndex() == 1, qPrintable(name));
    if (!box.isVisible() || !box.isEnabled()) return;
    QTest::keyClick(&box, Qt::Key_Down, Qt::AltModifier);
    QVERIFY2(box.view()->isVisible(), qPrintable(name));
    box.hidePopup();
  }
  static QStringList namelessControls(const MainWindow& window);
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
  void tabReachesEachControlOfThePages();
  void everyTabIsReachableWhereThereIsLittleSpace();
  void aGreyPageStaysClosed();
  void pagesAreFoundByName();
  void arrowsReachBlockedValues();
  void keysNeverChangeAComboBox();
  void theWheelNeverChangesANumber();
  void noDialogIsForgotten();
  void controlKOpensTheCommands();
  void menusHaveEachEntryOnceWithItsKeys();
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
    const QString text = command->shortcut().toString(QKeySequence::NativeText);
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
  for (const bool ranks : {false, true}) {
    showOnly(*window, ranks ? made_rank_run(8) : made_inside_run());
    QVERIFY(show_tab(*window, ranks ? "Ranks" : "Multiprocessors"));
    const QAbstractItemView* table = ranks ? window->findChild<RanksPanel*>()->ranks()
                                           : window->findChild<MultiprocessorsPanel*>()->parts();
    QTRY_VERIFY(table->isVisible() && table->model()->rowCount() > 0);
    const QStringList nameless = namelessControls(*window);
    QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(", ")));
  }
}

QStringList KeysTest::namelessControls(const MainWindow& window) {
  QStringList nameless;
  for (QWidget* widget : window.findChildren<QWidget*>()) {
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
  return nameless;
}

// Tab goes through the controls of a page one after the other and leaves none out.
void KeysTest::tabReachesEachControlOfThePages() {
  auto window = open();
  window->activateWindow();
  (void)QTest::qWaitForWindowActive(window.get());
  for (const bool ranks : {false, true}) {
    showOnly(*window, ranks ? made_rank_run(8) : made_inside_run());
    QVERIFY(show_tab(*window, ranks ? "Ranks" : "Multiprocessors"));
    QWidget* page = ranks ? static_cast<QWidget*>(window->findChild<RanksPanel*>()) : window->findChild<MultiprocessorsPanel*>();
    QTRY_VERIFY(!page->findChildren<QTableView*>().isEmpty() && page->findChildren<QTableView*>()[0]->isVisible());
    QSet<QWidget*> reached;
    for (int presses = 0; presses < 400; ++presses) {
      QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : window.get(), Qt::Key_Tab);
      reached << QApplication::focusWidget();
    }
    for (QWidget* widget : page->findChildren<QWidget*>()) {
      if (!widget->isVisible() || !widget->isEnabled() || !(widget->focusPolicy() & Qt::TabFocus) || widget->focusProxy()) continue;
      QVERIFY2(reached.contains(widget), qPrintable(QString(widget->metaObject()->className()) + " " + widget->accessibleName()));
    }
  }
}

// Each page is one of the tab in front, in a row that has space for all of them; a tab opens the page that it showed last.
void KeysTest::everyTabIsReachableWhereThereIsLittleSpace() {
  auto window = open();
  const TabStrip& strip = *window->tabStrip();
  QTabBar *pages = strip.pages(), *groups = strip.groups();
  window->resize(1100, 680);
  for (int front = 0; front < pages->count(); ++front) {
    if (!pages->isTabEnabled(front)) continue;
    pages->setCurrentIndex(front);
    QCoreApplication::processEvents();
    QCOMPARE(groups->currentIndex(), strip.groupOf(front));
    int shown = 0;
    for (int i = 0; i < pages->count(); ++i) {
      QCOMPARE(pages->isTabVisible(i), strip.groupOf(i) == strip.groupOf(front));
      if (!pages->isTabVisible(i)) continue;
      ++shown;
      QVERIFY2(pages->tabRect(i).right() < pages->width(), qPrintable(pages->tabText(i)));
    }
    QCOMPARE(pages->isVisible(), shown > 1);
    if (shown > 1) QVERIFY(pages->geometry().right() < strip.width());
  }
  QVERIFY(groups->tabRect(groups->count() - 1).right() < groups->width());
  pages->setCurrentIndex(strip.pageNamed("Query"));
  groups->setCurrentIndex(0);
  QCOMPARE(strip.nameOf(pages->currentIndex()), QString("Overview"));
  groups->setCurrentIndex(groups->count() - 1);
  QCOMPARE(strip.nameOf(pages->currentIndex()), QString("Query"));
}

// A grey page stays closed, however it is asked for, and opens once a run is shown that has it, unless another page was opened.
void KeysTest::aGreyPageStaysClosed() {
  auto window = open();
  TabStrip& strip = *window->tabStrip();
  const int ranks = strip.pageNamed("Ranks"), memory = strip.pageNamed("Memory");
  strip.pages()->setCurrentIndex(memory);
  QVERIFY(!strip.pages()->isTabEnabled(ranks));
  strip.pages()->setCurrentIndex(ranks);
  QCOMPARE(strip.pages()->currentIndex(), memory);
  QCOMPARE(strip.groups()->currentIndex(), strip.groupOf(memory));
  QVERIFY(!window->findChild<RanksPanel*>()->isVisible());
  QSignalSpy said(window->workspace(), &Workspace::said);
  window->workspace()->bringToFront(window->findChild<RanksPanel*>());
  QCOMPARE(strip.pages()->currentIndex(), memory);
  QVERIFY(said.size() == 1 && said[0][0].toString() == "It needs a run of several ranks.");
  strip.open(ranks);
  QCOMPARE(strip.pages()->currentIndex(), memory);
  Run* run = ws::test::made_rank_run(2).release();
  run->slot = -1, run->created = QDateTime::currentDateTime(), run->loaded = true;
  RunLibrary& library = *window->workspace()->library();
  library.adopt(run);
  window->workspace()->pick(run);
  QTRY_COMPARE(strip.pages()->currentIndex(), ranks);
  QVERIFY(window->findChild<RanksPanel*>()->isVisible());
  library.tickOnly({});
  QTRY_VERIFY(!strip.pages()->isTabEnabled(ranks));
  QCOMPARE(strip.nameOf(strip.pages()->currentIndex()), QString("Overview"));
  strip.open(ranks);
  strip.pages()->setCurrentIndex(memory);
  window->workspace()->pick(run);
  QTRY_VERIFY(strip.pages()->isTabEnabled(ranks));
  QCOMPARE(strip.pages()->currentIndex(), memory);
}

// The name of a page, of a tab, or the beginning of a name: as --tab has it.
void KeysTest::pagesAreFoundByName() {
  auto window = open();
  const TabStrip& strip = *window->tabStrip();
  for (int page = 0; page < strip.pages()->count(); ++page) QCOMPARE(strip.pageNamed(strip.nameOf(page).toLower()), page);
  QCOMPARE(strip.nameOf(strip.pageNamed("advice")), QString("Suggestions"));
  QCOMPARE(strip.nameOf(strip.pageNamed("flame")), QString("Flame graph"));
  QCOMPARE(strip.nameOf(strip.pageNamed("live")), QString("Overview"));  // its name before
  QCOMPARE(strip.pageNamed("nothing"), -1);
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
  std::vector<std::unique_ptr<QDialog>> dialogs = all_dialogs(*window);
  dialogs.push_back(file_dialog(window.get()));
  for (const auto& dialog : dialogs) dialog->show();
  int seen = 0;
  for (int tab = 0; tab < window->tabs()->count(); ++tab) window->tabs()->setCurrentIndex(tab);
  for (QWidget* widget : QApplication::allWidgets())
    if (auto* box = qobject_cast<QComboBox*>(widget)) tryKeysAndWheel(*box), ++seen;
  qInfo("%d combo boxes", seen);
  QVERIFY(seen >= 8);  // top bar, data set, Lab, two of Compare, Connect, two of Qt's file dialog
}

// A dialog that the list of all dialogs lacks is found here.
void KeysTest::noDialogIsForgotten() {
  auto window = open();
  QStringList listed, missing;
  for (const auto& dialog : all_dialogs(*window)) listed << QString(dialog->metaObject()->className()).section("::", -1);
  QDirIterator headers(WARPSIGHT_SOURCE_DIR "/app", {"*.h"}, QDir::Files, QDirIterator::Subdirectories);
  static const QRegularExpression derived("class (\\w+) : public QDialog");
  while (headers.hasNext()) {
    QFile file(headers.next());
    QVERIFY(file.open(QIODevice::ReadOnly));
    const auto match = derived.match(file.readAll());
    if (match.hasMatch() && !listed.contains(match.captured(1))) missing << match.captured(1);
  }
  QVERIFY2(missing.isEmpty(), qPrintable(missing.join(", ")));
}

void KeysTest::theWheelNeverChangesANumber() {
  auto window = open();
  const auto dialogs = all_dialogs(*window);
  int seen = 0;
  for (QWidget* widget : QApplication::allWidgets()) {
    auto* field = qobject_cast<QAbstractSpinBox*>(widget);
    if (!field) continue;
    const QString before = field->text();
    field->setFocus();
    for (const int by : {-240, 240}) {
      turnWheel(*field, by);
      QCOMPARE(field->text(), before);
    }
    ++seen;
  }
  QVERIFY(seen >= 4);
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

// No menu for a single entry, no entry in two menus, and the keys of a pane stand beside its entries.
void KeysTest::menusHaveEachEntryOnceWithItsKeys() {
  auto window = open();
  std::map<QString, QString> menu_of;
  QStringList wrong;
  const std::function<void(const QMenu*, const QString&)> read = [&](const QMenu* menu, const QString& name) {
    for (QAction* entry : menu->actions()) {
      const QString text = entry->text().remove('&');
      if (entry->menu() && text != "Glossary") read(entry->menu(), name);  // its entries are words
      if (entry->menu() || entry->isSeparator()) continue;
      if (const auto [at, fresh] = menu_of.try_emplace(text, name); !fresh) wrong << text + ": in " + at->second + " and in " + name;
    }
  };
  int keys = 0;
  for (QAction* top : window->menuBar()->actions()) {
    read(top->menu(), top->text());
    if (top->menu()->actions().size() < 3) wrong << top->text() + " has few entries";
    for (const QAction* entry : top->menu()->actions())
      if (top->text() == "Timeline") keys += !entry->shortcut().isEmpty();
    for (QAction* entry : top->menu()->actions()) {
      if (entry->text() != "Preset") continue;
      QStringList titles;
      for (const QAction* preset : entry->menu()->actions()) titles << preset->text();
      QVERIFY(titles.size() > 5);
      QVERIFY2(std::ranges::is_sorted(titles, std::less<>()), qPrintable(titles.join(", ")));
    }
  }
  QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  QVERIFY2(keys >= 9, qPrintable(QString::number(keys)));
}

WARPSIGHT_QTEST(KeysTest)
#include "keys_test.moc"
