// Nothing is cut off: in each tab of a small window every label, button, choice and column title has the room that its
// text needs.
#include <QAbstractScrollArea>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>
#include <QToolButton>
#include <QtTest>

#include "app/panels/section.h"
#include "app/panels/segmented_row.h"
#include "app/window/start_page.h"
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
  if (text.endsWith(QChar(0x2026)) && qobject_cast<const QLabel*>(&w)) return "ends with an ellipsis";
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

QString beyond_the_edge(const QTableView& table) {
  if (table.accessibleName() == "Numbers of the experiment") return {};  // a column for every choice that varies
  const int more = table.horizontalScrollBar()->maximum();
  return more > 0 ? QString("table “%1”: %2 pixels of columns are out of sight").arg(table.accessibleName()).arg(more)
                  : QString();
}

QStringList cut_off(const QWidget& window) {
  QStringList found;
  for (const QWidget* w : window.findChildren<QWidget*>()) {
    if (!w->isVisible() || w->window() != &window) continue;
    if (const QString why = shortage(*w); !why.isEmpty())
      found << QString("%1 “%2” (%3): %4")
                   .arg(w->metaObject()->className(), words(*w).left(60), w->parentWidget()->metaObject()->className(),
                        why);
    if (const auto* header = qobject_cast<const QHeaderView*>(w)) found << short_columns(*header);
    if (const auto* table = qobject_cast<const QTableView*>(w); table && !beyond_the_edge(*table).isEmpty())
      found << beyond_the_edge(*table);
  }
  return found;
}

}  // namespace

class FitTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  static void settle() { QTest::qWait(400); }
  static void check(const MainWindow& window, const QString& where, QStringList& wrong) {
    for (const QString& line : cut_off(window)) wrong << where + ": " + line;
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
  void cleanup() { clear(); }
  void whatIsCutOffIsFound();
  void aNewWindow();
  void everyTabInASmallWindow();
  void everyTabInALargeWindow();
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

void FitTest::everyTabInASmallWindow() {
  auto window = open();
  window->resize(1280, 800);
  QTRY_VERIFY(window->deviceKnown());
  train(*window, "direct");
  train(*window, "arena");
  QStringList wrong;
  for (int tab = 0; tab < window->tabs()->count(); ++tab) {
    window->tabs()->setCurrentIndex(tab);
    settle();
    check(*window, window->tabs()->tabText(tab), wrong);
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void FitTest::everyTabInALargeWindow() {
  auto window = open();
  window->resize(1920, 1080);
  QTRY_VERIFY(window->deviceKnown());
  train(*window, "direct");
  train(*window, "arena");
  QStringList wrong;
  for (int tab = 0; tab < window->tabs()->count(); ++tab) {
    window->tabs()->setCurrentIndex(tab);
    settle();
    check(*window, window->tabs()->tabText(tab), wrong);
  }
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

QTEST_MAIN(FitTest)
#include "fit_test.moc"
