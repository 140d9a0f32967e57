// The page "What if": edits and their prediction, both steps, what would help most, and why a proof is not possible. The page
// "Checks": how far predictions were off.
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QToolButton>

#include "app/charts/plot.h"
#include "app/core/insights/predicted_savings.h"
#include "app/pages/checks/checks_panel.h"
#include "app/pages/insights/insights_tab.h"
#include "app/pages/what_if/step_path_view.h"
#include "app/pages/what_if/what_if_panel.h"
#include "app/widgets/glossary.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/window_tests.h"
#include "profiling/base/text.h"
#include "tests/profiling/causes/made_program.h"

using namespace ws;
using namespace ws::app;

namespace {

std::unique_ptr<Run> made_run(bool sync) {
  prof::MadeProgram program = prof::small_network();
  program.sync = sync;
  auto run = std::make_unique<Run>();
  run->trace = program.run().trace;
  run->step_time.us = {program.step_us(), 0.5};
  run->origin = RunOrigin::Imported;
  return run;
}

struct ShownWhatIf {
  explicit ShownWhatIf(bool sync = true) : run(made_run(sync)) {
    panel.resize(1200, 760);
    panel.show();
    panel.setRun(run.get());
  }
  ~ShownWhatIf() { panel.setRun(nullptr); }
  // "what to do": what would help most. "what": the parts of the step.
  QTableView* tableOf(const QString& first_column) {
    for (auto* table : panel.findChildren<QTableView*>())
      if (table->model()->headerData(0, Qt::Horizontal).toString() == first_column) return table;
    return nullptr;
  }
  static QString plain(QString text) { return text.replace(QChar(0xa0), ' '); }
  QString notes() const { return plain(panel.notes()); }
  QString tip() const {  // of the result
    QStringList tips;
    for (const QLabel* label : panel.findChildren<QLabel*>()) tips << plain(label->toolTip());
    return tips.join('\n');
  }
  std::unique_ptr<Run> run;
  WhatIfPanel panel;
};

}  // namespace

class WhatIfTest : public QObject, FilledWindow {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void thePageOpensWithTheFirstAdvice();
  void anEditIsPredicted();
  void noKernelSeemsToPrecedeItsLaunch();
  void thePathIsFramed();
  void theMenuOffersEditsThatTheRunAllows();
  void aWrongEditIsRefusedAndChangesNothing();
  void editsOfAnotherRunAreLeftOut();
  void aRowOfTheTableBecomesAnEdit();
  void whatWouldHelpMostIsTheAdvice();
  void aProofReportsWhyItIsNotPossible();
  void theErrorsOfProofsAreQuoted();
  void checksHaveAPage();
  void aTrainingOnTheCpuIsProved();
  void theWindowHasThePage();
  void aWaitForDataIsNamedAsOne();
  void aPartOfRanksIsOfOneRank();
};

// They are edits as any other: they can be removed, cleared and added to. Until then another advice takes their place.
void WhatIfTest::thePageOpensWithTheFirstAdvice() {
  ShownWhatIf shown;
  const auto edits_of = [&](size_t remedy) { return shown.panel.remedies()[remedy].edits; };
  const auto shown_edits = [&] { return shown.panel.edits().join("; ").toStdString(); };
  const auto headline = [&] { return shown.panel.headline().replace(QChar(0xa0), ' '); };
  QVERIFY(!shown.panel.remedies().empty());
  QCOMPARE(shown_edits(), edits_of(0));
  QVERIFY2(headline().startsWith("A step would take ") && headline().contains(" less (") && headline().endsWith(" %)."), qPrintable(headline()));
  QCOMPARE(shown.panel.view()->pictures().size(), 2u);
  QVERIFY(shown.panel.view()->pictures()[1].length_us < shown.panel.view()->pictures()[0].length_us);
  auto* advice = shown.tableOf("what to do");
  QVERIFY(advice->selectionModel()->isRowSelected(0, {}));
  for (int row = 0; row < advice->model()->rowCount(); ++row)  // named as on the page Advice
    QCOMPARE(advice->model()->index(row, 0).data().toString().toStdString(), action_of(shown.panel.remedies()[static_cast<size_t>(row)]));
  for (int row = advice->model()->rowCount() - 1; row >= 0; --row)
    if (!edits_of(static_cast<size_t>(row)).empty()) {
      emit advice->activated(advice->model()->index(row, 0));
      QCOMPARE(shown_edits(), edits_of(static_cast<size_t>(row)));
    }
  QVERIFY(shown.panel.addEdit("launch calls /2"));  // now they are the person's
  QCOMPARE(shown_edits(), edits_of(0) + "; launch calls /2");
  shown.panel.clearEdits();
  QCOMPARE(shown.panel.edits(), QStringList());
  QVERIFY(!advice->selectionModel()->hasSelection());
  QCOMPARE(shown.panel.view()->pictures().size(), 1u);
  QVERIFY2(headline().startsWith("A step takes ") && headline().endsWith(" Add an edit, or double-click a row."), qPrintable(headline()));
  shown.panel.hide(), shown.panel.show();
  QCOMPARE(shown.panel.edits(), QStringList());  // they do not come back by themselves
  const auto other = made_run(true);
  shown.panel.setRun(other.get());
  QCOMPARE(shown_edits(), edits_of(0));
  shown.panel.removeEdit(0);
  QCOMPARE(shown.panel.edits(), QStringList());
  shown.panel.setRun(nullptr);
}

void WhatIfTest::anEditIsPredicted() {
  ShownWhatIf shown;
  shown.panel.clearEdits();
  const QString written = shown.panel.input()->placeholderText().remove("or type: ");  // its last edit names an op of this run
  QVERIFY2(written.endsWith(" /2") && shown.panel.addEdit(written), qPrintable(written));
  shown.panel.clearEdits();
  const double before = shown.panel.result()->measured_us.value;
  QVERIFY(shown.panel.addEdit("no sync; launch calls /2; no sync"));
  QCOMPARE(shown.panel.edits(), QStringList({"no sync", "launch calls /2"}));
  const auto* list = shown.panel.findChild<QListWidget*>();  // what each edit saves alone, as Advice says it, and their sum
  const prof::WhatIf& predicted = *shown.panel.result();
  const auto row = [&](int i) { return list->itemWidget(list->item(i))->accessibleName(); };
  const auto saving = [&](double us) { return QString(QChar(0x2212)) + QString::fromStdString(prof::interval_text({us, 0}, predicted.measured_us.value)); };
  QCOMPARE(list->count(), 3);
  QCOMPARE(row(0), "remove all syncs " + saving(predicted.edits[0].alone_us));
  QCOMPARE(row(2), "together " + saving(predicted.saves_us.value));
  QVERIFY(shown.panel.result()->predicted_us.value < 0.95 * before);
  QCOMPARE(shown.panel.view()->pictures().size(), 2u);
  QVERIFY(shown.panel.view()->pictures()[0].rows.size() >= 2);
  QVERIFY(!shown.panel.view()->pictures()[1].rows.empty());  // without waits the host is steps ahead of the GPU
  QVERIFY(!shown.panel.view()->grab().isNull());
  shown.panel.removeEdit(0);
  QCOMPARE(shown.panel.edits(), QStringList({"launch calls /2"}));
}

// Not as the op that took the batch.
void WhatIfTest::aWaitForDataIsNamedAsOne() {
  auto window = open();
  window->openFile(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-slow-loader.wsrun");
  Workspace& workspace = *window->workspace();
  QTRY_VERIFY(workspace.shownRun() && workspace.shownRun()->loaded);
  Focus focus;
  WhatIfPanel panel;
  panel.resize(1400, 800);
  panel.show();
  panel.setRun(workspace.shownRun());
  QVERIFY(panel.result() && !panel.view()->pictures().empty());
  const PathPicture::Bar* longest = nullptr;
  for (const PathPicture::Row& row : panel.view()->pictures()[0].rows)
    for (const PathPicture::Bar& bar : row.bars)
      if (!longest || bar.end - bar.begin > longest->end - longest->begin) longest = &bar;
  QVERIFY(longest);
  QCOMPARE(longest->name, QString("waits for data"));
  QStringList names;
  for (const PathPicture::Row& row : panel.view()->pictures()[0].rows) names << row.name;
  QVERIFY2(names.contains("host") && names.filter("CUDA API").isEmpty(), qPrintable(names.join(", ")));  // that row also waits for data
  QVERIFY2(names.filter("copies").isEmpty(), qPrintable(names.join(", ")));  // a row that has kernels is a stream
  const QList<QLabel*> labels = panel.findChildren<QLabel*>();
  for (const char* note : {"A ready loader still hands over each batch", "these are the “launch gaps” of the split", "One more suggestion has no predicted saving"})
    QVERIFY2(std::ranges::any_of(labels, [&](const QLabel* label) { return label->isVisible() && label->text().contains(QString::fromUtf8(note)); }), note);
  const auto row_of = [](const QWidget& page, const QString& name) {
    for (const QTableView* table : page.findChildren<QTableView*>())
      if (!table->model()->match(table->model()->index(0, 0), Qt::DisplayRole, name, 1, Qt::MatchExactly).isEmpty()) return true;
    return false;
  };
  QVERIFY2(row_of(panel, "waits for data, hand-over") && !row_of(panel, "waits for data"), "the rest after the edit has its own name");
  WhatIfPanel plain;
  plain.resize(1400, 800);
  plain.show();
  plain.setRun(workspace.shownRun());
  plain.clearEdits();
  const QList<QTableView*> of_plain = plain.findChildren<QTableView*>();
  const auto causes = std::ranges::find_if(of_plain, [](const QTableView* table) { return table->model()->headerData(0, Qt::Horizontal).toString() == "what"; });
  QVERIFY((*causes)->model()->index(0, 0).data().toString().startsWith("waits for data"));
  QCOMPARE((*causes)->model()->index(0, 1).data(kMeaningRole).toInt(), kDataWaitSwatch);  // the colour of the step's picture
}

// Its own time fits into the step.
void WhatIfTest::aPartOfRanksIsOfOneRank() {
  auto window = open();
  window->openFile(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-gpt-2-ranks.wsrun");
  Workspace& workspace = *window->workspace();
  QTRY_VERIFY(workspace.shownRun() && workspace.shownRun()->loaded);
  WhatIfPanel panel;
  panel.resize(1400, 800);
  panel.show();
  panel.setRun(workspace.shownRun());
  QVERIFY(std::ranges::all_of(panel.result()->rows, [&](const auto& row) { return row.now_us <= panel.result()->measured_us.value; }));
  QVERIFY(std::ranges::all_of(panel.result()->rows, [](const auto& row) { return row.rank == 0 || row.rank == 1; }));
  const QList<QTableView*> tables = panel.findChildren<QTableView*>();
  const auto parts = std::ranges::find_if(tables, [](const QTableView* table) { return table->model()->headerData(0, Qt::Horizontal).toString() == "what"; });
  QVERIFY(parts != tables.end());
  // One figure a row: other times would be taken for it. The rank belongs to the name.
  QCOMPARE((*parts)->model()->columnCount(), 2);
  QCOMPARE((*parts)->model()->headerData(1, Qt::Horizontal).toString(), QString("saved per step, ms"));
  const QModelIndex first = (*parts)->model()->index(0, 0);
  QVERIFY2(first.data().toString().contains(", rank "), qPrintable(first.data().toString()));
  QVERIFY2(first.data(Qt::ToolTipRole).toString().startsWith(first.data().toString() + "\nOwn time "), qPrintable(first.data(Qt::ToolTipRole).toString()));
  const Word* word = word_of(first.data().toString());
  QVERIFY2(word && first.data(Qt::ToolTipRole).toString().endsWith("\n" + word->name + ": " + word->meaning), qPrintable(first.data(Qt::ToolTipRole).toString()));
  QCOMPARE((*parts)->model()->index(0, 1).data(kBarRole).toDouble(), 1.0);
  QCOMPARE(panel.view()->pictures().size(), size_t{2});
  QStringList rows[2];  // the same in both steps, and each named once
  for (size_t i = 0; i < 2; ++i)
    for (const PathPicture::Row& row : panel.view()->pictures()[i].rows) {
      QVERIFY2(!rows[i].contains(row.name), qPrintable(row.name));
      rows[i] << row.name;
      for (const PathPicture::Bar& bar : row.bars) QVERIFY(bar.end <= panel.view()->pictures()[i].length_us + 0.01);
    }
  QCOMPARE(rows[1], rows[0]);
  // A rank that is on time still has its work, and the title names it. The path has no holes, also where the host is outside CUDA.
  QTRY_COMPARE(panel.edits(), QStringList({"rank 1 on time"}));  // the ranks are compared on another thread
  QVERIFY2(panel.view()->pictures()[1].title.startsWith("predicted, with rank 1 on time"), qPrintable(panel.view()->pictures()[1].title));
  for (const PathPicture& picture : panel.view()->pictures()) {
    double on_path = 0;
    for (const PathPicture::Row& row : picture.rows)
      for (const PathPicture::Bar& bar : row.bars) on_path += bar.path.on_path() ? bar.end - bar.begin : 0;
    QVERIFY2(on_path > 0.95 * picture.length_us, qPrintable(QString("%1: %2 of %3 µs").arg(picture.title).arg(on_path).arg(picture.length_us)));
  }
  for (const PathPicture& picture : panel.view()->pictures())
    for (const PathPicture::Row& row : picture.rows) {
      if (!row.name.startsWith("rank 1: ")) continue;
      const auto works = std::ranges::any_of(row.bars, [](const PathPicture::Bar& bar) { return bar.meaning == prof::Meaning::Matrix && bar.end - bar.begin > 1; });
      QVERIFY2(works || !row.name.contains("stream 7"), qPrintable(picture.title + ": " + row.name));
    }
}

// The picture begins with the launch of its first kernel. Where the host is a step ahead, the legend says so.
void WhatIfTest::noKernelSeemsToPrecedeItsLaunch() {
  ShownWhatIf shown, ahead(false);
  for (ShownWhatIf* one : {&shown, &ahead}) one->panel.clearEdits();
  double launch = 1e9, kernel = 1e9;
  for (const PathPicture::Row& row : shown.panel.view()->pictures()[0].rows)
    for (const PathPicture::Bar& bar : row.bars) {
      if (bar.is_gap) continue;
      double& first = row.name == "CUDA API" ? launch : kernel;
      first = std::min(first, bar.begin);
    }
  QVERIFY2(launch < kernel && kernel < 1e9, qPrintable(QString("%1, %2").arg(launch).arg(kernel)));
  QVERIFY(!shown.panel.view()->hostIsAhead());
  QVERIFY(ahead.panel.view()->hostIsAhead());
}

// Two grey calls: the one on the path has lines of the text's colour above and below, the one with time to spare has none.
void WhatIfTest::thePathIsFramed() {
  constexpr int kBelowAxis = 60;
  for (const ThemeName name : {ThemeName::Dark, ThemeName::Light}) {
    const PaintTheme paint(name);
    const QRgb grey = theme().of(prof::Meaning::Launch).rgb(), ink = theme().text.rgb();
    StepPathView view;
    view.resize(600, 240);
    QPalette ground = view.palette();
    ground.setColor(QPalette::Window, theme().base);
    view.setPalette(ground);
    const auto call = [](double begin, int64_t on_path_ns) {
      return PathPicture::Bar{.begin = begin, .end = begin + 30, .meaning = prof::Meaning::Launch, .path = {on_path_ns, 30'000, on_path_ns > 0 ? 0 : 5'000}};
    };
    view.setPictures({{.length_us = 100, .rows = {{.bars = {call(5, 30'000), call(60, 0)}}}}});
    const QImage image = view.grab().toImage();
    int on_path = 0, spare = 0;
    for (int x = 0; x < image.width(); ++x) {
      int lines = 0, filled = 0, faint = 0;
      for (int y = kBelowAxis; y < image.height(); ++y) {
        const QRgb pixel = image.pixel(x, y);
        lines += pixel == ink, filled += pixel == grey;
        faint += std::abs(qGreen(pixel) - mixed(theme().of(prof::Meaning::Launch), theme().base, kOffPath).green()) < 3;
      }
      const bool strong = filled > 20, weak = filled == 0 && faint > 20;
      on_path += strong, spare += weak;
      if (strong) QVERIFY2(lines >= 2, qPrintable(QString::number(lines)));
      if (weak) QCOMPARE(lines, 0);
    }
    QVERIFY2(on_path > 80 && spare > 80, qPrintable(QString("%1, %2").arg(on_path).arg(spare)));
  }
}

// Each of them can be applied and taken away again, without a word of their language.
void WhatIfTest::theMenuOffersEditsThatTheRunAllows() {
  ShownWhatIf shown;
  shown.panel.clearEdits();
  emit shown.panel.offersMenu()->aboutToShow();
  QStringList words;
  int offers = 0;
  for (const QAction* group : shown.panel.offersMenu()->actions())
    for (QAction* offer : group->menu()->actions()) {
      words << offer->text();
      offer->trigger();
      QVERIFY2(shown.panel.edits().size() == 1, qPrintable(offer->text()));
      QToolButton* remove = nullptr;
      for (auto* button : shown.panel.findChildren<QToolButton*>())
        if (button->accessibleName() == "Take away: " + QString::fromStdString(prof::edits_phrase(shown.panel.edits()[0].toStdString()))) remove = button;
      QVERIFY2(remove, qPrintable(offer->text()));
      remove->click();
      QTRY_COMPARE(shown.panel.edits(), QStringList());
      ++offers;
    }
  QVERIFY2(offers > 8, qPrintable(words.join('\n')));
  for (const char* expected : {"remove all syncs\tno sync", "make fc1 2× faster\tfc1 /2", "make the host infinitely fast\tinfinitely fast host"}) QVERIFY2(words.contains(expected), qPrintable(words.join('\n')));
  for (const char* none : {"no allocator calls", "loader ready", "copies pinned"}) QVERIFY2(words.filter(none).isEmpty(), none);
}

void WhatIfTest::aWrongEditIsRefusedAndChangesNothing() {
  ShownWhatIf shown;
  shown.panel.clearEdits();
  QVERIFY(shown.panel.addEdit("no sync"));
  QSignalSpy said(&shown.panel, &WhatIfPanel::said);
  QVERIFY(!shown.panel.addEdit("fc9 /2"));
  QVERIFY(!shown.panel.addEdit("make it so"));
  QCOMPARE(said.size(), 2);
  QVERIFY(said[0][0].toString().contains("fc9"));
  QCOMPARE(shown.panel.edits(), QStringList({"no sync"}));
  shown.panel.ask(shown.run.get(), "fc9 /2");  // of another page: it can be corrected
  QCOMPARE(said.size(), 3);
  QCOMPARE(shown.panel.input()->text(), QString("fc9 /2"));
  QCOMPARE(shown.panel.edits(), QStringList({"no sync"}));
}

void WhatIfTest::editsOfAnotherRunAreLeftOut() {
  ShownWhatIf shown;
  shown.panel.clearEdits();
  QVERIFY(shown.panel.addEdit("no sync"));
  const auto other = made_run(false);
  QSignalSpy said(&shown.panel, &WhatIfPanel::said);
  shown.panel.setRun(other.get());
  QVERIFY(!shown.panel.edits().contains("no sync"));
  QVERIFY(shown.panel.result());
  QCOMPARE(said.size(), 1);
  shown.panel.setRun(nullptr);
}

void WhatIfTest::aRowOfTheTableBecomesAnEdit() {
  ShownWhatIf shown;
  shown.panel.clearEdits();
  auto* table = shown.tableOf("what");
  QVERIFY(table && table->model()->rowCount() > 4);
  // The rows are causes, which do not contain each other: an op has launch calls.
  const auto& rows = shown.panel.result()->rows;
  const auto first = std::ranges::find(rows, prof::GroupKind::Cause, &prof::HelpRow::kind);
  QCOMPARE(table->model()->rowCount(), static_cast<int>(std::ranges::count(rows, prof::GroupKind::Cause, &prof::HelpRow::kind)));
  const QString edit = QString::fromStdString(prof::edit_of(*first));
  emit table->activated(table->model()->index(0, 0));
  QCOMPARE(shown.panel.edits(), QStringList({edit}));
  shown.panel.clearEdits();
  auto* advice = shown.tableOf("what to do");
  QVERIFY(advice && !shown.panel.remedies().empty());
  QCOMPARE(advice->model()->rowCount(), static_cast<int>(shown.panel.remedies().size()));
  emit advice->activated(advice->model()->index(0, 0));
  QCOMPARE(shown.panel.edits(), QStringList({QString::fromStdString(shown.panel.remedies()[0].edits)}));
  QVERIFY(std::abs(shown.panel.result()->saves_us.value - shown.panel.remedies()[0].saves_us.value) < 1e-6);
}

// The page Advice has a card for each row, with the same saving.
void WhatIfTest::whatWouldHelpMostIsTheAdvice() {
  auto window = open();
  for (const char* name : {"mnist-direct", "pytorch-gpt-2-ranks"}) {
    window->openFile(QString(WARPSIGHT_SOURCE_DIR "/resources/recorded/%1.wsrun").arg(name));
    Workspace& workspace = *window->workspace();
    QTRY_VERIFY(workspace.shownRun() && workspace.shownRun()->path.contains(name) && workspace.shownRun()->loaded);
    WhatIfPanel panel;
    panel.resize(1400, 800);
    panel.show();
    panel.setRun(workspace.shownRun());
    auto* insights = window->findChild<InsightsTab*>();
    const auto savings = [](const std::vector<Insight>& found) {
      QStringList all;
      for (const Insight& one : found)
        if (one.saves_us.known()) all << QString("%1 %2").arg(QString::fromStdString(one.edits)).arg(one.saves_us.value);
      all.sort();
      return all;
    };
    const auto cards = [&] {
      std::vector<Insight> found;
      for (const InsightCard* card : insights->cards()) found.push_back(card->insight());
      return savings(found);
    };
    QTRY_VERIFY_WITH_TIMEOUT(cards().size() >= 2 && savings(panel.remedies()) == cards(), 10'000);  // the ranks are compared on another thread
  }
}

void WhatIfTest::aProofReportsWhyItIsNotPossible() {
  ShownWhatIf shown;
  shown.panel.clearEdits();
  const auto reason = [&] {
    QStringList words;
    for (const QLabel* label : shown.panel.findChildren<QLabel*>()) words << label->text();
    return words.join('\n');
  };
  QVERIFY(!shown.panel.proveButton()->isEnabled());
  QVERIFY(reason().contains("Add an edit first."));
  QVERIFY(shown.panel.addEdit("no sync"));
  QVERIFY(!shown.panel.proveButton()->isEnabled());
  QVERIFY(reason().contains("Only trainings of Warpsight"));
  shown.run->origin = RunOrigin::File;
  shown.run->spec = load_spec("mnist-naive");
  set_field(shown.run->spec, "exec.device", "cpu");
  shown.panel.setTraining(true);
  QVERIFY(reason().contains("Stop the training first"));
  shown.panel.setTraining(false);
  QVERIFY(shown.panel.proveButton()->isEnabled());
  QVERIFY(shown.panel.addEdit("fc1 /2"));
  QVERIFY(!shown.panel.proveButton()->isEnabled());
  QVERIFY(reason().contains("is no setting"));
}

// Without proofs of this machine those that ship are quoted, with their card.
void WhatIfTest::theErrorsOfProofsAreQuoted() {
  qputenv("WARPSIGHT_RUNS", runs().toUtf8());
  {
    ShownWhatIf shown;
    shown.panel.clearEdits();
    QVERIFY(shown.panel.addEdit("no sync"));
    QVERIFY2(shown.notes().contains(QString::fromUtf8("How sure: ± ")) && shown.notes().endsWith(QString::fromUtf8(" · not checked yet")), qPrintable(shown.notes()));
    shown.run->origin = RunOrigin::File;
    shown.panel.clearEdits();
    QVERIFY(shown.panel.addEdit("no sync"));
    QVERIFY2(shown.notes().contains(" · typically ") && shown.notes().endsWith(" checks on an NVIDIA H200"), qPrintable(shown.notes()));
    QVERIFY2(shown.tip().contains("Such predictions of a training were typically "), qPrintable(shown.tip()));
    QVERIFY2(shown.tip().contains(" in the split. A step saves ") || shown.tip().contains(" of it: a step saves "), qPrintable(shown.tip()));
  }
  Proof proof;
  proof.name = "a", proof.edits = "no sync", proof.device = "CPU", proof.before_us = {200, 1}, proof.predicted_us = {103, 1}, proof.after_us = {100, 1};
  keep(proof, proofs_file());
  ShownWhatIf shown;
  shown.panel.clearEdits();
  QVERIFY2(!shown.notes().contains("How sure"), qPrintable(shown.notes()));
  QVERIFY(shown.panel.addEdit("no sync"));
  QVERIFY2(shown.notes().endsWith(" · 3.0 % off in 1 check on this machine"), qPrintable(shown.notes()));
  QVERIFY2(shown.tip().contains("The median step is known to ± ") && !shown.panel.headline().contains("±"), qPrintable(shown.panel.headline()));
  QVERIFY(shown.panel.addEdit("launch calls /2"));
  QVERIFY2(!shown.notes().contains("on this machine"), qPrintable(shown.notes()));  // several edits are another kind
}

void WhatIfTest::checksHaveAPage() {
  qputenv("WARPSIGHT_RUNS", runs().toUtf8());
  ChecksPanel checks;
  checks.resize(1200, 700);
  checks.show();
  const auto headings = [&] {
    int found = 0;
    for (int row = 0; row < checks.table()->model()->rowCount(); ++row) found += checks.table()->columnSpan(row, 0) > 1;
    return found;
  };
  QVERIFY2(headings() >= 4 && checks.table()->model()->rowCount() > 40, qPrintable(QString::number(headings())));
  for (const int width : {1240, 1305}) {  // as in windows of 1600 and 1366 pixels
    checks.resize(width, 700);
    for (const auto& [column, text] : {std::pair{0, "no sync; no allocator calls"}, {1, "MNIST 784-256-128-10 · direct"}})
      QTRY_VERIFY2(checks.table()->columnWidth(column) >= QFontMetrics(ui_font(12)).horizontalAdvance(QString::fromUtf8(text)) + 12, text);
  }
  checks.resize(1200, 700);
  checks.hide();
  Proof proof;
  proof.name = "a", proof.edits = "no sync", proof.device = "CPU", proof.before_us = {200, 1}, proof.predicted_us = {103, 1}, proof.after_us = {100, 1};
  proof.versions.warpsight = "0.1", proof.versions.driver = "580.159";
  keep(proof, proofs_file());
  checks.show();
  QCOMPARE(headings(), 1);
  QVERIFY2(checks.headline().replace(QChar(0xa0), ' ').startsWith("Predictions were typically 3.0 % off"), qPrintable(checks.headline()));
  const Plot* plot = checks.plot();
  const auto point = [&] { return QPointF(plot->xAxis->coordToPixel(100), plot->yAxis->coordToPixel(3)); };
  QVERIFY2(checks.proofAt(point()).endsWith("3.0 % off. CPU, Warpsight 0.1, driver 580.159."), qPrintable(checks.proofAt(point())));
  QCOMPARE(checks.proofAt(point() + QPointF(60, 60)), QString());
  const auto filled = [&] { return checks.plot()->graph(checks.plot()->graphCount() - 1)->dataCount(); };
  for (const int row : {0, 1}) {  // the kind, and the check
    checks.table()->selectRow(row);
    QCOMPARE(filled(), 1);
  }
  checks.table()->clearSelection();
  QCOMPARE(filled(), 0);
  QVERIFY(!checks.grab().isNull());
}

void WhatIfTest::aTrainingOnTheCpuIsProved() {
  qputenv("WARPSIGHT_RUNS", runs().toUtf8());
  ShownWhatIf shown;
  shown.run->origin = RunOrigin::File;
  shown.run->spec = load_spec("iris");
  set_field(shown.run->spec, "exec.device", "cpu");
  set_field(shown.run->spec, "exec.sync", "every-op");
  shown.panel.clearEdits();
  QVERIFY(shown.panel.addEdit("no sync"));
  QVERIFY2(shown.panel.proveButton()->isEnabled(), qPrintable(shown.panel.whyNotLabel()->text()));
  QSignalSpy said(&shown.panel, &WhatIfPanel::said);
  shown.panel.proveButton()->click();
  QVERIFY(!shown.panel.proveButton()->isEnabled());
  QVERIFY(shown.panel.whyNotLabel()->text().contains("Trains both"));
  QTRY_VERIFY_WITH_TIMEOUT(shown.panel.proveButton()->isEnabled(), 60'000);
  QVERIFY2(said.isEmpty(), said.isEmpty() ? "" : qPrintable(said[0][0].toString()));
  QVERIFY2(shown.panel.proofLabel()->text().contains("measured") && shown.panel.proofLabel()->text().contains("every-op → on-read"), qPrintable(shown.panel.proofLabel()->text()));
  const std::vector<Proof> kept = kept_proofs(proofs_file());
  QCOMPARE(kept.size(), 1u);
  QCOMPARE(kept[0].rounds, 3);
  QCOMPARE(kept[0].edits, std::string("no sync"));
  QVERIFY(kept[0].after_us.value > 0 && kept[0].predicted_us.value > 0);
  QVERIFY(shown.panel.notes().contains("1 check on this machine"));
}

void WhatIfTest::theWindowHasThePage() {
  auto window = open();
  QVERIFY(show_tab(*window, "What if"));
  QVERIFY(window->findChild<WhatIfPanel*>());
}

WARPSIGHT_QTEST(WhatIfTest)
#include "what_if_test.moc"
