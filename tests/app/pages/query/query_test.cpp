// The page Query: examples of the manual, answers as a table and a plot, refusals, and a query that is stopped.
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QTreeWidget>
#include <set>
#include <thread>

#include "app/core/sql/run_database.h"
#include "app/pages/query/query_panel.h"
#include "app/pages/query/query_plot.h"
#include "app/widgets/empty_words.h"
#include "app/widgets/paged_pane.h"
#include "app/widgets/theme.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

namespace {

constexpr const char* kEndless = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n";

std::unique_ptr<Run> shipped(const char* name, int slot) {
  auto run = std::make_unique<Run>();
  run->path = QString(WARPSIGHT_SOURCE_DIR "/resources/recorded/%1.wsrun").arg(name);
  run->slot = slot, run->title = name, run->origin = RunOrigin::File;
  return run;
}

struct Asked {
  Asked() { panel.setRuns({direct.get(), arena.get()}); }
  void answer(const QString& sql) {
    panel.setQuery(sql);
    panel.ask();
    QVERIFY(panel.running());
    QTRY_VERIFY(!panel.running());
  }
  QString cell(size_t row, size_t column) const { return QString::fromStdString(cell_text(panel.answer(), row, column)); }
  std::unique_ptr<Run> direct = shipped("mnist-direct", 0), arena = shipped("mnist-arena", 1);
  QueryPanel panel;
};

}  // namespace

class QueryTest : public QObject, WindowHome {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void answersAboutTheTickedRuns();
  void offersTheExamplesOfTheManual();
  void refusesInOneSentenceAndKeepsTheAnswer();
  void aLongQueryIsStopped();
  void theWindowDoesNotWait();
  void namesBecomeBarsAndNumbersCurves();
  void aPlotHasTheColumnsThatAreChosen();
  void ctrlEnterAsks();
  void asksTheTickedRuns();
  void theFirstQueryIsAnsweredByItself();
};

void QueryTest::answersAboutTheTickedRuns() {
  Asked asked;
  const auto* words = asked.panel.findChild<EmptyWords*>();
  QVERIFY2(!words->isHidden(), "what will be here");
  asked.answer("select run, steps, spans from runs order by run");
  QVERIFY(words->isHidden());
  QCOMPARE(asked.panel.answer().rows.size(), size_t(2));
  QCOMPARE(asked.cell(0, 0), QString("A · mnist-direct"));  // as the window calls it
  RunDatabase same({asked.direct->path.toStdString()});
  QCOMPARE(std::get<int64_t>(asked.panel.answer().rows[0].cells[2].value), std::get<int64_t>(same.query("select spans from runs").rows[0][0]));
  QVERIFY2(asked.panel.verdict().startsWith("2 rows in "), qPrintable(asked.panel.verdict()));
  asked.panel.setRuns({asked.direct.get()});
  asked.answer("select count(*) from runs");
  QCOMPARE(asked.cell(0, 0), QString("1"));
}

void QueryTest::offersTheExamplesOfTheManual() {
  Asked asked;
  emit asked.panel.examples()->aboutToShow();
  QCOMPARE(asked.panel.examples()->actions().size(), 20);
  for (QAction* example : asked.panel.examples()->actions()) {
    example->trigger();
    QTRY_VERIFY(!asked.panel.running());
    QVERIFY2(asked.panel.verdict().contains(" in ") && !asked.panel.answer().rows.empty(), qPrintable(example->text() + ": " + asked.panel.verdict()));
  }
  QVERIFY(asked.panel.views()->topLevelItemCount() >= 12);
  emit asked.panel.views()->itemActivated(asked.panel.views()->topLevelItem(0), 0);
  QVERIFY(asked.panel.query().contains("runs"));
}

void QueryTest::refusesInOneSentenceAndKeepsTheAnswer() {
  Asked asked;
  asked.answer("select count(*) as n from runs");
  for (const char* sql : {"select * from no_such", "drop table runs", "select 1; select 2", "select"}) {
    asked.answer(sql);
    QVERIFY2(asked.panel.verdict().endsWith('.') && !asked.panel.verdict().contains('\n'), qPrintable(asked.panel.verdict()));
    QCOMPARE(asked.panel.answer().columns[0].name, std::string("n"));
  }
  asked.panel.setRuns({});
  asked.panel.ask();
  QVERIFY(!asked.panel.running() && asked.panel.verdict().startsWith("Click a run"));
  Run gone;
  gone.path = "/no/such.wsrun";
  asked.panel.setRuns({&gone});
  asked.answer("select 1");
  QVERIFY2(asked.panel.verdict().contains("/no/such.wsrun"), qPrintable(asked.panel.verdict()));
}

void QueryTest::aLongQueryIsStopped() {
  Asked asked;
  asked.panel.setQuery(kEndless);
  asked.panel.ask();
  QVERIFY(asked.panel.running());
  asked.panel.stop();
  QTRY_VERIFY(!asked.panel.running());
  QCOMPARE(asked.panel.verdict(), QString("The query was stopped."));
  asked.answer("select count(*) from runs");
  QCOMPARE(asked.cell(0, 0), QString("2"));
}

void QueryTest::theWindowDoesNotWait() {
  auto asked = std::make_unique<Asked>();
  asked->panel.setQuery(kEndless);
  asked->panel.ask();
  int turns = 0;
  QTimer::singleShot(0, [&] { ++turns; });
  QTRY_VERIFY(turns == 1);
  QVERIFY2(asked->panel.running(), "the window works while the query is answered");
  asked.reset();  // a closing window stops it
}

void QueryTest::namesBecomeBarsAndNumbersCurves() {
  Asked asked;
  asked.answer("select short_name, sum(duration_ns) as ns from kernels where run = 'A · mnist-direct' group by short_name order by ns desc limit 5");
  QCOMPARE(asked.panel.plot()->picture().names.size(), size_t(5));
  QCOMPARE(asked.panel.plot()->picture().series.front().y.front(), asked.panel.answer().rows[0].cells[1].number());
  asked.answer("select run, step, loss from losses where [of] = 'train' order by run, step");
  const QueryPicture& curves = asked.panel.plot()->picture();
  QCOMPARE(curves.series.size(), size_t(2));
  QVERIFY(curves.names.empty() && curves.series[0].line && curves.series[0].name == "A · mnist-direct");
  QCOMPARE(asked.panel.plot()->graph(0)->pen().color(), theme().run[0]);
  QCOMPARE(asked.panel.plot()->graph(1)->pen().color(), theme().run[1]);
  asked.answer("select 'a' as name");
  QVERIFY(!asked.panel.plot()->picture().why_empty.isEmpty());
  const QueryPicture none = query_picture({});
  QVERIFY(!none.why_empty.isEmpty());
}

void QueryTest::aPlotHasTheColumnsThatAreChosen() {
  Table table;
  table.columns = {{.key = "a", .name = "a", .kind = Table::Kind::Count}, {.key = "b", .name = "b", .kind = Table::Kind::Count}, {.key = "c", .name = "c", .kind = Table::Kind::Count}};
  for (int i = 0; i < 5; ++i) table.rows.push_back({{5 - i, i * i, i}});
  QueryPicture picture = query_picture(table);
  QCOMPARE(picture.x, 0);
  QCOMPARE(picture.y, 2);
  QVERIFY2(!picture.series.front().line, "x goes back: dots");
  picture = query_picture(table, 2, 1);
  QVERIFY(picture.series.front().line);
  QCOMPARE(picture.series.front().y.back(), 16.0);
  for (int i = 0; i < 60; ++i) table.rows.push_back({{i, {}, {}}});
  QCOMPARE(query_picture(table, 2, 1).series.front().x.size(), size_t(5));
}

void QueryTest::ctrlEnterAsks() {
  Asked asked;
  asked.panel.setQuery("select 7 as seven");
  QTest::keyClick(asked.panel.editor(), Qt::Key_Return, Qt::ControlModifier);
  QTRY_VERIFY(!asked.panel.running());
  QCOMPARE(asked.cell(0, 0), QString("7"));
  QCOMPARE(asked.panel.query(), QString("select 7 as seven"));
}

void QueryTest::asksTheTickedRuns() {
  auto window = open();
  const QString path = runs() + "/one.wsrun";
  QVERIFY(QDir().mkpath(runs()) && QFile::copy(WARPSIGHT_SOURCE_DIR "/resources/recorded/mnist-arena.wsrun", path));
  window->openFile(path);
  QVERIFY(show_tab(*window, "Query"));
  auto* panel = window->findChild<QueryPanel*>();
  panel->setQuery("select run from runs");
  panel->ask();
  QTRY_VERIFY(!panel->running());
  QVERIFY2(panel->answer().rows.size() == 1, qPrintable(panel->verdict()));
  QCOMPARE(cell_text(panel->answer(), 0, 0), ("A · " + window->workspace()->shownRun()->title).toStdString());
}

// A page that opens shows an answer about the shown runs. It follows them until the user asks.
void QueryTest::theFirstQueryIsAnsweredByItself() {
  Asked asked;
  const auto about = [&] {
    std::set<QString> runs;
    for (size_t row = 0; row < asked.panel.answer().rows.size(); ++row) runs.insert(asked.cell(row, 0));
    return runs;
  };
  QVERIFY2(!asked.panel.running(), "a hidden page reads no file");
  asked.panel.show();
  QTRY_COMPARE(about(), (std::set<QString>{"A · mnist-direct", "B · mnist-arena"}));
  asked.panel.setRuns({asked.arena.get()});
  QTRY_COMPARE(about(), std::set<QString>{"B · mnist-arena"});
  asked.answer("select run from runs");
  asked.panel.setRuns({asked.direct.get()});
  QVERIFY(!asked.panel.running());
  QCOMPARE(about(), std::set<QString>{"B · mnist-arena"});
}

WARPSIGHT_QTEST(QueryTest)
#include "query_test.moc"
