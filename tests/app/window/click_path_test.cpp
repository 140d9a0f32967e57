// What a person who has never seen the window does until they can say "I know why B is faster": real clicks on what is in
// sight, counted. app/run opens the window with nothing in it. With WARPSIGHT_PICTURES=folder each click leaves a picture
// of what is in sight before it, and the answer one of the end.
#include <QAbstractItemView>
#include <QDir>
#include <QFileDialog>
#include <QLabel>
#include <QMenuBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <cmath>

#include "app/pages/compare/compare_headline.h"
#include "app/pages/compare/compare_tab.h"
#include "app/pages/compare/waterfall_view.h"
#include "app/pages/insights/insights_tab.h"
#include "app/pages/live/live_page.h"
#include "app/pages/setup/field_row.h"
#include "app/widgets/segmented_row.h"
#include "app/window/notice_bar.h"
#include "app/window/start_page.h"
#include "app/window/tab_strip.h"
#include "app/window/top_bar.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

class ClickPathTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  int clicks_ = 0;
  QElapsedTimer clock_;

  // On the middle of something that can be seen.
  void click(QWidget* widget, QPoint at = {}) {
    QVERIFY(widget && widget->isVisible() && widget->isEnabled());
    keepPicture(*widget->window());
    if (at.isNull()) at = widget->rect().center();
    QVERIFY2(widget->visibleRegion().contains(at), qPrintable(widget->accessibleName()));
    QTest::mouseClick(widget, Qt::LeftButton, {}, at);
    ++clicks_;
  }
  void keepPicture(QWidget& window) const {
    const QString folder = qEnvironmentVariable("WARPSIGHT_PICTURES");
    if (folder.isEmpty()) return;
    QTest::qWait(600);
    window.grab().save(QString("%1/%2-%3.png").arg(folder, QTest::currentTestFunction()).arg(clicks_));
  }
  void clickTab(MainWindow& window, const QString& name) {
    const TabStrip& strip = *window.tabStrip();
    const int page = strip.pageNamed(name), group = strip.groupOf(page);
    if (strip.groups()->currentIndex() != group) click(strip.groups(), strip.groups()->tabRect(group).center());
    if (strip.pages()->currentIndex() != page) click(strip.pages(), strip.pages()->tabRect(page).center());
  }
  void chooseFile(const QString& name);  // in the dialog that comes up next
  static QString saidBy(const CompareTab& compare) {
    QString said;
    for (const QLabel* label : compare.headline()->findChildren<QLabel*>())
      if (label->isVisible()) said += label->text() + '\n';
    return said;
  }
  // The verdict, its cause and the choice that differs can be read without another click.
  void knowsWhy(MainWindow& window) const {
    auto* compare = window.findChild<CompareTab*>();
    QVERIFY(compare->isVisible());
    QTRY_VERIFY(compare->ready());
    const QString said = saidBy(*compare);
    QVERIFY2(said.contains(QRegularExpression("faster|slower|less time|more time|noise|as fast")), qPrintable(said));
    QVERIFY2(said.contains("allocator") || said.contains("fusion") || said.contains("sync"), qPrintable(said));
    QVERIFY(compare->waterfall()->isVisible());
    QVERIFY(!compare->comparison().by_kind.causes.empty());
    keepPicture(window);
  }

 private slots:
  void initTestCase() {
    qputenv("WARPSIGHT_RESOURCES", WARPSIGHT_SOURCE_DIR "/resources");
    moveIn();
  }
  void init() { clicks_ = 0; clock_.start(); }
  void cleanup() { clear(); }
  void fromALesson();
  void fromOneChangedChoice();
  void fromAnOwnTableToItsBoundary();
  void fromARecordingToTheGuiltyLine();
};

void ClickPathTest::fromALesson() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  StartCard* speed = nullptr;
  for (StartCard* card : window->startPage()->cards())
    if (card->button()->accessibleName().contains("How fast")) speed = card;
  QVERIFY(speed);
  QTRY_VERIFY(speed->button()->isVisible());
  click(speed->button());
  QTRY_VERIFY_WITH_TIMEOUT(window->notice()->text().contains("The step time split shows"), 110'000);  // the conclusion
  QVERIFY2(window->notice()->text().contains("faster with all of it"), qPrintable(window->notice()->text()));
  const QString concluded = window->notice()->text();
  clickTab(*window, "Compare");
  knowsWhy(*window);
  // The answer is about the run of the conclusion, with the same number.
  auto* compare = window->findChild<CompareTab*>();
  QCOMPARE(compare->candidate(), window->workspace()->shownRun());
  static const QRegularExpression number(QString::fromUtf8(R"([0-9.]+( %|×) (faster|slower|less time|more time))"));
  QVERIFY2(concluded.contains(number), qPrintable(concluded));
  QVERIFY2(saidBy(*compare).contains(number.match(concluded).captured()), qPrintable(saidBy(*compare)));
  qInfo("%d clicks, %lld s", clicks_, clock_.elapsed() / 1000);
  QVERIFY(clicks_ <= 2);
  QVERIFY(clock_.elapsed() < 120'000);
}

void ClickPathTest::fromOneChangedChoice() {
  auto window = open();
  window->resize(1366, 768);
  QTRY_VERIFY(window->workspace()->device()->info());
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  window->workspace()->choices()->set("data.limit", "6000");  // as a test has less time than a person
  window->workspace()->choices()->set("train.epochs", "2");
  click(window->topBar()->train());
  QTRY_COMPARE(ended.count(), 1);
  const auto& fusion =
      window->findChild<SetupPanel*>()->row("exec.fusion")->findChild<SegmentedRow*>()->segments();
  click(fusion.front());  // off
  click(window->topBar()->train());
  QTRY_COMPARE(ended.count(), 2);
  clickTab(*window, "Compare");
  knowsWhy(*window);
  QVERIFY(clicks_ <= 4);
}

// The dialog is Qt's own here. It opens in the folder of the table.
void ClickPathTest::chooseFile(const QString& name) {
  auto* timer = new QTimer(this);
  timer->start(20);
  connect(timer, &QTimer::timeout, this, [this, timer, name] {
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    if (!dialog) return;
    for (auto* view : dialog->findChildren<QAbstractItemView*>()) {
      if (!view->isVisible() || (view->objectName() != "treeView" && view->objectName() != "listView")) continue;
      const QModelIndexList found = view->model()->match(view->model()->index(0, 0, view->rootIndex()), Qt::DisplayRole, name);
      if (found.isEmpty() || !view->visualRect(found.front()).isValid()) continue;
      timer->deleteLater();
      click(view->viewport(), view->visualRect(found.front()).center());
      for (QPushButton* button : dialog->findChildren<QPushButton*>())
        if (button->isVisible() && button->text().remove('&') == "Open") click(button);
      if (dialog->isVisible()) dialog->reject();  // the click found nothing
      return;
    }
  });
}

void ClickPathTest::fromAnOwnTableToItsBoundary() {
  QTemporaryDir folder;
  QFile table(folder.path() + "/moons.csv");
  QVERIFY(table.open(QIODevice::WriteOnly));
  table.write("x,y,label\n");
  for (int i = 0; i < 400; ++i) {
    const double turn = 3.1416 * (i / 2) / 200, up = i % 2 ? 1 : -1;
    table.write(QString("%1,%2,%3\n").arg(std::cos(turn) * up + (i % 2 ? 0 : 1)).arg(std::sin(turn) * up + (i % 2 ? 0 : 0.5)).arg(i % 2 ? "upper" : "lower").toUtf8());
  }
  table.close();
  const QString before = QDir::currentPath();
  QVERIFY(QDir::setCurrent(folder.path()));
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  for (QPushButton* link : window->startPage()->findChildren<QPushButton*>())
    if (link->text().startsWith("Your own data")) {
      QTRY_VERIFY(link->isVisible());
      chooseFile("moons.csv");
      click(link);
    }
  QDir::setCurrent(before);
  QCOMPARE(QString::fromStdString(window->workspace()->choices()->spec().data.label_column), QString("label"));
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  click(window->topBar()->train());
  QTRY_COMPARE(ended.count(), 1);
  const LearnedView* plane = window->findChild<LivePage*>()->network()->views()[0];
  QTRY_VERIFY(plane->isVisible() && plane->hasContent());
  keepPicture(*window);
  qInfo("%d clicks", clicks_);
  QVERIFY(clicks_ <= 5);
}

// A program that the window recorded ends with its run in view. A shipped recording comes from the menu.
void ClickPathTest::fromARecordingToTheGuiltyLine() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  QMenuBar* bar = window->menuBar();
  const auto named = [](const QWidget* widget, const QString& text) {
    for (QAction* action : widget->actions())
      if (action->text().remove('&') == text) return action;
    return static_cast<QAction*>(nullptr);
  };
  QAction* file = named(bar, "File");
  click(bar, bar->actionGeometry(file).center());
  QTRY_VERIFY(file->menu()->isVisible());
  QAction* recorded = named(file->menu(), "Open the recorded runs");
  QVERIFY(recorded);
  QTest::mouseMove(file->menu(), file->menu()->actionGeometry(recorded).center() - QPoint(3, 0));  // the submenu opens by itself
  QTest::mouseMove(file->menu(), file->menu()->actionGeometry(recorded).center());
  QTRY_VERIFY(recorded->menu()->isVisible());
  QAction* loader = named(recorded->menu(), "A training with a slow loader");
  QVERIFY(loader);
  click(recorded->menu(), recorded->menu()->actionGeometry(loader).center());
  QTRY_VERIFY(window->workspace()->shownRun() && window->workspace()->shownRun()->loaded);
  clickTab(*window, "Advice");
  const auto* insights = window->findChild<InsightsTab*>();
  QVERIFY(insights->isVisible());
  const auto names_line = [&] {
    for (const QLabel* label : insights->findChildren<QLabel*>())
      if (label->text().contains("slow_loader.py:") && !label->visibleRegion().isEmpty()) return true;
    return false;
  };
  QTRY_VERIFY(names_line());
  keepPicture(*window);
  QVERIFY(clicks_ <= 3);
}

WARPSIGHT_QTEST(ClickPathTest)
#include "click_path_test.moc"
