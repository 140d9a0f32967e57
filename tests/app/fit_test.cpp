// Nothing is cut off: in each tab of a small window every label, button, choice and column title has the room that its
// text needs. With WARPSCOPE_PICTURES=folder each state that is looked at leaves a picture there.
#include <QAbstractScrollArea>
#include <QComboBox>
#include <QDialog>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>
#include <QToolButton>
#include <QtTest>

#include "app/compare/paged_pane.h"
#include "app/library/library_tab.h"
#include "app/panels/command_palette.h"
#include "app/panels/section.h"
#include "app/panels/segmented_row.h"
#include "app/panels/spec_json_dialog.h"
#include "app/timeline/timeline_pane.h"
#include "app/timeline/timeline_view.h"
#include "app/window/finishing_box.h"
#include "app/window/key_list.h"
#include "app/window/live_page.h"
#include "app/window/side_rail.h"
#include "app/window/start_page.h"
#include "tests/app/made_run.h"
#include "tests/app/painted_text.h"
#include "tests/app/window_home.h"

using namespace ws::app;

namespace {

// What is shortened on purpose, and says the whole in its tooltip.
bool may_be_short(const QWidget& w) {
  static const QStringList kNames{"Preset", "Run of this page"};
  if (w.objectName() == "note") return true;  // beside a pane's title: whole, or in brief, or not at all
  return kNames.contains(w.accessibleName()) && !w.toolTip().isEmpty();
}

bool scrolls(const QWidget& w) {
  for (const QWidget* p = w.parentWidget(); p; p = p->parentWidget())
    if (qobject_cast<const QAbstractScrollArea*>(p)) return true;
  return false;
}

// Where nobody can scroll sideways, nothing may stand beyond the edge.
bool beyond_the_scroll(const QWidget& w) {
  for (const QWidget* p = w.parentWidget(); p; p = p->parentWidget()) {
    const auto* area = qobject_cast<const QAbstractScrollArea*>(p);
    if (!area || area->horizontalScrollBarPolicy() != Qt::ScrollBarAlwaysOff) continue;
    return w.mapTo(area->viewport(), QPoint(w.width(), 0)).x() > area->viewport()->width() + 1;
  }
  return false;
}

QString words(const QWidget& w) {
  if (const auto* label = qobject_cast<const QLabel*>(&w)) return label->text();
  if (const auto* button = qobject_cast<const QAbstractButton*>(&w)) return button->text();
  if (const auto* box = qobject_cast<const QComboBox*>(&w)) return box->currentText();
  return {};
}

// Empty: it fits. Else what is missing.
QString shortage(const QWidget& w) {
  const QString text = words(w);
  if (text.isEmpty() || may_be_short(w)) return {};
  QSize need = w.sizeHint();
  if (qobject_cast<const Segment*>(&w)) need = w.minimumSizeHint();
  if (const auto* label = qobject_cast<const QLabel*>(&w); label && label->wordWrap())
    need = {label->minimumSizeHint().width() > label->width() ? label->minimumSizeHint().width() : 0,
            label->heightForWidth(label->width())};
  if (const auto* box = qobject_cast<const QComboBox*>(&w))
    need = {box->fontMetrics().horizontalAdvance(text) + 28, 0};  // its frame and the arrow
  if (const auto* push = qobject_cast<const QPushButton*>(&w); push && push->menu())
    need = {push->fontMetrics().horizontalAdvance(text) + 22, 0};  // the arrow stands in its frame
  const bool button = qobject_cast<const QAbstractButton*>(&w) != nullptr;
  if (need.width() > w.width() + 1 || (!button && need.height() > w.height() + 1))
    return QString("%1×%2, needs %3×%4").arg(w.width()).arg(w.height()).arg(need.width()).arg(need.height());
  const bool named_like_its_menu = qobject_cast<const QDialog*>(w.window());
  if (text.endsWith(QChar(0x2026)) && qobject_cast<const QLabel*>(&w) && !named_like_its_menu)
    return "ends with an ellipsis";
  if (beyond_the_scroll(w)) return "beyond the edge of what scrolls";
  const QRect seen = w.visibleRegion().boundingRect();
  if (!scrolls(w) && !seen.contains(w.rect().adjusted(1, 1, -1, -1)))
    return QString("%1×%2 seen of %3×%4").arg(seen.width()).arg(seen.height()).arg(w.width()).arg(w.height());
  return {};
}

QStringList short_columns(const QHeaderView& header) {
  QStringList found;
  if (!header.isVisible() || header.orientation() != Qt::Horizontal) return found;
  for (int i = 0; header.model() && i < header.count(); ++i) {
    const QString title = header.model()->headerData(i, Qt::Horizontal).toString();
    const int need = header.fontMetrics().horizontalAdvance(title) + 12;
    if (!header.isSectionHidden(i) && header.sectionSize(i) < need)
      found << QString("column “%1”: %2, needs %3").arg(title).arg(header.sectionSize(i)).arg(need);
  }
  return found;
}

QStringList short_tabs(const QTabBar& tabs) {
  const bool roomy = tabs.objectName() == "strip" && !tabs.property("tight").toBool();
  const int frame = roomy ? 24 : 14;  // of a tab, as the style sheet has it
  QStringList found;
  for (int i = 0; i < tabs.count(); ++i)
    if (const int need = tabs.fontMetrics().horizontalAdvance(tabs.tabText(i)) + frame;
        tabs.isTabVisible(i) && tabs.tabRect(i).width() < need)
      found << QString("tab “%1”: %2, needs %3").arg(tabs.tabText(i)).arg(tabs.tabRect(i).width()).arg(need);
  return found;
}

QString beyond_the_edge(const QTableView& table) {
  if (table.accessibleName() == "Numbers of the experiment") return {};  // a column for every choice that varies
  constexpr int kOfTwoRuns = 6;
  if (table.accessibleName() == "Measures" && table.model()->columnCount() != kOfTwoRuns)
    return {};  // one for each run
  const int more = table.horizontalScrollBar()->maximum();
  return more > 0 ? QString("table “%1”: %2 pixels of columns are out of sight").arg(table.accessibleName()).arg(more)
                  : QString();
}

// Charts, timelines, maps and bars: what is not made of labels and buttons.
bool paints_letters(const QWidget& w) {
  return QString(w.metaObject()->className()).startsWith("ws::app::") && !qobject_cast<const QAbstractButton*>(&w) &&
         !qobject_cast<const QAbstractScrollArea*>(&w);
}

QStringList cut_off(const QWidget& window) {
  QStringList found;
  for (QWidget* w : window.findChildren<QWidget*>()) {
    if (!w->isVisible() || w->window() != &window) continue;
    if (const QString why = shortage(*w); !why.isEmpty())
      found << QString("%1 “%2” (%3): %4")
                   .arg(w->metaObject()->className(), words(*w).left(60), w->parentWidget()->metaObject()->className(),
                        why);
    if (const auto* header = qobject_cast<const QHeaderView*>(w)) found << short_columns(*header);
    if (const auto* tabs = qobject_cast<const QTabBar*>(w)) found << short_tabs(*tabs);
    if (const auto* table = qobject_cast<const QTableView*>(w); table && !beyond_the_edge(*table).isEmpty())
      found << beyond_the_edge(*table);
    if (paints_letters(*w))
      for (const QString& line : unreadable(*w)) found << QString("%1: %2").arg(w->metaObject()->className(), line);
  }
  return found;
}

}  // namespace

class FitTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  static void settle() { QTest::qWait(300); }
  static void check(QWidget& window, const QString& where, QStringList& wrong) {
    for (const QString& line : cut_off(window)) wrong << where + ": " + line;
    const QString folder = qEnvironmentVariable("WARPSCOPE_PICTURES");
    if (!folder.isEmpty()) window.grab().save(folder + "/" + QString(where).replace(' ', '-') + ".png");
  }
  // Two runs of a GPU, as far as the window can tell.
  static void takeIn(MainWindow& window) {
    for (auto style : {ws::test::StepStyle::EagerDirect, ws::test::StepStyle::GraphArena}) {
      const bool direct = style == ws::test::StepStyle::EagerDirect;
      Run* run = ws::test::made(direct ? "direct" : "arena", style, direct).release();
      run->slot = -1;
      run->created = QDateTime::currentDateTime();
      run->loaded = true;
      window.library()->adopt(run);
      window.library()->setTicked(run, true);
    }
    settle();
  }
  static void openDock(MainWindow& window, const QString& dock) {
    for (RailButton* button : window.findChildren<RailButton*>())
      if (button->text() == dock) button->setChecked(true);
  }
  static void train(MainWindow& window, const char* allocator) {
    iris(window, 30);
    window.setup()->set("exec.allocator", allocator);
    QSignalSpy ended(window.session(), &Session::ended);
    window.train();
    QTRY_COMPARE_WITH_TIMEOUT(ended.count(), 1, 30'000);
  }

 private slots:
  void initTestCase() { moveIn(); }
  void init() {  // each other test in the other theme
    static bool light = false;
    set_theme(*qApp, (light = !light) ? ThemeName::Light : ThemeName::Dark);
  }
  void cleanup() { clear(); }
  void whatIsCutOffIsFound();
  void aNewWindow();
  void everyTab_data();
  void everyTab();
  void tabsWithNothingInThem();
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
  for (const QSize size : {QSize(1280, 800), QSize(1920, 1080)}) {
    auto window = open();
    window->resize(size);
    QTRY_VERIFY(window->deviceKnown());
    settle();
    QVERIFY(window->startPage()->isVisible());
    check(*window, QString("first start, %1").arg(size.width()), wrong);
    for (Section* section : window->setup()->findChildren<Section*>()) section->setOpen(true);
    for (QPushButton* button : window->setup()->findChildren<QPushButton*>())
      if (button->text() == "More choices") button->click();
    settle();
    check(*window, QString("all choices, %1").arg(size.width()), wrong);
    window->say("There is no ended run to save, and this sentence says so at a length that needs the whole line.",
                true);
    settle();
    check(*window, QString("a problem, %1").arg(size.width()), wrong);
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::everyTab_data() {
  QTest::addColumn<QSize>("size");
  QTest::newRow("small window") << QSize(1280, 800);
  QTest::newRow("large window") << QSize(1920, 1080);
}

void FitTest::everyTab() {
  QFETCH(QSize, size);
  auto window = open();
  window->resize(size);
  QTRY_VERIFY(window->deviceKnown());
  takeIn(*window);
  train(*window, "direct");
  train(*window, "arena");
  for (Run* run : window->library()->runs()) window->library()->setTicked(run, true);
  QStringList wrong;
  size_t letters = 0;  // painted ones: that they are looked at is seen from their number
  for (int tab = 0; tab < window->tabs()->count(); ++tab) {
    window->tabs()->setCurrentIndex(tab);
    settle();
    for (QWidget* w : window->findChildren<QWidget*>())
      if (w->isVisible() && paints_letters(*w)) letters += painted_texts(*w).size();
    check(*window, QString("%1, %2").arg(window->tabs()->tabText(tab)).arg(size.width()), wrong);
  }
  QVERIFY2(letters > 400, qPrintable(QString::number(letters)));
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::tabsWithNothingInThem() {
  auto window = open();
  window->resize(1280, 800);
  QTRY_VERIFY(window->deviceKnown());
  QStringList wrong;
  for (int tab = 0; tab < window->tabs()->count(); ++tab) {
    window->tabs()->setCurrentIndex(tab);
    settle();
    check(*window, "empty " + window->tabs()->tabText(tab), wrong);
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::whatIsPointedAtAndChosen() {
  auto window = open();
  window->resize(1280, 800);
  QTRY_VERIFY(window->deviceKnown());
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
  openDock(*window, "Details"), openDock(*window, "Log");
  settle();
  check(*window, "chosen, details and log open", wrong);
  QTest::mousePress(timeline, Qt::LeftButton, {}, at);
  QTest::mouseMove(timeline, at + QPoint(120, 0));
  QTest::mouseRelease(timeline, Qt::LeftButton, {}, at + QPoint(120, 0));
  timeline->addMark();
  settle();
  check(*window, "range and mark", wrong);
  for (QPushButton* button : window->livePage()->findChildren<QPushButton*>()) {
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
  QVERIFY(show_tab(*window, "Library"));
  library->table()->selectRow(0);
  settle();
  check(*window, "a run of the library", wrong);
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::boxesThatComeUp() {
  auto window = open();
  window->resize(1280, 800);
  QTRY_VERIFY(window->deviceKnown());
  iris(*window, 1'000'000);
  window->train();
  QStringList wrong;
  KeyList keys(window->menuBar(), window.get());
  CommandPalette palette(window->menuBar(), window.get());
  SpecJsonDialog json(window->setup()->spec(), window.get());
  FinishingBox finishing(waiting_for(*window->session()), window.get());
  for (QDialog* box : std::initializer_list<QDialog*>{&keys, &palette, &json, &finishing}) {
    box->setModal(false);
    box->show();
    settle();
    check(*box, box->windowTitle().isEmpty() ? QString(box->metaObject()->className()) : box->windowTitle(), wrong);
    box->hide();
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

QTEST_MAIN(FitTest)
#include "fit_test.moc"
