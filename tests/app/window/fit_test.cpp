// Nothing is cut off: in each tab of a small window every label, button, choice and column title has the space that its
// text needs. With WARPSIGHT_PICTURES=folder each state that is looked at leaves a picture there.
#include <QAbstractScrollArea>
#include <QComboBox>
#include <QDialog>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QSplitter>
#include <QTabBar>
#include <QTableView>
#include <QToolButton>
#include <QTest>
#include <fstream>

#include "app/pages/experiments/experiments_tab.h"
#include "app/pages/compare/compare_tab.h"
#include "profiling/annotate/code_stack.h"
#include "app/widgets/paged_pane.h"
#include "app/pages/library/library_tab.h"
#include "app/widgets/section.h"
#include "app/widgets/segmented_row.h"
#include "app/timeline/timeline_pane.h"
#include "app/timeline/timeline_view.h"
#include "app/pages/live/live_page.h"
#include "app/pages/multiprocessors/multiprocessors_panel.h"
#include "app/pages/ranks/ranks_panel.h"
#include "app/window/side_rail.h"
#include "app/window/start_page.h"
#include "tests/app/support/all_dialogs.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/made_inside_run.h"
#include "tests/app/support/made_ranks.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

using namespace ws::test;

class FitTest : public QObject, FilledWindow {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void init() {  // each other test in the other theme
    static bool light = false;
    set_theme(*qApp, (light = !light) ? ThemeName::Light : ThemeName::Dark);
  }
  void cleanup() { clear(); }
  void whatIsCutOffIsFound();
  void aNewWindow();
  void liveAtEveryWidth();
  void tabsWithNothingInThem();
  void besideBothDocksNothingScrollsSideways_data();
  void besideBothDocksNothingScrollsSideways();
  void insideKernelsAndBetweenRanks();
  void recordedProgramsCompared_data();
  void recordedProgramsCompared();
  void aNarrowWindowFoldsSetup();
  void whatIsPointedAtAndChosen();
  void boxesThatComeUp();
};

// The check itself can fail.
void FitTest::whatIsCutOffIsFound() {
  QWidget window;
  QLabel label("a text of some length", &window);
  QPushButton button("Press here", &window);
  label.move(4, 4), button.move(4, 60);
  window.resize(300, 100);
  window.show();
  QVERIFY2(cut_off(window).isEmpty(), qPrintable(cut_off(window).join('\n')));
  label.resize(label.width() - 20, label.height());
  QCOMPARE(cut_off(window).size(), 1);
  button.resize(button.width() / 2, button.height());
  QCOMPARE(cut_off(window).size(), 2);
  label.adjustSize();
  label.move(290 - label.width() / 2, 4);  // half of it outside
  QCOMPARE(cut_off(window).size(), 2);
  class Letters : public QWidget {
   public:
    using QWidget::QWidget;
    int second = 60;

   protected:
    void paintEvent(QPaintEvent*) override {
      QPainter painter(this);
      painter.drawText(4, 20, "first");
      painter.drawText(second, 20, "second");
    }
  } letters(&window);
  letters.resize(160, 40);
  QVERIFY(unreadable(letters).isEmpty());
  QCOMPARE(painted_texts(letters).size(), size_t{2});
  letters.second = 20;
  QCOMPARE(unreadable(letters).size(), 1);
  letters.second = 140;
  QCOMPARE(unreadable(letters).size(), 1);
  label.setText(QString::fromUtf8("a text of…"));
  label.move(4, 4), label.adjustSize(), button.adjustSize();
  QCOMPARE(cut_off(window).size(), 1);
}

void FitTest::aNewWindow() {
  QStringList wrong;
  for (const QSize size : {QSize(1366, 768), QSize(1920, 1080)}) {
    auto window = open();
    window->resize(size);
    QTRY_VERIFY(window->workspace()->device()->info());
    settle();
    QVERIFY(window->startPage()->isVisible());
    check(*window, QString("first start, %1").arg(size.width()), wrong);
    for (Section* section : window->findChild<SetupPanel*>()->findChildren<Section*>()) section->setOpen(true);
    for (QAbstractButton* button : window->findChild<SetupPanel*>()->findChildren<QAbstractButton*>())
      if (button->text() == "More settings" || button->text() == "…" || button->text() == "?") button->click();
    settle();
    check(*window, QString("all settings, %1").arg(size.width()), wrong);
    window->workspace()->say("There is no ended run to save, and this sentence says so at a length that needs the whole line.",
                true);
    settle();
    check(*window, QString("a problem, %1").arg(size.width()), wrong);
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

// Screens of 1440, 1536 and 1600 points lie between the two sizes that the other tests look at.
void FitTest::liveAtEveryWidth() {
  auto window = open();
  fill(*window, {"direct"});
  QStringList wrong;
  for (const int width : {1366, 1440, 1500, 1536, 1600, 1920}) {
    window->resize(width, 900);
    settle();
    check(*window, QString("live, %1").arg(width), wrong);
    const auto* live = window->findChild<LivePage*>();
    for (const QSplitter* splitter : live->findChildren<QSplitter*>())
      if (const QWidget* last = splitter->widget(splitter->count() - 1); last->isVisible() && last->geometry().right() > splitter->width())
        wrong << QString("%1: panes end at %2 of %3").arg(width).arg(last->geometry().right()).arg(splitter->width());
    if (live->width() > live->parentWidget()->width())
      wrong << QString("%1: the page is %2 wide, of %3").arg(width).arg(live->width()).arg(live->parentWidget()->width());
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::besideBothDocksNothingScrollsSideways_data() {
  QTest::addColumn<QSize>("size");
  QTest::newRow("small") << QSize(1366, 768);
  QTest::newRow("large") << QSize(1920, 1080);
  QTest::newRow("small, in the other theme") << QSize(1366, 768);
  QTest::newRow("large, in the other theme") << QSize(1920, 1080);
}

// An experiment with numbers, and three runs that are compared.
void FitTest::besideBothDocksNothingScrollsSideways() {
  QFETCH(QSize, size);
  auto window = open();
  window->resize(size);
  fill(*window, {"direct"});
  for (const char* dock : {"Setup", "Runs", "Details"}) open_dock(*window, dock);
  auto* experiments = window->findChild<ExperimentsTab*>();
  QStringList wrong;
  for (const char* name : {"Combinations", "Compare", "All runs"}) {
    for (int tab = 0; tab < window->tabs()->count(); ++tab)
      if (window->tabs()->tabText(tab).startsWith(name)) window->tabs()->setCurrentIndex(tab);
    open_dock(*window, "Setup");  // a narrow window folds it beside Compare
    settle();
    if (experiments->isVisible()) {
      const QString file = window->workspace()->library()->folder() + "/tiny.json";
      std::ofstream(file.toStdString()) << R"({"title": "Of a title that is rather long to be read here", "spec":
        {"data": {"name": "iris"}, "train": {"epochs": 300}, "exec": {"device": "cpu"}}, "axes": {"exec.fusion":
        ["off", "epilogue"], "train.batch": [8, 16]}, "repeats": 2})";
      QVERIFY(experiments->open(file));
      experiments->run();
      QTRY_VERIFY(!experiments->running());
      settle();
    }
    if (auto* library = window->findChild<LibraryTab*>(); library->isVisible())
      library->table()->selectRow(0), settle();
    check(*window, QString("%1 beside docks, %2%3").arg(name).arg(size.width()).arg(theme().dark() ? "" : ", light"),
          wrong);
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::tabsWithNothingInThem() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  QStringList wrong;
  for (int tab = 0; tab < window->tabs()->count(); ++tab) {
    window->tabs()->setCurrentIndex(tab);
    settle();
    check(*window, "empty " + window->tabs()->tabText(tab), wrong);
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

// The pages for runs with stamps from inside a kernel, and for runs of many ranks.
void FitTest::insideKernelsAndBetweenRanks() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  QStringList wrong;
  for (const bool ranks : {false, true}) {
    showOnly(*window, ranks ? made_rank_run(8) : made_inside_run());
    const QString name = ranks ? "Ranks" : "Multiprocessors";
    QTRY_VERIFY(offers_tab(*window, name));
    QVERIFY(show_tab(*window, name));
    const QAbstractItemView* table = ranks ? window->findChild<RanksPanel*>()->ranks()
                                           : window->findChild<MultiprocessorsPanel*>()->parts();
    QTRY_VERIFY(table->isVisible() && table->model()->rowCount() > 0);
    for (const QSize size : {QSize(1366, 768), QSize(1920, 1080)}) {
      window->resize(size);
      settle();
      check(*window, QString("filled %1, %2").arg(name).arg(size.width()), wrong);
    }
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::recordedProgramsCompared_data() {
  QTest::addColumn<QString>("theme");  // init() changes it
  for (const char* name : {"one", "the other"}) QTest::newRow(name) << QString(name);
}

// Compare has two more pages for programs that were recorded with their stacks.
// The start page stands alone until there is a run. All pages but Overview take the place of Setup in a narrow window. Where the user opens it again, it stays open.
void FitTest::aNarrowWindowFoldsSetup() {
  auto window = open();
  window->resize(1366, 768);
  settle();
  const auto* setup = window->findChild<SetupPanel*>();
  const auto beside = [&](const QString& tab) {
    const bool shown = show_tab(*window, tab);
    settle();
    return shown && setup->isVisible();
  };
  QVERIFY(!beside("Overview"));
  showOnly(*window, made("first", StepStyle::EagerDirect, 0));
  QVERIFY(beside("Overview"));
  for (const char* tab : {"Compare", "Plan", "Memory", "Lab"}) QVERIFY2(!beside(tab), tab);
  QVERIFY(beside("Overview"));
  QVERIFY(!beside("Compare"));
  open_dock(*window, "Setup");
  QVERIFY(beside("Overview") && beside("Compare"));
  QVERIFY(!beside("Memory"));
  window->resize(1920, 1080);
  settle();
  QVERIFY(!beside("Memory"));  // as it was left
  QVERIFY(beside("Overview"));
  window.reset();
  auto wide = open();
  wide->resize(1920, 1080);
  settle();
  showOnly(*wide, made("first", StepStyle::EagerDirect, 0));
  QVERIFY(show_tab(*wide, "Compare"));
  QVERIFY(wide->findChild<SetupPanel*>()->isVisible());
}

void FitTest::recordedProgramsCompared() {
  auto window = open();
  window->resize(1366, 768);
  QTRY_VERIFY(window->workspace()->device()->info());
  const auto stack = std::make_shared<ws::prof::CodeStack>(ws::prof::CodeStack{{{"train.py", 60, "main"}, {"net.py", 12, "forward"}}, 1});
  for (const char* name : {"before", "after"}) {
    Run* run = made(name, StepStyle::EagerDirect, 0).release();
    for (size_t op = 1; op < run->trace.ops.size(); ++op) run->trace.ops[op].stack = stack;
    ws::prof::Span sample;
    sample.duration = 1'000'000, sample.name = run->trace.intern(stack);
    run->trace.append(run->trace.track(ws::prof::TrackKind::Samples, "samples of MainThread", "CPU"), sample);
    run->slot = -1, run->created = QDateTime::currentDateTime();
    window->workspace()->library()->adopt(run);
    window->workspace()->library()->setTicked(run, true);
  }
  QVERIFY(show_tab(*window, "Compare"));
  for (const char* dock : {"Setup", "Runs"}) open_dock(*window, dock);
  auto* views = window->findChild<CompareTab*>()->views();
  QTabBar* strip = views->strip();
  const auto visible = [strip] {
    int count = 0;
    for (int tab = 0; tab < strip->count(); ++tab) count += strip->isTabVisible(tab);
    return count;
  };
  QTRY_COMPARE(visible(), 5);
  QStringList wrong;
  for (int page = 0; page < strip->count(); ++page) {
    views->setPage(page);
    settle();
    for (QToolButton* arrow : strip->findChildren<QToolButton*>()) QVERIFY(!arrow->isVisible());
    for (int tab = 0; tab < strip->count(); ++tab) {
      if (!strip->isTabVisible(tab)) continue;
      QVERIFY2(strip->tabRect(tab).left() >= 0 && strip->tabRect(tab).right() <= strip->rect().right(),
               qPrintable(QString("page %1: %2 ends at %3 of %4").arg(page).arg(strip->tabText(tab)).arg(strip->tabRect(tab).right()).arg(strip->width())));
      QVERIFY(strip->tabRect(tab).width() >= strip->fontMetrics().horizontalAdvance(strip->tabText(tab)));
    }
    QVERIFY(views->rect().contains(strip->mapTo(views, strip->rect().topRight())));
    check(*window, QString("compared programs, page %1%2").arg(page).arg(theme().dark() ? "" : ", light"), wrong);
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::whatIsPointedAtAndChosen() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  takeIn(*window);
  QStringList wrong;
  auto* timeline = window->findChild<TimelineView*>();
  QPoint at;
  for (int y = timeline->timelineGeometry().top(); y < timeline->height() && at.isNull(); y += 4)
    for (int x = timeline->timelineGeometry().gutter + 200; x < timeline->width() && at.isNull(); x += 3)
      if (const auto hit = timeline->hitAt({x, y}); hit && hit->box.height() > 24) at = {x, y};
  QVERIFY(!at.isNull());
  QTest::mouseMove(timeline, at);
  settle();
  check(*window, "hover", wrong);
  QTest::mouseClick(timeline, Qt::LeftButton, {}, at);
  open_dock(*window, "Details"), open_dock(*window, "Log");
  settle();
  check(*window, "chosen, details and log open", wrong);
  QTest::mousePress(timeline, Qt::LeftButton, {}, at);
  QTest::mouseMove(timeline, at + QPoint(120, 0));
  QTest::mouseRelease(timeline, Qt::LeftButton, {}, at + QPoint(120, 0));
  timeline->search()->addMark();
  settle();
  check(*window, "range and mark", wrong);
  for (QPushButton* button : window->findChild<LivePage*>()->findChildren<QPushButton*>()) {
    if (button->accessibleName() != "Gauge" || !button->isVisible()) continue;
    for (QAction* gauge : button->menu()->actions()) {
      gauge->trigger();
      settle();
      check(*window, "gauge " + gauge->text(), wrong);
    }
  }
  QVERIFY(show_tab(*window, "Compare"));
  for (auto* pane : window->findChildren<PagedPane*>())
    for (int page = 0; pane->isVisible() && page < pane->strip()->count(); ++page) {
      pane->setPage(page);
      settle();
      check(*window, "compare " + pane->strip()->tabText(page), wrong);
    }
  auto* library = window->findChild<LibraryTab*>();
  QVERIFY(show_tab(*window, "All runs"));
  library->table()->selectRow(0);
  settle();
  check(*window, "a run of the library", wrong);
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::boxesThatComeUp() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  iris(*window, 1'000'000);
  window->train();
  QStringList wrong;
  constexpr QSize kLeastScreen(1280, 690);  // 2560×1440 at scale 2, less the title bar
  for (const auto& box : all_dialogs(*window)) {
    box->show();
    settle();
    const QString name = box->windowTitle().isEmpty() ? QString(box->metaObject()->className()) : box->windowTitle();
    check(*box, (name + " " + box->objectName()).trimmed(), wrong);
    if (box->width() > kLeastScreen.width() || box->height() > kLeastScreen.height())
      wrong << QString("%1 is %2×%3").arg(name).arg(box->width()).arg(box->height());
    box->hide();
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

WARPSIGHT_QTEST(FitTest)
#include "fit_test.moc"
