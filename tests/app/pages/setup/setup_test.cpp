// The Setup dock: what each choice says of itself, and the layers as rows.
#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QToolButton>
#include <QTreeWidget>
#include <QTest>

#include "app/pages/setup/field_row.h"
#include "app/pages/setup/layer_editor.h"
#include "app/pages/setup/layer_table.h"
#include "app/widgets/section.h"
#include "app/widgets/segmented_row.h"
#include "app/window/top_bar.h"
#include "engine/devices/devices.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

class SetupTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  std::unique_ptr<MainWindow> open() const {
    auto window = WindowHome::open();
    open_dock(*window, "Setup");
    return window;
  }
  static LayerEditor* layersOf(MainWindow& window) {
    for (Section* section : window.findChild<SetupPanel*>()->findChildren<Section*>()) section->setOpen(true);
    QWidget* row = window.findChild<SetupPanel*>()->row("model.hidden");
    static_cast<QAbstractButton*>(named(row, "A row for each layer"))->setChecked(true);
    settle(30);
    return row->findChild<LayerEditor*>();
  }
  static void explain(MainWindow& window) {
    for (QAbstractButton* button : window.findChild<SetupPanel*>()->findChildren<QAbstractButton*>())
      if (button->accessibleName().startsWith("Explain ")) button->setChecked(true);
    settle(30);
  }
  static QAbstractButton* named(const QWidget* in, const QString& name) {
    for (QAbstractButton* button : in->findChildren<QAbstractButton*>())
      if (button->accessibleName() == name || button->text() == name) return button;
    return nullptr;
  }
  static void type(QLineEdit* field, const QString& text) {
    field->setFocus();
    field->selectAll();
    QTest::keyClicks(field, text);
    QTest::keyClick(field, Qt::Key_Return);
  }
  static QList<int64_t> hidden(MainWindow& window) {
    const auto& widths = window.workspace()->choices()->spec().model.hidden;
    return {widths.begin(), widths.end()};
  }

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void everyChoiceReportsWhatToLookAt();
  void explanationsAreThreeLinesAtMost();
  void explanationsComeWhenAsked();
  void executionReportsWhatAPersistentKernelTakes();
  void aChangedPresetReportsIt();
  void whatDiffersFromTheShownRunIsSaid();
  void replacedChoicesComeBack();
  void ownTablesAreReadBeforeTheTraining();
  void executionIsFirstAndAboveTheFold();
  void theDockKeepsItsWidth();
  void whatDoesNotFitIsSaidBesideTheField();
  void aNumberIsExplainedWhenItIsLookedAt();
  void layersAreEditedAsRows();
  void layersAreEditedWithKeys();
  void wrongWidthsAreRefusedWithTheReason();
  void editedLayersTrain();
  void choicesTravelAsALine();
  void aNetworkIsATableOfItsLayers();
  void aWrongLayerIsMarkedInItsRow();
  void layersOfAListAreEditedAsRows();
  void theNetworkFollowsTheKindOfData();
  void onlyPicturesAreCroppedAndMirrored();
};

void SetupTest::everyChoiceReportsWhatToLookAt() {
  for (const ws::Field& field : ws::fields()) {
    QVERIFY2(field.explain.find("Look ") != std::string_view::npos, field.key.data());
    for (const ws::FieldValue& value : field.values)
      QVERIFY2(value.explain.find("Look ") != std::string_view::npos, value.name.data());
  }
}

void SetupTest::explanationsAreThreeLinesAtMost() {
  auto window = open();
  window->resize(1280, 800);
  for (Section* section : window->findChild<SetupPanel*>()->findChildren<Section*>()) section->setOpen(true);
  explain(*window);
  int seen = 0;
  for (const ws::Field& field : ws::fields()) {
    FieldRow* row = window->findChild<SetupPanel*>()->row(field.key);
    auto* label = row->findChild<QLabel*>("explain");
    if (!label || !row->isVisible()) continue;
    std::vector<std::string_view> sentences{field.explain};
    for (const ws::FieldValue& value : field.values) sentences.push_back(value.explain);
    for (std::string_view sentence : sentences) {
      label->setText(explained(sentence));
      const int lines = label->heightForWidth(label->width()) / QFontMetrics(label->font()).lineSpacing();
      QVERIFY2(lines >= 1 && lines <= 3, sentence.data());
      ++seen;
    }
  }
  QVERIFY(seen > 40);
  // What the chosen value says is shown, and another one's while the pointer is on it.
  FieldRow* allocator = window->findChild<SetupPanel*>()->row("exec.allocator");
  auto* label = allocator->findChild<QLabel*>("explain");
  window->workspace()->choices()->set("exec.allocator", "arena");
  QVERIFY2(label->text().contains("planned ahead"), qPrintable(label->text()));
  Segment* direct = allocator->findChild<SegmentedRow*>()->segments().front();
  direct->setFocus();
  QVERIFY2(label->text().contains("red"), qPrintable(label->text()));
  QVERIFY(direct->toolTip().contains("Look for red"));
}

// Values alone; a tooltip says the rest, or the "?" of the section.
void SetupTest::explanationsComeWhenAsked() {
  auto window = open();
  auto* panel = window->findChild<SetupPanel*>();
  const auto shown = [&] {
    int count = 0;
    for (const QLabel* label : panel->findChildren<QLabel*>("explain")) count += label->isVisible();
    return count;
  };
  QCOMPARE(shown(), 0);
  QVERIFY(panel->row("exec.sync")->findChild<SegmentedRow*>()->segments()[0]->toolTip().contains("grey syncs"));
  static_cast<QAbstractButton*>(named(panel, "Explain Execution"))->setChecked(true);
  QVERIFY(shown() >= 6);
  static_cast<QAbstractButton*>(named(panel, "Explain Execution"))->setChecked(false);
  QCOMPARE(shown(), 0);
}

// With its explanations, the section says what a persistent kernel would take of registers and shared memory.
void SetupTest::executionReportsWhatAPersistentKernelTakes() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  Choices* choices = window->workspace()->choices();
  choices->setCuda(true);
  QVERIFY(choices->usePreset("mnist"));
  choices->set("exec.launch", "persistent");
  auto* panel = window->findChild<SetupPanel*>();
  const auto* budget = panel->findChild<QLabel*>("budget");
  QVERIFY(budget && !budget->isVisible());
  static_cast<QAbstractButton*>(named(panel, "Explain Execution"))->setChecked(true);
  QVERIFY(budget->isVisible());
  QVERIFY2(budget->text().contains("registers per thread") && budget->text().contains("residency cluster"),
           qPrintable(budget->text()));
  choices->set("exec.launch", "graph");
  QVERIFY(!budget->isVisible());
}

// "Preset: Iris" above MNIST would contradict itself.
void SetupTest::aChangedPresetReportsIt() {
  auto window = open();
  const QPushButton* preset = nullptr;
  for (const QPushButton* button : window->findChild<SetupPanel*>()->findChildren<QPushButton*>())
    if (button->accessibleName() == "Preset") preset = button;
  QVERIFY(preset);
  QVERIFY(window->workspace()->choices()->usePreset("iris"));
  QTRY_COMPARE(preset->text(), QString("Preset: Iris"));
  const QString epochs = QString::number(window->workspace()->choices()->spec().train.epochs);
  window->workspace()->choices()->set("train.epochs", "7");
  QTRY_COMPARE(preset->text(), QString("Iris, changed"));
  window->workspace()->choices()->set("train.epochs", epochs);
  QTRY_COMPARE(preset->text(), QString("Preset: Iris"));
}

// The columns of a table are known before the training, and a wrong one is said.
void SetupTest::ownTablesAreReadBeforeTheTraining() {
  QTemporaryDir folder;
  const QString path = folder.filePath("moons.csv");
  {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("x,y,class\n1,2,a\n2,1,b\n3,3,a\n");
  }
  Choices choices;
  choices.setCuda(false);
  SetupPanel panel(&choices);
  choices.useFile(path);
  QCOMPARE(QString::fromStdString(choices.spec().data.label_column), QString("class"));
  QVERIFY(choices.verdict().problem.empty());
  const auto* columns = static_cast<QToolButton*>(named(panel.row("data.label_column"), "Columns of the file"));
  QVERIFY(columns && columns->isEnabled());
  QCOMPARE(columns->menu()->actions().size(), 3);
  columns->menu()->actions()[0]->trigger();
  QCOMPARE(QString::fromStdString(choices.spec().data.label_column), QString("x"));
  choices.set("data.label_column", "clas");
  QVERIFY2(panel.message().contains("x, y, class"), qPrintable(panel.message()));
  QVERIFY(!panel.row("data.label_column")->problem().isEmpty());
  choices.set("data.path", folder.filePath("none.csv"));
  QVERIFY2(panel.message().contains("none.csv"), qPrintable(panel.message()));
}

// Setup holds the choices of the next training. Beside a run with others it says so, and offers them.
void SetupTest::whatDiffersFromTheShownRunIsSaid() {
  ws::RunSpec spec;
  const auto panel_shows = [](SetupPanel& panel, const QString& words) {
    for (const QLabel* label : panel.findChildren<QLabel*>())
      if (label->isVisibleTo(&panel) && label->text() == words) return true;
    return false;
  };
  Choices choices;
  SetupPanel panel(&choices);
  spec.exec.allocator = ws::Allocator::Caching, spec.train.epochs = 7;
  panel.setOther(spec, "B");
  QVERIFY(panel_shows(panel, "Next training") && panel_shows(panel, "differs from B in 2 settings"));
  QVERIFY2(panel_shows(panel, "allocator •") && panel_shows(panel, "epochs •"), "marked where they are");
  QVERIFY(panel_shows(panel, "activation"));
  // A folded section counts its differences, and the list leads to each of them.
  panel.resize(300, 400);
  panel.show();
  panel.setCompact(true);
  const auto titles = [&panel] {
    QStringList notes;
    for (const SectionTitle* title : panel.findChildren<SectionTitle*>()) notes << title->text() + ": " + title->accessibleDescription();
    return notes.join('\n');
  };
  QVERIFY2(titles().contains("Training: 1 differs from B") && titles().contains("Execution: 1 differs from B"), qPrintable(titles()));
  QVERIFY(!panel.row("train.epochs")->isVisible());
  auto* show = static_cast<QPushButton*>(named(&panel, "Show"));
  QVERIFY(show && show->isVisible());
  show->click();
  QMenu* listed = show->findChild<QMenu*>();
  QTRY_VERIFY(listed->isVisible());
  QCOMPARE(listed->actions().size(), qsizetype{2});
  QVERIFY2(listed->actions()[0]->text().startsWith("Training · epochs: 7 → ") || listed->actions()[1]->text().startsWith("Training · epochs: 7 → "),
           qPrintable(listed->actions()[0]->text() + listed->actions()[1]->text()));
  for (QAction* action : listed->actions())
    if (action->text().contains("epochs")) action->trigger();
  listed->close();
  FieldRow* epochs = panel.row("train.epochs");
  QVERIFY(epochs->isVisible() && panel.rect().contains(epochs->mapTo(&panel, epochs->rect().center())));
  panel.setLive(choices.spec());
  QVERIFY2(panel_shows(panel, "This training") && !panel_shows(panel, "differs from B in 2 settings"), "while a run trains, Setup holds its settings");
  panel.setLive(std::nullopt);
  choices.set("train.epochs", "7");
  QVERIFY(panel_shows(panel, "differs from B: allocator"));
  auto* take = static_cast<QPushButton*>(named(&panel, "Reset to B"));
  QVERIFY(take && take->isVisibleTo(&panel));
  take->click();
  QVERIFY(choices.spec() == spec);
  QVERIFY(!take->isVisibleTo(&panel));
  QVERIFY(panel_shows(panel, "same settings as B"));
}

// A start, an insight or "Train again" brings choices of its own. The user's choices come back with one click.
void SetupTest::replacedChoicesComeBack() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  TrainingSession* session = window->workspace()->session();
  Choices* choices = window->workspace()->choices();
  iris(*window, 2);
  QSignalSpy ended(session, &TrainingSession::ended);
  window->train();
  QTRY_COMPARE(ended.count(), 1);
  choices->set("train.epochs", "7");
  const ws::RunSpec own = choices->spec();
  window->trainAgain();
  QTRY_COMPARE(ended.count(), 2);
  QCOMPARE(choices->spec().train.epochs, 2);
  auto* back = static_cast<QPushButton*>(named(window->findChild<SetupPanel*>(), "Bring back mine"));
  QVERIFY(back && back->isVisible());
  back->click();
  QVERIFY(choices->spec() == own);
  QVERIFY(!choices->replaced());
}

void SetupTest::executionIsFirstAndAboveTheFold() {
  auto window = open();
  window->resize(1600, 972);
  settle(30);
  auto* panel = window->findChild<SetupPanel*>();
  int last = 0;
  for (const char* key : {"exec.allocator", "exec.loader", "model.hidden", "model.init", "train.optimizer", "data.name"}) {
    QWidget* row = panel->row(key);
    const int at = row->mapTo(panel, QPoint()).y();
    QVERIFY2(at > last, key);
    QVERIFY2(row->isVisible() && !row->visibleRegion().isEmpty(), key);
    QVERIFY2(at + row->height() < panel->height(), key);
    last = at;
  }
}

void SetupTest::theDockKeepsItsWidth() {
  auto window = open();
  window->resize(1280, 800);
  settle(30);
  auto* panel = window->findChild<SetupPanel*>();
  const int width = panel->width();
  for (Section* section : panel->findChildren<Section*>()) section->setOpen(true);
  for (QPushButton* button : panel->findChildren<QPushButton*>())
    if (button->text() == "More settings") button->click();
  explain(*window);
  QCOMPARE(panel->width(), width);
  for (int tab = 0; tab < window->tabs()->count(); ++tab) {
    window->tabs()->setCurrentIndex(tab);
    settle(30);
    QCOMPARE(panel->width(), width);
  }
}

// The same sum as at the start of a training.
void SetupTest::whatDoesNotFitIsSaidBesideTheField() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  auto* panel = window->findChild<SetupPanel*>();
  QVERIFY2(panel->message().startsWith("Needs "), qPrintable(panel->message()));
  QVERIFY(panel->row("model.hidden")->problem().isEmpty());
  window->workspace()->choices()->set("model.hidden", "65536,65536,65536");
  const QString problem = panel->row("model.hidden")->problem() + panel->row("train.batch")->problem();
  QVERIFY2(problem.contains("GiB") && problem.contains("free"), qPrintable(problem));
  QVERIFY2(panel->message().startsWith("Cannot train"), qPrintable(panel->message()));
  window->workspace()->choices()->set("model.hidden", "128");
  QVERIFY(panel->row("model.hidden")->problem().isEmpty());
  if (ws::device_info().cuda) return;
  window->workspace()->choices()->set("exec.allocator", "direct");
  QVERIFY(panel->row("exec.allocator")->problem().isEmpty());
  ws::RunSpec graph;
  graph.exec.launch = ws::Launch::Graph;
  window->workspace()->choices()->setSpec(graph);
  QVERIFY2(panel->row("exec.launch")->problem().contains("GPU"), qPrintable(panel->message()));
}

void SetupTest::aNumberIsExplainedWhenItIsLookedAt() {
  auto window = open();
  window->activateWindow();
  (void)QTest::qWaitForWindowActive(window.get());
  for (Section* section : window->findChild<SetupPanel*>()->findChildren<Section*>()) section->setOpen(true);
  explain(*window);
  const auto shown = [&](const char* words) {
    for (const QLabel* label : window->findChild<SetupPanel*>()->findChildren<QLabel*>("explain"))
      if (label->isVisible() && label->text().contains(words)) return true;
    return false;
  };
  QVERIFY(shown("rises if it is too"));  // the first of the section
  QVERIFY(!shown("Passes over"));
  window->findChild<SetupPanel*>()->row("train.epochs")->findChild<QLineEdit*>()->setFocus();
  QVERIFY(shown("Passes over"));
}

void SetupTest::layersAreEditedAsRows() {
  auto window = open();
  LayerEditor* layers = layersOf(*window);
  QVERIFY(layers && layers->isVisible());
  QCOMPARE(layers->layers(), size_t(1));
  type(layers->width(0), "256");
  QCOMPARE(hidden(*window), (QList<int64_t>{256}));
  named(layers, "Add a layer")->click();
  QCOMPARE(hidden(*window), (QList<int64_t>{256, 128}));
  QCOMPARE(QApplication::focusWidget(), layers->width(1));
  type(layers->width(1), "64");
  named(layers, "Duplicate layer 1")->click();
  QCOMPARE(hidden(*window), (QList<int64_t>{256, 256, 64}));
  named(layers, "Move layer 3 towards the input")->click();
  QCOMPARE(hidden(*window), (QList<int64_t>{256, 64, 256}));
  named(layers, "Move layer 1 towards the output")->click();
  QCOMPARE(hidden(*window), (QList<int64_t>{64, 256, 256}));
  QVERIFY(!named(layers, "Move layer 1 towards the input")->isEnabled());
  QVERIFY(!named(layers, "Move layer 3 towards the output")->isEnabled());
  named(layers, "Remove layer 2")->click();
  QCOMPARE(hidden(*window), (QList<int64_t>{64, 256}));
  // 784 inputs, 10 outputs, an offset each.
  QStringList counts;
  for (const QLabel* label : layers->findChildren<QLabel*>())
    if (label->isVisible()) counts << label->text().remove(QRegularExpression("\\D"));
  QVERIFY2(counts.contains("50240") && counts.contains("16640") && counts.contains("2570"),
           qPrintable(counts.join(' ')));
  // The text form goes the same way, and back.
  auto* text = window->findChild<SetupPanel*>()->row("model.hidden")->findChild<QLineEdit*>("widths");
  QCOMPARE(text->text(), QString("64,256"));
  type(text, "32, 16, 8");
  QCOMPARE(hidden(*window), (QList<int64_t>{32, 16, 8}));
  QCOMPARE(layers->width(2)->text(), QString("8"));
  for (int i = 0; i < 3; ++i) named(layers, "Remove layer 1")->click();
  QVERIFY(hidden(*window).empty());
  QCOMPARE(QApplication::focusWidget(), named(layers, "Add a layer"));
}

void SetupTest::layersAreEditedWithKeys() {
  auto window = open();
  window->activateWindow();
  (void)QTest::qWaitForWindowActive(window.get());
  LayerEditor* layers = layersOf(*window);
  window->workspace()->choices()->set("model.hidden", "32,16");
  layers->width(0)->setFocus();
  QTest::keyClick(layers->width(0), Qt::Key_Down, Qt::AltModifier);
  QCOMPARE(hidden(*window), (QList<int64_t>{16, 32}));
  QCOMPARE(QApplication::focusWidget(), layers->width(1));  // goes along with its layer
  QTest::keyClick(layers->width(1), Qt::Key_Return, Qt::AltModifier);
  QCOMPARE(hidden(*window), (QList<int64_t>{16, 32, 32}));
  QTest::keyClick(layers->width(2), Qt::Key_Delete, Qt::AltModifier);
  QTest::keyClick(layers->width(1), Qt::Key_Up, Qt::AltModifier);
  QCOMPARE(hidden(*window), (QList<int64_t>{32, 16}));
  // Tab walks from a width over the buttons of its row to the next width.
  layers->width(0)->setFocus();
  for (int i = 0; i < 6 && QApplication::focusWidget() != layers->width(1); ++i)
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
  QCOMPARE(QApplication::focusWidget(), layers->width(1));
  for (const QToolButton* button : layers->findChildren<QToolButton*>()) QVERIFY(!button->accessibleName().isEmpty());
}

void SetupTest::wrongWidthsAreRefusedWithTheReason() {
  auto window = open();
  LayerEditor* layers = layersOf(*window);
  const auto before = hidden(*window);
  for (const char* wrong : {"0", "-5", "wide", "65537", "1.5"}) {
    type(layers->width(0), wrong);
    QCOMPARE(hidden(*window), before);
    QVERIFY2(layers->wrong().contains(wrong) && layers->wrong().contains("Layer 1"), qPrintable(layers->wrong()));
    QCOMPARE(layers->width(0)->text(), QString::number(before[0]));
  }
  type(layers->width(0), "77");
  QVERIFY(layers->wrong().isEmpty());
  type(window->findChild<SetupPanel*>()->row("model.hidden")->findChild<QLineEdit*>("widths"), "12,zero");
  QCOMPARE(hidden(*window), (QList<int64_t>{77}));
  QVERIFY2(window->findChild<SetupPanel*>()->message().startsWith("hidden layers:"), qPrintable(window->findChild<SetupPanel*>()->message()));
}

void SetupTest::editedLayersTrain() {
  auto window = open();
  iris(*window, 3);
  LayerEditor* layers = layersOf(*window);
  type(layers->width(0), "7");
  named(layers, "Add a layer")->click();
  type(layers->width(1), "6");
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  window->topBar()->train()->click();
  QTRY_COMPARE(ended.count(), 1);
  const Run* run = window->workspace()->session()->run();
  QVERIFY2(run->summary->status == ws::RunStatus::Finished, run->summary->message.c_str());
  QCOMPARE(run->spec.model.hidden, (std::vector<int64_t>{7, 6}));
  QVERIFY(run->plan);
  int layers_of_plan = 0;
  for (const ws::Buffer& buffer : run->plan->plan.buffers) layers_of_plan += buffer.name == "W3";
  QCOMPARE(layers_of_plan, 1);
}

// Copied in one window, pasted in another; a text that is no line leaves the choices as they are.
void SetupTest::choicesTravelAsALine() {
  const auto act = [](MainWindow& window, const QString& text) {
    for (QAction* action : window.findChildren<QAction*>())
      if (action->text() == text) return action->trigger();
    QFAIL("there is no such action");
  };
  auto window = open();
  Choices* choices = window->workspace()->choices();
  choices->usePreset("iris");
  choices->set("train.lr", "0.0123");
  const ws::RunSpec sent = choices->spec();
  act(*window, "Copy settings as a line");
  const QString line = QGuiApplication::clipboard()->text();
  QVERIFY2(line.startsWith("ws1:") && line.contains("train.lr=0.0123"), qPrintable(line));
  choices->usePreset("mnist");
  act(*window, "Paste settings");
  QVERIFY(choices->spec() == sent);
  QGuiApplication::clipboard()->setText("a shopping list");
  act(*window, "Paste settings");
  QVERIFY(choices->spec() == sent);
}

void SetupTest::aNetworkIsATableOfItsLayers() {
  auto window = open();
  auto* choices = window->workspace()->choices();
  auto* table = window->findChild<LayerTable*>();
  const QTreeWidget* rows = table->rows();
  for (Section* section : window->findChild<SetupPanel*>()->findChildren<Section*>()) section->setOpen(true);
  QVERIFY(choices->usePreset("mnist"));
  QVERIFY(!table->isVisible());
  QVERIFY(choices->usePreset("mnist-conv"));
  QTRY_VERIFY(table->isVisible());
  QCOMPARE(rows->topLevelItemCount(), 7);
  QCOMPARE(rows->topLevelItem(0)->text(0), QString("conv 3x3 16"));
  QCOMPARE(rows->topLevelItem(0)->text(1), QString::fromUtf8("28 × 28 × 16"));
  QCOMPARE(rows->topLevelItem(0)->text(2), QString("160"));
  QVERIFY(choices->usePreset("tiny-gpt"));
  QCOMPARE(rows->topLevelItemCount(), 4);  // embed, the blocks, layernorm, linear
  QCOMPARE(rows->topLevelItem(1)->text(0), QString("4 x block(heads 4)"));
  QCOMPARE(rows->topLevelItem(1)->text(2).remove(QRegularExpression("\\D")), QString("793088"));
  QCOMPARE(rows->topLevelItem(1)->childCount(), 8);  // two norms, attention, two linear layers with gelu between them, two sums
}

// A mistake is marked in the row where it is, and the line keeps what was typed.
void SetupTest::aWrongLayerIsMarkedInItsRow() {
  auto window = open();
  auto* choices = window->workspace()->choices();
  auto* table = window->findChild<LayerTable*>();
  const QTreeWidget* rows = table->rows();
  QVERIFY(choices->usePreset("tiny-gpt"));
  choices->set("model.layers", "embed 128 | block(heads 5) | linear");
  QCOMPARE(rows->topLevelItemCount(), 3);
  QVERIFY2(rows->topLevelItem(1)->toolTip(0).contains("5 heads do not divide the width 128"), qPrintable(rows->topLevelItem(1)->toolTip(0)));
  QCOMPARE(rows->topLevelItem(1)->foreground(0).color(), theme().worse);
  QVERIFY(rows->topLevelItem(0)->toolTip(0) == "embed 128");
  QVERIFY2(window->findChild<SetupPanel*>()->message().contains("5 heads do not divide the width 128"),
           qPrintable(window->findChild<SetupPanel*>()->message()));
  choices->set("model.layers", "embed 128 | residual(layernorm | attention heads 3) | linear");
  QVERIFY(rows->topLevelItem(1)->child(1)->toolTip(0).contains("3 heads"));
  choices->set("model.layers", "embed 128 | blok(heads 4) | linear");  // no list: the rows wait for a better line
  QVERIFY(!rows->isEnabled());
  choices->set("model.layers", "embed 128 | block(heads 4) | linear");
  QVERIFY(rows->isEnabled());
  QCOMPARE(rows->topLevelItem(1)->toolTip(0), QString("block(heads 4)"));
}

void SetupTest::layersOfAListAreEditedAsRows() {
  auto window = open();
  auto* choices = window->workspace()->choices();
  auto* table = window->findChild<LayerTable*>();
  QTreeWidget* rows = table->rows();
  const auto line = [&] { return QString::fromStdString(choices->spec().model.layers); };
  QVERIFY(choices->usePreset("mnist-conv"));
  rows->setCurrentItem(rows->topLevelItem(3));  // conv 3x3 32
  table->move(-1);
  QCOMPARE(line(), QString("conv 3x3 16 | relu | conv 3x3 32 | maxpool 2 | relu | maxpool 2 | linear"));
  QCOMPARE(rows->currentItem()->text(0), QString("conv 3x3 32"));  // the choice goes along
  QTest::keyClick(rows, Qt::Key_Down, Qt::AltModifier);
  QCOMPARE(line(), QString("conv 3x3 16 | relu | maxpool 2 | conv 3x3 32 | relu | maxpool 2 | linear"));
  rows->currentItem()->setText(0, "conv 5x5 24");
  QTRY_COMPARE(line(), QString("conv 3x3 16 | relu | maxpool 2 | conv 5x5 24 | relu | maxpool 2 | linear"));
  QCOMPARE(rows->topLevelItem(3)->text(1), QString::fromUtf8("14 × 14 × 24"));
  QVERIFY(table->offered().contains("batchnorm"));
  QVERIFY(!table->offered().contains("block(heads 4)"));
  table->add("batchnorm");
  QCOMPARE(line(), QString("conv 3x3 16 | relu | maxpool 2 | conv 5x5 24 | batchnorm | relu | maxpool 2 | linear"));
  QTest::keyClick(rows, Qt::Key_Delete);
  QCOMPARE(line(), QString("conv 3x3 16 | relu | maxpool 2 | conv 5x5 24 | relu | maxpool 2 | linear"));
  rows->setCurrentItem(rows->topLevelItem(rows->topLevelItemCount() - 1));
  table->remove();
  QVERIFY(line().endsWith("| maxpool 2"));  // wrong now, and said so
  QVERIFY(window->findChild<SetupPanel*>()->message().contains("end it with linear"));
  choices->set("model.layers", "conv 3x3 4 | residual(conv 3x3 4 | relu | batchnorm) | linear");
  rows->topLevelItem(1)->setExpanded(true);
  rows->setCurrentItem(rows->topLevelItem(1)->child(0));
  table->move(1);
  QCOMPARE(line(), QString("conv 3x3 4 | residual(relu | conv 3x3 4 | batchnorm) | linear"));
  QVERIFY(rows->topLevelItem(1)->isExpanded());
  choices->setSpec(choices->preset());  // as "Undo all changes"
  QCOMPARE(rows->topLevelItemCount(), 7);
}

void SetupTest::theNetworkFollowsTheKindOfData() {
  auto window = open();
  auto* choices = window->workspace()->choices();
  QVERIFY(choices->usePreset("mnist"));
  choices->set("data.name", "austen");
  QCOMPARE(choices->spec().model.layers, std::string("embed 64 | 2 x block(heads 4) | layernorm | linear"));
  choices->set("data.name", "iris");
  QCOMPARE(choices->spec().model.layers, std::string());
  QVERIFY(choices->usePreset("mnist-conv"));
  choices->set("data.name", "fashion-mnist");
  QVERIFY(!choices->spec().model.layers.empty());
}

void SetupTest::onlyPicturesAreCroppedAndMirrored() {
  auto window = open();
  auto* choices = window->workspace()->choices();
  auto* panel = window->findChild<SetupPanel*>();
  QVERIFY(choices->usePreset("shapes-residual"));
  for (const char* key : {"data.crop", "data.flip", "data.normalise"}) QVERIFY(!panel->row(key)->isHidden());
  choices->set("data.crop", "40");
  QVERIFY(panel->row("data.crop")->problem().contains("choose at most 31"));
  choices->set("data.crop", "4");
  choices->set("data.flip", "true");
  QVERIFY(panel->row("data.crop")->problem().isEmpty());
  choices->set("data.name", "iris");
  for (const char* key : {"data.crop", "data.flip", "data.normalise"}) QVERIFY(panel->row(key)->isHidden());
  QCOMPARE(choices->spec().data.crop, int64_t(0));
  QVERIFY(!choices->spec().data.flip);
}

WARPSIGHT_QTEST(SetupTest)
#include "setup_test.moc"
