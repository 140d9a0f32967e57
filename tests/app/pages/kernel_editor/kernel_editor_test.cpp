// The page "Own kernel": a first version for an op, messages at their lines, another editor's save, the check, and its use.
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <Qsci/qscilexercpp.h>
#include <Qsci/qscilexerpython.h>
#include <Qsci/qsciscintilla.h>

#include "app/core/kernels/kernel_library.h"
#include "app/pages/kernel_editor/code_editor.h"
#include "app/pages/kernel_editor/exercise_strip.h"
#include "app/pages/kernel_editor/kernel_panel.h"
#include "app/pages/kernel_editor/occupancy_view.h"
#include "app/pages/kernel_editor/stall_margin.h"
#include "app/pages/kernel_editor/step_change.h"
#include "app/pages/plan/plan_panel.h"
#include "app/widgets/instruction_view.h"
#include "app/widgets/stall_bar.h"
#include "app/widgets/theme.h"
#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_contract.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/made_run.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

namespace {

// What a checking process prints for a kernel that is right, or wrong, on the first shape.
std::vector<std::string> checker(bool good, int shapes) {
  ShapeResult r{.shape = "the shapes of the run", .sentence = good ? "agrees with the op" : "h[3][5] is 2, and the op gives 1", .verdict = {}, .failure = {}};
  if (!good) r.verdict.fault = OwnKernelFault::WrongValue;
  r.verdict.own_us = 2.9, r.verdict.built_in_us = 2.1, r.verdict.empty_us = 1.4, r.verdict.bytes = 66'048, r.verdict.flops = 16'384;
  r.verdict.registers = 18, r.verdict.occupancy = 1, r.verdict.error = 1e-7, r.verdict.same_bits = true;
  std::string script;
  for (int i = 0; i < shapes; ++i) script += "echo '{}'; echo '" + to_json_line(r) + "'; ";
  return {"sh", "-c", script};
}

class KernelPage {
 public:
  explicit KernelPage(MainWindow& window) : panel(window.findChild<KernelPanel*>()) {
    qputenv("WARPSIGHT_KERNELS", folder.path().toUtf8());
    (void)QTest::qWaitFor([&] { return window.workspace()->device()->info() != nullptr; }, 60'000);
    RunSpec spec;
    spec.model.hidden = {128};
    spec.exec.fusion = Fusion::Pointwise, spec.exec.device = Device::Cuda;
    window.workspace()->choices()->setSpec(spec);
    window.workspace()->bringToFront(panel);
    panel->openOp("bias relu1");
  }
  ~KernelPage() { qunsetenv("WARPSIGHT_KERNELS"); }
  bool built() const { return panel->state().startsWith("built for"); }
  void type(const QString& from, const QString& to) const { panel->code()->replaceText(panel->code()->text().replace(from, to)); }
  QString path() const { return folder.filePath(panel->file()); }
  void saveElsewhere(const QString& text) const {
    QFile file(path());
    QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
    file.write(text.toUtf8());
  }
  QTemporaryDir folder;
  KernelPanel* panel;
};

}  // namespace

class KernelEditorTest : public QObject, FilledWindow {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void aFirstVersionIsWrittenForTheOp();
#ifdef WARPSIGHT_HAVE_CUDA
  void whoOnlyLooksLeavesNoFile();
  void messagesStandAtTheirLines();
  void anotherEditorsSaveIsLoaded();
  void aRightKernelCanBeUsed();
  void aWrongKernelCannot();
  void anExerciseHasItsTask();
  void bothThemesAndSizes();
#endif
  void samplesStandBesideTheirLines();
  void withoutSamplesItShowsWhy();
  void instructionsOfTheBuildStandBesideTheirLines();
  void aKernelCanBeginInPtxOrTriton();
  void withoutAGpuItReportsIt();
  void theStepBeforeAndAfterIsShown();
  void planHasAButtonForTheOp();
  void fewBlocksLeaveMultiprocessorsIdle();
};

void KernelEditorTest::aFirstVersionIsWrittenForTheOp() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  QCOMPARE(page.panel->file(), QString("bias_relu1.cu"));
  QVERIFY(page.panel->code()->text().startsWith("// For bias activate(z, bias) -> h\n"));
  QVERIFY(page.panel->code()->text().contains("own_kernel(const z_t* z, const bias_t* bias, h_t* h)"));
  QVERIFY(page.panel->opBox()->findText("dW1") >= 0);
}

#ifdef WARPSIGHT_HAVE_CUDA
// The page shows a first version for the shown run, not for Setup. Only what a person chose or wrote becomes a file.
void KernelEditorTest::whoOnlyLooksLeavesNoFile() {
  const auto opened = open();
  MainWindow& window = *opened;
  QTemporaryDir folder;
  qputenv("WARPSIGHT_KERNELS", folder.path().toUtf8());
  RunSpec setup;
  setup.model.hidden = {128};
  window.workspace()->choices()->setSpec(setup);
  auto shown = test::made("wider", test::StepStyle::EagerDirect, true);
  shown->spec.model.hidden = {96};
  showOnly(window, std::move(shown));
  auto* panel = window.findChild<KernelPanel*>();
  auto* elsewhere = window.findChild<PlanPanel*>();
  for (int visit = 0; visit < 3; ++visit) {
    window.workspace()->bringToFront(panel);
    QTRY_VERIFY2(panel->state().startsWith("built for"), qPrintable(panel->state()));
    QVERIFY2(panel->contract().contains("96"), qPrintable(panel->contract()));
    QVERIFY2(QDir(folder.path()).isEmpty(), qPrintable(QDir(folder.path()).entryList().join(' ')));
    window.workspace()->bringToFront(elsewhere);
  }
  window.workspace()->bringToFront(panel);
  panel->code()->replaceText(panel->code()->text() + "// mine\n");
  QTRY_VERIFY(QFile::exists(folder.filePath(panel->file())));
  QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), 1);
  qunsetenv("WARPSIGHT_KERNELS");
}

void KernelEditorTest::messagesStandAtTheirLines() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  QTRY_VERIFY(page.built());
  QVERIFY(page.panel->facts() && page.panel->facts()->threads == 256 && page.panel->facts()->registers > 0);
  page.type("  h[i] = h_t(activation(sum));", "  int lane = 3;\n  h[i] = h_t(activation(total));");
  QTRY_VERIFY(page.panel->state().startsWith("does not compile"));
  const QStringList notes = page.panel->code()->annotations();
  QVERIFY2(std::ranges::any_of(notes, [](const QString& note) { return note.startsWith("error: ") && note.contains("total"); }), qPrintable(notes.join('|')));
  page.type("total", "sum");
  QTRY_VERIFY(page.built() && page.panel->state().contains("1 warning"));
  QVERIFY(page.panel->code()->annotations().value(0).contains("lane"));
  QCOMPARE(page.panel->code()->notes().front().number, std::string("177-D"));
}

void KernelEditorTest::anotherEditorsSaveIsLoaded() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  QTRY_VERIFY(page.built());
  QTRY_VERIFY(QFile::exists(page.path()));
  const QString other = page.panel->code()->text().replace("kThreads = 256", "kThreads = 128");
  page.saveElsewhere(other);
  QTRY_COMPARE(page.panel->code()->text(), other);
  QTRY_VERIFY(page.panel->facts() && page.panel->facts()->threads == 128);
  QSignalSpy said(window.workspace(), &Workspace::said);
  QVERIFY(QFile::remove(page.path()));
  QTRY_VERIFY(std::ranges::any_of(said, [](const QList<QVariant>& words) { return words[0].toString().contains("was removed. Its text is still in the editor"); }));
  QCOMPARE(page.panel->code()->text(), other);
  page.type("kThreads = 128", "kThreads = 64");
  QTRY_VERIFY(QFile::exists(page.path()));
}

void KernelEditorTest::aRightKernelCanBeUsed() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  page.panel->setCuda(true);
  QVERIFY(!page.panel->useSwitch()->isEnabled());
  QCOMPARE(page.panel->useText(), QString("The switch opens when the check passes."));
  page.panel->setChecker(checker(true, 8));
  page.panel->buildAndCheck();
  QTRY_COMPARE(page.panel->results().size(), size_t{8});
  QTRY_VERIFY(page.panel->useSwitch()->isEnabled());
  page.panel->setUsed(true);
  const Choices& choices = *window.workspace()->choices();
  QCOMPARE(choices.spec().exec.kernels, std::string("bias relu1=bias_relu1.cu"));
  QCOMPARE(page.panel->useText(), QString("used in the next training"));
  page.panel->undoUse();
  QCOMPARE(choices.spec().exec.kernels, std::string());
  page.panel->setUsed(true);
  page.panel->setChecker(checker(false, 1));
  page.panel->buildAndCheck();
  QTRY_COMPARE(choices.spec().exec.kernels, std::string());  // it goes out of use by itself
  QVERIFY(!page.panel->useSwitch()->isChecked());
}

void KernelEditorTest::aWrongKernelCannot() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  page.panel->setCuda(true);
  page.panel->setChecker(checker(false, 1));
  page.panel->buildAndCheck();
  QTRY_COMPARE(page.panel->results().size(), size_t{1});
  QVERIFY(!page.panel->useSwitch()->isEnabled());
  bool shown = false;
  for (const QLabel* label : page.panel->findChildren<QLabel*>()) shown = shown || label->text().contains("h[3][5] is 2, and the op gives 1");
  QVERIFY(shown);
}

void KernelEditorTest::anExerciseHasItsTask() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  page.panel->openExercise("2-warp-sum");
  QVERIFY(page.panel->strip()->isVisible());
  QCOMPARE(page.panel->file(), QString("2-warp-sum.cu"));
  QTRY_VERIFY(page.built());
  page.panel->setCuda(true);
  page.panel->setChecker(checker(true, 4));
  page.panel->buildAndCheck();
  QTRY_VERIFY(page.panel->strip()->resultText().contains("yours 2.90 µs"));
  QVERIFY(page.panel->strip()->resultText().startsWith("yours"));  // slower than the goal
  QVERIFY(!page.panel->useSwitch()->isEnabled());
  page.panel->openExercise({});
  QVERIFY(!page.panel->strip()->isVisible());
}

void KernelEditorTest::bothThemesAndSizes() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  page.panel->setCuda(true);
  page.panel->openExercise("1-bias-relu");
  page.panel->setChecker(checker(true, 4));
  page.type("  const float sum", "  const int lane = threadIdx.x % 32;\n  const float sum");
  page.panel->buildAndCheck();
  QTRY_VERIFY(page.built() && !page.panel->results().empty());
  QStringList wrong;
  for (const ThemeName name : {ThemeName::Dark, ThemeName::Light})
    for (const QSize size : {QSize(1366, 768), QSize(1600, 972)}) {
      set_theme(*qApp, name);
      window.resize(size);
      settle();
      check(window, QString("kernel %1 %2").arg(name == ThemeName::Dark ? "dark" : "light").arg(size.width()), wrong);
    }
  set_theme(*qApp, ThemeName::Dark);
  QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
}
#endif

namespace {

void add_samples(Run& run, const std::string& file, int line, prof::Stall reason, uint64_t count) {
  prof::SampledInstruction one{.module = std::hash<std::string>{}(file), .offset = static_cast<uint32_t>(line * 256 + static_cast<int>(reason) * 16), .line = line};
  one.function = run.trace.intern("own_kernel"), one.file = run.trace.intern(file);
  one.samples[static_cast<size_t>(reason)] = count;
  run.trace.stalls.add(one);
}

}  // namespace

void KernelEditorTest::samplesStandBesideTheirLines() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  const auto run = test::made("sampled", test::StepStyle::EagerDirect, true);
  page.panel->setRun(run.get());
  const std::string file = page.panel->file().toStdString(), path = page.path().toStdString();
  add_samples(*run, path, 3, prof::Stall::GlobalMemory, 600), add_samples(*run, path, 3, prof::Stall::Issued, 200);
  add_samples(*run, path, 5, prof::Stall::Barrier, 200), add_samples(*run, "/elsewhere/other.cu", 5, prof::Stall::Barrier, 700);
  page.panel->setRun(run.get());
  QVERIFY2(page.panel->legend()->text().startsWith("waits for memory 60.0 % · waits for arithmetic 0.0 % · barrier 20.0 % · next instruction 0.0 % · issues 20.0 %"), qPrintable(page.panel->legend()->text()));
  const StallMargin& margin = *page.panel->code()->stalls();
  QVERIFY(margin.isVisible());
  settle();
  const QRect first = margin.barOf(3), second = margin.barOf(5);
  QVERIFY(!first.isEmpty() && !second.isEmpty() && margin.barOf(4).isEmpty());
  QVERIFY(first.width() >= 4 * second.width() - 4 && second.top() > first.top());
  const QString tip = margin.tipOf(3);
  for (const char* part : {"line 3: 800 samples", "waits for memory: 600", "waits for arithmetic: 0", "barrier: 0", "next instruction: 0", "issues: 200", "global memory"})
    QVERIFY2(tip.contains(part), qPrintable(tip));
  for (const ThemeName name : {ThemeName::Light, ThemeName::Dark}) {
    set_theme(*qApp, name);
    const QImage picture = page.panel->code()->stalls()->grab().toImage();
    const double scale = picture.devicePixelRatio();
    const auto pixel = [&](int x, const QRect& bar) { return picture.pixelColor(static_cast<int>(x * scale), static_cast<int>(bar.center().y() * scale)); };
    QCOMPARE(pixel(first.left() + 2, first), stall_colour(prof::StallGroup::Memory));
    QCOMPARE(pixel(first.right() - 2, first), stall_colour(prof::StallGroup::Issues));
    QCOMPARE(pixel(second.left() + 2, second), stall_colour(prof::StallGroup::Barrier));
  }
  // Another text than the one that ran has other lines.
  run->spec.exec.kernels = page.panel->opBox()->currentText().toStdString() + "=" + file + "@0123456789";
  run->sources[file + "@0123456789"] = page.panel->code()->text().toStdString();
  page.panel->setRun(run.get());
  QVERIFY(margin.isVisible());
  run->sources[file + "@0123456789"] += "// more";
  page.panel->setRun(run.get());
  QVERIFY(!margin.isVisible());
  QCOMPARE(page.panel->legend()->text(), QString("The text has changed since it was sampled."));
  page.panel->setRun(nullptr);
}

// nvdisasm is a stand-in, which prints the instructions of lines 3 and 5.
void KernelEditorTest::instructionsOfTheBuildStandBesideTheirLines() {
  QTemporaryDir folder;
  QFile program(folder.filePath("nvdisasm"));
  QVERIFY(program.open(QIODevice::WriteOnly));
  program.write("#!/bin/sh\ncat <<END\n.text.own_kernel:\n//## File \"my.cu\", line 3\n /*0000*/ LDG R1, [R2] ;\n /*0010*/ FADD R1, R1, R3 ;\n//## File \"my.cu\", line 5\n /*0020*/ EXIT ;\nEND\n");
  program.close();
  program.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  const QByteArray path = qgetenv("PATH");
  qputenv("PATH", folder.path().toUtf8() + ":" + path);
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  QTRY_VERIFY_WITH_TIMEOUT(!page.panel->busy() && page.panel->facts(), 20'000);
  InstructionView& view = *page.panel->instructions();
  QVERIFY(view.isHidden());
  page.panel->showInstructions(true);
  QTRY_COMPARE_WITH_TIMEOUT(view.model().rowCount(), 3, 20'000);
  QCOMPARE(view.model().row(1).instruction, std::string("FADD R1, R1, R3"));
  QCOMPARE(view.model().row(2).line, 5);
  page.panel->showInstructions(false);
  QVERIFY(view.isHidden());
  qputenv("PATH", path);
}

// The list of files also begins a kernel in another language.
void KernelEditorTest::aKernelCanBeginInPtxOrTriton() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  QComboBox& files = *page.panel->fileBox();
  const auto choose = [&files](const QString& name) {
    files.setCurrentIndex(files.findText(name));
    emit files.activated(files.currentIndex());
  };
  choose("New in PTX");
  QVERIFY2(page.panel->file().endsWith(".ptx"), qPrintable(page.panel->file()));
  QVERIFY(page.panel->code()->text().contains(".visible .entry own_kernel("));
  const auto style_of = [&](const char* word) {  // of the lexer, which colours it
    QsciScintilla* const editor = page.panel->code()->editor();
    const int at = static_cast<int>(editor->text().toUtf8().indexOf(word));
    editor->SendScintilla(QsciScintillaBase::SCI_COLOURISE, 0, -1);
    return static_cast<int>(editor->SendScintilla(QsciScintillaBase::SCI_GETSTYLEAT, at));
  };
  QCOMPARE(style_of("visible .entry"), int(QsciLexerCPP::Keyword));
  QCOMPARE(style_of("ret;"), int(QsciLexerCPP::KeywordSet2));
  QTRY_VERIFY_WITH_TIMEOUT(!page.panel->busy() && page.panel->facts() && page.panel->facts()->has_kernel, 20'000);
  page.panel->openOp("bias relu1");
  choose("New in Triton");
  QVERIFY2(page.panel->file().endsWith(".py"), qPrintable(page.panel->file()));
  QVERIFY(page.panel->code()->text().contains("@triton.jit"));
  QCOMPARE(style_of("def "), int(QsciLexerPython::Keyword));
}

void KernelEditorTest::withoutSamplesItShowsWhy() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  const auto run = test::made("not sampled", test::StepStyle::EagerDirect, true);
  page.panel->setRun(run.get());
  QVERIFY(page.panel->legend()->text().startsWith("No samples yet."));
  QVERIFY(!page.panel->code()->stalls()->isVisible());
  run->xray_note = "No X-ray: the driver allows them to administrators only.";
  page.panel->setRun(run.get());
  QCOMPARE(page.panel->legend()->text(), run->xray_note);
  add_samples(*run, "/elsewhere/other.cu", 5, prof::Stall::Barrier, 700);
  page.panel->setRun(run.get());
  QVERIFY(page.panel->legend()->text().contains("none of this file"));
  page.panel->setRun(nullptr);
}

void KernelEditorTest::withoutAGpuItReportsIt() {
  const auto opened = open();
  MainWindow& window = *opened;
  const KernelPage page(window);
  page.panel->setCuda(false);
  QSignalSpy said(window.workspace(), &Workspace::said);
  page.panel->buildAndCheck();
  QVERIFY(std::ranges::any_of(said, [](const QList<QVariant>& words) { return words[0].toString().startsWith("A check needs an NVIDIA GPU."); }));
  QCOMPARE(page.panel->useText(), QString("Needs an NVIDIA GPU."));
}

void KernelEditorTest::theStepBeforeAndAfterIsShown() {
  auto run = test::made("direct", test::StepStyle::EagerDirect, true);
  QVERIFY(!kernel_change(*run));
  run->changes.push_back({20, "exec.kernels", "", "fc1=my.cu@0123456789"});
  QCOMPARE(*kernel_change(*run), int64_t{20});
  const std::vector<PathPicture> pictures = pictures_around(*run, 20);
  QCOMPARE(pictures.size(), size_t{2});
  for (const PathPicture& picture : pictures) QVERIFY(picture.length_us > 0 && !picture.rows.empty());
  QVERIFY(pictures_around(*run, 1'000'000).empty());
}

void KernelEditorTest::planHasAButtonForTheOp() {
  const auto opened = open();
  MainWindow& window = *opened;
  auto* plan = window.findChild<PlanPanel*>();
  auto* page = window.findChild<KernelPanel*>();
  QTemporaryDir kernels;
  qputenv("WARPSIGHT_KERNELS", kernels.path().toUtf8());
  RunSpec spec;
  spec.exec.fusion = Fusion::Pointwise;
  window.workspace()->choices()->setSpec(spec);
  emit plan->kernelWanted("db1");
  QVERIFY(page->isVisible());
  QCOMPARE(page->opBox()->currentText(), QString("db1"));
  qunsetenv("WARPSIGHT_KERNELS");
}

// All warps fit into a multiprocessor, but most multiprocessors get no block: no full bar alone.
void KernelEditorTest::fewBlocksLeaveMultiprocessorsIdle() {
  own::Occupancy all_fit;
  all_fit.warps = all_fit.most_warps = 64;
  OccupancyView view;
  view.resize(360, 46);
  view.setOccupancy(all_fit, 32, 132);
  QCOMPARE(view.bars().size(), size_t(2));
  QVERIFY(view.bars()[0].used == 32 && view.bars()[0].all == 132 && !view.bars()[0].full() && view.bars()[1].full());
  const QImage picture = view.grab().toImage();
  const auto has = [&](const QColor& colour, int from, int to) {
    for (int y = from; y < to; ++y)
      for (int x = 0; x < picture.width(); ++x)
        if (picture.pixelColor(x, y).rgb() == colour.rgb()) return true;
    return false;
  };
  QVERIFY2(has(theme().worse, 5, 15) && !has(theme().worse, 26, 38), "only the bar that is not full warns");
  view.setOccupancy(all_fit, 500, 132);
  QVERIFY(view.bars()[0].full());
  view.setOccupancy(all_fit, 32, 0);
  QCOMPARE(view.bars().size(), size_t(1));
}

WARPSIGHT_QTEST(KernelEditorTest)
#include "kernel_editor_test.moc"
