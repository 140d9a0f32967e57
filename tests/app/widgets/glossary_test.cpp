// Every word that the window underlines has its meaning in resources/docs/glossary.md, which mouse and keys reach.
#include <QFile>
#include <QHeaderView>
#include <QRegularExpression>
#include <QTest>
#include <QTextBrowser>
#include <QToolTip>
#include <set>

#include "app/charts/split_pane.h"
#include "app/pages/live/live_page.h"
#include "app/widgets/glossary.h"
#include "app/widgets/theme.h"
#include "app/workspace/shipped_runs.h"
#include "profiling/analysis/step_breakdown.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

class GlossaryTest : public QObject, WindowHome {
  Q_OBJECT
 private slots:
  void initTestCase() {
    qputenv("WARPSIGHT_RESOURCES", WARPSIGHT_SOURCE_DIR "/resources");
    moveIn();
  }
  void cleanup() { clear(); }
  void everyLineOfThePageIsRead();
  void labelsFindTheirWord();
  void eachUnderlinedWordIsInTheGlossary();
  void mouseAndKeysShowTheMeaning();
  void aPaintedWordHasATip();
};

void GlossaryTest::everyLineOfThePageIsRead() {
  QFile page(WARPSIGHT_SOURCE_DIR "/resources/docs/glossary.md");
  QVERIFY(page.open(QIODevice::ReadOnly));
  const QStringList lines = QString::fromUtf8(page.readAll()).split('\n').filter(QRegularExpression("^- "));
  QVERIFY(lines.size() > 30);
  QCOMPARE(glossary().size(), size_t(lines.size()));
  std::set<QString> names;
  for (const Word& word : glossary()) {
    QVERIFY2(word.meaning.endsWith('.') && word.meaning.size() < 220, qPrintable(word.name));
    QVERIFY2(names.insert(word.name).second && word_of(word.name) == &word, qPrintable(word.name));
  }
}

void GlossaryTest::labelsFindTheirWord() {
  const auto name = [](const char* label) { return word_of(label) ? word_of(label)->name : QString(); };
  QCOMPARE(name("launch gaps"), QString("Launch gap"));
  QCOMPARE(name("theoretical occupancy"), QString("Theoretical occupancy"));
  QCOMPARE(name("GPU busy"), QString("GPU busy"));
  QCOMPARE(name("fc1"), QString());
  for (const ws::prof::Meaning meaning : ws::prof::kPartOrder)  // the split of a step underlines all its rows, or the reader wonders why
    QVERIFY2(word_of(ws::app::meaning_name(meaning)), qPrintable(ws::app::meaning_name(meaning)));
  using ws::prof::PartKind, ws::prof::PathCause;
  for (const PartKind kind : {PartKind::HostData, PartKind::RankWait, PartKind::InnerWait}) QVERIFY2(word_of(ws::prof::part_name({{}, kind})), ws::prof::part_name({{}, kind}));
  for (size_t cause = 0; cause < ws::prof::kPathCauses; ++cause) {  // so are the rows of What if
    const char* shown = ws::prof::path_cause_name({static_cast<PathCause>(cause)});
    QVERIFY2(word_of(shown), shown);
  }
}

namespace {

// The names in the glossary that a text marks: [kernels], [waits|sync].
QStringList marked(const QString& text) {
  static const QRegularExpression mark("\\[(?:[^\\]|]*\\|)?([^\\]]+)\\]");
  QStringList words;
  for (auto found = mark.globalMatch(text); found.hasNext();) words << found.next().captured(1);
  return words;
}

void collect(const QWidget& window, QStringList& words) {
  static const QRegularExpression link("href=\"word:([^\"]+)\"");
  for (const WordLabel* label : window.findChildren<WordLabel*>())
    if (label->isVisible()) words << marked(label->words());
  for (const QTextBrowser* text : window.findChildren<QTextBrowser*>())
    for (auto found = link.globalMatch(text->toHtml()); text->isVisible() && found.hasNext();)
      words << QUrl::fromPercentEncoding(found.next().captured(1).toUtf8());
  for (const QHeaderView* header : window.findChildren<QHeaderView*>())
    for (int i = 0; header->isVisible() && i < header->count(); ++i)
      if (header->model()->headerData(i, Qt::Horizontal, Qt::FontRole).value<QFont>().underline())
        words << header->model()->headerData(i, Qt::Horizontal, Qt::DisplayRole).toString();
}

}  // namespace

void GlossaryTest::eachUnderlinedWordIsInTheGlossary() {
  auto window = open();
  window->resize(1600, 972);
  QTRY_VERIFY(window->workspace()->device()->info());
  settle();
  QStringList words;
  collect(*window, words);  // the first page
  QVERIFY(!words.isEmpty());
  window->openFiles({shipped_run("mnist-arena"), shipped_run("mnist-direct")});
  QTRY_COMPARE(window->workspace()->library()->ticked().size(), size_t{2});
  for (const Run* run : window->workspace()->library()->ticked()) QTRY_VERIFY(run->loaded);
  for (QAbstractButton* button : window->findChildren<QAbstractButton*>())
    if (button->text() == "Details") button->setChecked(true);
  for (int tab = 0; tab < window->tabs()->count(); ++tab) {
    window->tabs()->setCurrentIndex(tab);
    settle(50);
    collect(*window, words);
  }
  std::set<QString> found;
  for (const QString& each : words) {
    QVERIFY2(word_of(each), qPrintable(each + " is underlined, but the glossary has no such word"));
    found.insert(word_of(each)->name);
  }
  for (const char* name : {"Kernel", "Allocation", "Sync", "Theoretical occupancy"})
    QVERIFY2(found.contains(name), qPrintable(QString("no page underlines %1").arg(name)));
}

void GlossaryTest::mouseAndKeysShowTheMeaning() {
  QWidget window;
  WordLabel label(&window);
  label.setWords("[kernels] and [waits|sync] & more");
  label.move(20, 20);
  window.resize(400, 100);
  window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&window));
  QVERIFY(label.text().contains("&amp; more") && label.text().count("<a ") == 2);
  QTest::mouseClick(&label, Qt::LeftButton, {}, QPoint(10, label.height() / 2));
  QTRY_VERIFY2(QToolTip::text().contains("thousands of threads"), qPrintable(QToolTip::text()));
  QToolTip::hideText();
  QTRY_VERIFY(!QToolTip::isVisible());
  label.setFocus(Qt::TabFocusReason);
  QTest::keyClick(&label, Qt::Key_Tab);
  QTest::keyClick(&label, Qt::Key_Return);
  QTRY_VERIFY2(QToolTip::text().contains("waits until the GPU has finished") || QToolTip::text().contains("thousands of threads"), qPrintable(QToolTip::text()));
  // The ink follows the theme.
  const QString dark = label.text();
  set_theme(*qApp, ThemeName::Light);
  QTRY_VERIFY(label.text() != dark);
  set_theme(*qApp, ThemeName::Dark);
}

void GlossaryTest::aPaintedWordHasATip() {
  auto window = open();
  window->resize(1600, 972);
  window->openFiles({shipped_run("mnist-direct")});
  QTRY_VERIFY(window->workspace()->library()->ticked().size() == 1 && window->workspace()->library()->ticked()[0]->loaded);
  settle();
  auto* pane = window->findChild<LivePage*>()->split();
  pane->grab();
  QStringList tips;
  for (int y = 0; y < pane->height(); y += 6)
    for (int x = 0; x < pane->width(); x += 20) {
      QTest::mouseClick(pane, Qt::LeftButton, {}, QPoint(x, y));
      if (const QString tip = QToolTip::text(); !tip.isEmpty() && !tips.contains(tip)) tips << tip;
    }
  QVERIFY2(tips.filter("calls that ask for memory").size() == 1, qPrintable(tips.join('\n')));
}

WARPSIGHT_QTEST(GlossaryTest)
#include "glossary_test.moc"
