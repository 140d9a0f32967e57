// The laboratory's tab, driven as a person would: a real sweep on the CPU, its curves, its timeline, its exports.
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScopeGuard>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QStandardPaths>
#include <QTabBar>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/pages/lab/lab_share.h"
#include "app/pages/lab/lab_sentences.h"
#include "app/pages/lab/lab_tab.h"
#include "app/core/lab/recorded_lab.h"
#include "app/widgets/theme.h"
#include "app/window/main_window.h"
#include "app/window/program_actions.h"
#include "app/window/window_layout.h"
#include "app/window/status_line.h"
#include "engine/devices/devices.h"
#include "engine/executor/executor.h"
#include "profiling/run_file/run_file.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

class LabTabTest : public QObject {
  Q_OBJECT
 private:
  QTemporaryDir home_;
  QString folder() const { return home_.path() + "/runs"; }
  std::unique_ptr<MainWindow> open() {
    auto window = std::make_unique<MainWindow>(folder());
    window->windowLayout()->setKeep(false);
    window->resize(1500, 900);
    window->show();
    show_tab(*window, "Lab");
    return window;
  }
  static QPushButton* button(QWidget& tab, const QString& text) {
    for (QPushButton* one : tab.findChildren<QPushButton*>())
      if (one->text() == text) return one;
    return nullptr;
  }
  static QLineEdit* field(QWidget& tab, const QString& name) {
    for (QLineEdit* one : tab.findChildren<QLineEdit*>())
      if (one->accessibleName() == name) return one;
    return nullptr;
  }
  static bool shows(QWidget& tab, const QString& words) {
    for (QLabel* label : tab.findChildren<QLabel*>())
      if (label->text().contains(words)) return true;
    return false;
  }
  static lab::LabSpec small() {
    lab::LabSpec spec;
    spec.operation = lab::Operation::Add;
    spec.sizes = {1024, 2048, 4096, 8192};
    spec.ways = {lab::Way::CpuLoops, lab::Way::CpuLibrary};
    return spec;
  }
  static void sweep(LabTab& tab, const lab::LabSpec& spec) {
    tab.setSpec(spec);
    tab.run();
    QVERIFY(tab.job().running());
    QTRY_VERIFY(!tab.job().running());
  }

 private slots:
  void initTestCase();
  void cleanup();
  void aSweepDrawsItsCurvesAndKeepsThem();
  void aClickOpensTheTimelineOfAPoint();
  void tickedSweepsLieOverEachOther();
  void stoppingKeepsWhatWasMeasured();
  void wrongSizesAreSaid();
  void kernelsOfThePersonAreVariants();
  void aMissingTemporaryFolderIsSaid();
  void sizesAreReadInThreeWays();
  void withoutAGpuItReportsIt();
  void everyPresetCanBeChosen();
  void howAPresetIsMeasuredStays();
  void anOpenedSweepFillsTheForm();
  void changedChoicesAreNoPreset();
  void resultsOfPyTorchLieOver();
  void theSameInPyTorchIsStartedFromTheTab();
  void figuresAndDataAreWritten();
  void sharesSumToTheWhole();
  void aKilledSweepIsFoundAgain();
  void aShippedResultStandsThereUntilThereIsAnother();
};

void LabTabTest::initTestCase() {
  qputenv("XDG_CONFIG_HOME", (home_.path() + "/config").toUtf8());
  qputenv("WARPSIGHT_RESOURCES", WARPSIGHT_SOURCE_DIR "/resources");
  QApplication::setOrganizationName("warpsight-test");
  set_theme(*qApp, ThemeName::Light);
}

void LabTabTest::cleanup() {
  QDir(folder()).removeRecursively();
  QSettings().clear();
}

void LabTabTest::aSweepDrawsItsCurvesAndKeepsThem() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  sweep(tab, small());
  QCOMPARE(tab.chart()->curves().size(), size_t(2));
  for (const LabCurve& curve : tab.chart()->curves()) QCOMPARE(curve.points.size(), size_t(4));
  const auto kept = read_lab(tab.job().path().toStdString());
  QVERIFY(kept.has_value());
  QCOMPARE(kept->points.size(), size_t(8));
  for (const lab::LabPoint& p : kept->points) QCOMPARE(p.recorded.steps, int64_t(3));
  QVERIFY(shows(tab, "8 points"));
}

void LabTabTest::aClickOpensTheTimelineOfAPoint() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  sweep(tab, small());
  const LabPick pick{0, lab::Way::CpuLibrary, 4096};
  QTest::mouseClick(tab.chart(), Qt::LeftButton, {}, tab.chart()->placeOf(pick).toPoint());
  QCOMPARE(window->tabs()->currentIndex(), 0);
  Run* run = window->workspace()->library()->byPath(tab.job().path());
  QVERIFY(run && run->slot >= 0);
  QTRY_VERIFY(run->loaded);
  lab::Recorded recorded;
  for (const lab::LabPoint& p : tab.job().result().points)
    if (p.way == pick.way && p.size == pick.size) recorded = p.recorded;
  QTRY_VERIFY(window->workspace()->cursor()->begin() <= recorded.begin_ns &&
              window->workspace()->cursor()->end() >= recorded.end_ns);
  QVERIFY(window->workspace()->cursor()->end() - window->workspace()->cursor()->begin() <
          2 * (recorded.end_ns - recorded.begin_ns) + 10'000);
  QVERIFY(run->trace.span_count() > 0);
  QTest::qWait(900);  // the library looks at its folder again meanwhile: the view stays
  QVERIFY(window->workspace()->cursor()->begin() <= recorded.begin_ns &&
          window->workspace()->cursor()->end() >= recorded.end_ns);
}

void LabTabTest::tickedSweepsLieOverEachOther() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  sweep(tab, small());
  const QString first = tab.job().path();
  auto other = small();
  other.operation = lab::Operation::Copy;
  sweep(tab, other);
  QCOMPARE(tab.shown().size(), size_t(1));
  window->workspace()->library()->setTicked(window->workspace()->library()->open(first), true);
  QCOMPARE(tab.shown().size(), size_t(2));
  QCOMPARE(tab.shown()[1].result.spec.operation, lab::Operation::Add);
  window->workspace()->library()->tickOnly({});
  QCOMPARE(tab.shown().size(), size_t(1));
}

void LabTabTest::stoppingKeepsWhatWasMeasured() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  auto spec = small();
  spec.operation = lab::Operation::MatMul;
  spec.sizes = {16, 32};
  for (int64_t n = 400; n < 440; ++n) spec.sizes.push_back(n);  // enough to be stopped in, on any machine
  tab.setSpec(spec);
  tab.run();
  QTRY_VERIFY(tab.job().result().points.size() >= 4);
  QVERIFY(window->workspace()->session()->start({}) == nullptr);  // nothing trains beside a measurement
  QTest::mouseClick(button(tab, "Stop"), Qt::LeftButton);
  QTRY_VERIFY(!tab.job().running());
  QVERIFY(tab.job().result().cancelled);
  QVERIFY(tab.job().result().points.size() >= 4);
  QCOMPARE(read_lab(tab.job().path().toStdString())->points.size(), tab.job().result().points.size());
  QVERIFY(shows(tab, "points kept"));
}

void LabTabTest::wrongSizesAreSaid() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  const auto refused = [&](const QString& words) {
    tab.run();
    return !tab.job().running() && shows(tab, words);
  };
  field(tab, "N to")->setText("many");
  QVERIFY(refused("expected a whole number such as 4096"));
  field(tab, "N to")->setText("8");
  QVERIFY(refused("must not be smaller"));
  field(tab, "N to")->setText("99999999999999999999");
  QVERIFY(refused("expected a whole number"));
}

// The library's kernels that fit the operation are further variants; a first version can be written from here.
void LabTabTest::kernelsOfThePersonAreVariants() {
  QTemporaryDir kernels;
  qputenv("WARPSIGHT_KERNELS", kernels.path().toUtf8());
  const auto restore = qScopeGuard([] { qunsetenv("WARPSIGHT_KERNELS"); });
  QFile other(kernels.path() + "/other.cu");
  QVERIFY(other.open(QIODevice::WriteOnly));
  other.write("// For softmax(z) -> p\n// p = softmax of each row of z\n");
  other.close();
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  tab.setSpec(small());
  QListWidget* list = nullptr;
  for (QListWidget* one : tab.findChildren<QListWidget*>())
    if (one->accessibleName() == "Your kernels") list = one;
  QVERIFY(list && list->isHidden());
  QTest::mouseClick(button(tab, "Write your own kernel"), Qt::LeftButton);
  QVERIFY(shows(tab, "Written: "));
  QVERIFY(QFile::exists(kernels.path() + "/add.cu"));
  QCOMPARE(list->count(), 1);
  QCOMPARE(list->item(0)->text(), QString("add.cu"));
  QCOMPARE(list->item(0)->checkState(), Qt::Checked);
  const lab::LabSpec spec = tab.spec();
  QCOMPARE(spec.kernels.size(), size_t(1));
  QVERIFY(spec.kernels[0].text.starts_with("// For add(a, b) -> c"));
  if (!device_info().cuda) {
    tab.run();
    QTRY_VERIFY(!tab.job().running());
    const QString said = lab_findings(tab.job().result()).join(' ');
    QVERIFY2(said.contains("add.cu compiles for sm_90") || said.contains("add.cu was not compiled"), qPrintable(said));
  }
  auto softmax = small();
  softmax.operation = lab::Operation::Softmax;
  tab.setSpec(softmax);
  QCOMPARE(list->count(), 1);
  QCOMPARE(list->item(0)->text(), QString("other.cu"));
  QCOMPARE(list->item(0)->checkState(), Qt::Unchecked);
}

void LabTabTest::sizesAreReadInThreeWays() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  tab.setSpec(small());
  field(tab, "N from")->setText("2^20");
  field(tab, "N to")->setText("4M");
  QCOMPARE(tab.spec().sizes, (std::vector<int64_t>{1 << 20, 1 << 21, 1 << 22}));
  auto spec = small();
  spec.operation = lab::Operation::MatMul;
  spec.sizes = {100, 1000, 1500};
  spec.m = 64;
  spec.k = 128;
  tab.setSpec(spec);
  QCOMPARE(tab.spec().sizes, spec.sizes);
  QCOMPARE(tab.spec().m, int64_t(64));
  QCOMPARE(tab.spec().k, int64_t(128));
}

void LabTabTest::withoutAGpuItReportsIt() {
  if (device_info().cuda) QSKIP("this machine has a GPU");
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  QVERIFY(shows(tab, "GPU variants need a GPU"));
  for (QCheckBox* check : tab.findChildren<QCheckBox*>())
    if (check->text().startsWith("GPU")) QVERIFY2(!check->isEnabled() && !check->isVisibleTo(&tab), qPrintable(check->text()));
}

void LabTabTest::everyPresetCanBeChosen() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  auto* presets = tab.findChild<QComboBox*>();
  QCOMPARE(presets->count(), 6);
  for (int i = 1; i < presets->count(); ++i) {
    presets->setCurrentIndex(i);
    emit presets->activated(i);
    const bool some = std::ranges::any_of(tab.findChildren<QCheckBox*>(), [](QCheckBox* c) {
      return c->isVisible() && c->isChecked() && (c->text().startsWith("CPU") || c->text().startsWith("GPU"));
    });
    if (some) QVERIFY(tab.spec().sizes.size() >= 3);
    QFile file(presets->currentData().toString());
    QVERIFY(file.open(QIODevice::ReadOnly));
    const auto page = nlohmann::json::parse(file.readAll().toStdString()).at("text").get<std::string>();
    QVERIFY2(shows(tab, QString::fromStdString(page)), qPrintable(presets->currentText()));
  }
}

void LabTabTest::howAPresetIsMeasuredStays() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  auto* presets = tab.findChild<QComboBox*>();
  const int first_call = presets->findText("The first call");
  QVERIFY(first_call > 0);
  presets->setCurrentIndex(first_call);
  emit presets->activated(first_call);
  for (QCheckBox* check : tab.findChildren<QCheckBox*>())
    if (check->isVisible() && check->text().startsWith("CPU")) check->setChecked(true);  // without a GPU none is left
  QCOMPARE(tab.spec().seconds_per_point, 0.2);
  auto spec = small();
  spec.seconds_per_point = 1.25;
  spec.longest_call_s = 0.5;
  spec.seed = 9'000'000'000'000'000;
  spec.warm_up = 0;
  tab.setSpec(spec);
  QCOMPARE(tab.spec().seconds_per_point, 1.25);
  QCOMPARE(tab.spec().longest_call_s, 0.5);
  QCOMPARE(tab.spec().seed, spec.seed);
  QCOMPARE(tab.spec().warm_up, 0);
}

// The page shows one sweep: its choices, its curves and the machine that measured it.
void LabTabTest::anOpenedSweepFillsTheForm() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  const QString path = home_.path() + "/elsewhere.json";
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(R"({"device": "NVIDIA H200", "spec": {"operation": "softmax", "sizes": [1000, 3000], "ways": ["cpu", "gpu"],
      "repeats": 7}, "points": [{"way": "cpu", "size": 1000, "median_s": 2e-5}, {"way": "gpu", "size": 3000, "median_s": 1e-5}]})");
  file.close();
  window->openFile(path);
  QCOMPARE(tab.shown().size(), size_t(1));
  QCOMPARE(tab.spec().operation, lab::Operation::Softmax);
  QCOMPARE(tab.spec().sizes, (std::vector<int64_t>{1000, 3000}));
  QCOMPARE(tab.spec().repeats, 7);
  QVERIFY(shows(tab, "Measured on NVIDIA H200"));
  // Added to a sweep of this machine, it leaves the form alone.
  sweep(tab, small());
  QVERIFY(tab.openResult(path));
  QCOMPARE(tab.spec().operation, lab::Operation::Add);
  QVERIFY(!shows(tab, "Measured on NVIDIA H200"));
}

void LabTabTest::changedChoicesAreNoPreset() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  auto* presets = tab.findChild<QComboBox*>();
  const auto choose = [&] { presets->setCurrentIndex(1); emit presets->activated(1); };
  choose();
  QCOMPARE(presets->currentIndex(), 1);
  for (QSpinBox* box : tab.findChildren<QSpinBox*>())
    if (box->accessibleName() == "repeats") box->setValue(box->value() + 1);
  QCOMPARE(presets->currentText(), QString("Own settings"));
  choose();
  QTest::keyClicks(field(tab, "N from"), "1");
  QCOMPARE(presets->currentText(), QString("Own settings"));
  choose();
  tab.setSpec(small());
  QCOMPARE(presets->currentText(), QString("Own settings"));
}

void LabTabTest::resultsOfPyTorchLieOver() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  sweep(tab, small());
  const QString path = home_.path() + "/torch.json";
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(R"({"framework": "PyTorch 2.11.0+cu130", "operation": "add", "points": [
      {"way": "gpu", "size": 1024, "median_s": 1e-5}, {"way": "gpu", "size": 8192, "median_s": 1e-5}]})");
  file.close();
  window->openFile(path);
  QCOMPARE(tab.shown().size(), size_t(2));
  const auto& curves = tab.chart()->curves();
  QVERIFY(std::ranges::any_of(curves, [](const LabCurve& c) {
    return c.earlier() && c.label == "PyTorch 2.11: resident data" && c.points.size() == 2;
  }));
  QVERIFY(!tab.openResult(WARPSIGHT_SOURCE_DIR "/CMakePresets.json"));
}

void LabTabTest::theSameInPyTorchIsStartedFromTheTab() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  auto spec = small();
  spec.ways.push_back(lab::Way::GpuPinned);
  tab.setSpec(spec);
  tab.torch()->setPython("/no/such/python3");
  QPushButton* same = button(tab, "The same in PyTorch");
  QVERIFY(same && same->isVisible());
  QTest::mouseClick(same, Qt::LeftButton);
  QTRY_VERIFY(!tab.torch()->running());
  QVERIFY(shows(tab, "is not installed"));
  QCOMPARE(same->text(), QString("The same in PyTorch"));
  if (QStandardPaths::findExecutable("python3").isEmpty()) QSKIP("python3 is not installed");
  QFile script(home_.path() + "/peer.py");
  QVERIFY(script.open(QIODevice::WriteOnly));
  script.write(R"(import sys, json
a = dict(zip(sys.argv[1::2], sys.argv[2::2]))
print("gpu, 1024", flush=True)
json.dump({"framework": "PyTorch 2.11.0+cu130", "operation": a["--operation"], "points":
           [{"way": "gpu-pinned", "size": int(n), "median_s": 1e-6} for n in a["--sizes"].split(",")]}, open(a["--out"], "w"))
)");
  script.close();
  tab.torch()->setPython("python3");
  tab.torch()->setScript(script.fileName());
  QTest::mouseClick(same, Qt::LeftButton);
  QCOMPARE(same->text(), QString("Stop PyTorch"));
  QVERIFY(window->workspace()->session()->start({}) == nullptr);  // nothing trains beside a measurement
  tab.run();
  QVERIFY(!tab.job().running());
  QTRY_VERIFY(!tab.torch()->running());
  QCOMPARE(tab.shown().size(), size_t(1));
  QCOMPARE(tab.shown()[0].name, QString("PyTorch 2.11"));
  QCOMPARE(tab.shown()[0].result.points.size(), size_t(4));
  QVERIFY(shows(tab, "PyTorch's sweep has no cpu-loops, cpu."));
}

void LabTabTest::aMissingTemporaryFolderIsSaid() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  const QByteArray before = qgetenv("TMPDIR");
  qputenv("TMPDIR", "/no/such");
  sweep(tab, small());
  qputenv("TMPDIR", before);
  QVERIFY(shows(tab, "/no/such: there is no such folder; set TMPDIR"));
  sweep(tab, small());
  QCOMPARE(tab.shown().size(), size_t(1));
}

void LabTabTest::figuresAndDataAreWritten() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  sweep(tab, small());
  const std::map<QString, QByteArray> starts{
      {"png", "\x89PNG"}, {"svg", "<?xml"}, {"pdf", "%PDF"}, {"csv", "way,size,"}};
  for (const auto& [ending, start] : starts) {
    const QString path = home_.path() + "/figure." + ending;
    tab.exportTo(path);
    QFile file(path);
    QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(path));
    QVERIFY2(file.read(16).startsWith(start), qPrintable(path));
  }
  tab.exportTo("/proc/none/figure.png");
  QVERIFY(shows(tab, "cannot be written"));
  tab.exportTo(home_.path() + "/figure.gif");
  QVERIFY(shows(tab, "name it .png, .svg, .pdf or .csv"));
}

void LabTabTest::sharesSumToTheWhole() {
  lab::LabResult result;
  lab::LabPoint p;
  p.way = lab::Way::GpuPinned, p.size = 64, p.median_s = 10e-6, p.device_s = 8e-6, p.copy_s = 6e-6, p.compute_s = 2e-6;
  result.points.push_back(p);
  p.way = lab::Way::CpuLibrary, p.median_s = 4e-6, p.device_s = p.copy_s = 0, p.compute_s = 4e-6;
  result.points.push_back(p);
  const auto shares = lab_shares(result, 64);
  QCOMPARE(shares.size(), size_t(2));
  QCOMPARE(shares[0].copy, 0.6);
  QCOMPARE(shares[0].compute, 0.2);
  QVERIFY(std::abs(shares[0].rest - 0.2) < 1e-9);
  QCOMPARE(shares[1].compute, 1.0);
  QVERIFY(lab_shares(result, 65).empty());
}

// What a killed window leaves: the file under its unfinished name, with a writer that is gone.
void LabTabTest::aKilledSweepIsFoundAgain() {
  const QString whole = folder() + "/lab-add-1.wsrun", part = whole + ".part";
  QVERIFY(QDir().mkpath(folder()));
  {
    struct Quiet : lab::LabSink {
    } sink;
    std::atomic<bool> cancel{false};
    run_sweep(small(), part.toStdString(), cancel, sink);
    prof::RunSummary summary = prof::read_run_summary(part.toStdString());
    summary.status = "running";
    prof::RunFileWriter writer(part.toStdString(), summary);
    writer.flush();
    LabJob::recover(folder());
    QVERIFY2(QFile::exists(part), "this process still writes it");
  }
  LabJob::recover(folder());
  QVERIFY(!QFile::exists(part));
  QCOMPARE(read_lab(whole.toStdString())->points.size(), size_t(8));
}

void LabTabTest::aShippedResultStandsThereUntilThereIsAnother() {
  auto window = open();
  auto& tab = *window->findChild<LabTab*>();
  QVERIFY(!tab.job().running() && tab.job().result().points.empty());
  QCOMPARE(tab.shown().size(), size_t(1));
  QCOMPARE(tab.shown()[0].result.device, std::string("NVIDIA H200"));
  QVERIFY(shows(tab, "Measured on NVIDIA H200") && shows(tab, "Press Measure to replace this shipped result"));
  QVERIFY(tab.chart()->curves().size() >= 4);
  QVERIFY2(tab.shown()[0].other_settings, "the form has its own sizes");
  auto* presets = tab.findChild<QComboBox*>();
  for (int i = 1; i < presets->count(); ++i) {
    presets->setCurrentIndex(i);
    emit presets->activated(i);
    QVERIFY2(tab.shown().size() == 1 && !tab.shown()[0].result.points.empty(), qPrintable(presets->currentText()));
    for (const lab::LabPoint& p : tab.shown()[0].result.points) QVERIFY(p.bytes > 0 && p.flops > 0);
    QVERIFY2(!tab.shown()[0].other_settings, "the form has the settings of the shipped sweep");
  }
  tab.setSpec(small());  // no shipped sweep adds
  QVERIFY(tab.shown().empty());
  for (QTableWidget* table : tab.findChildren<QTableWidget*>()) QVERIFY2(!table->isVisible(), "an empty table");
  sweep(tab, small());
  QCOMPARE(tab.shown().size(), size_t(1));
  QVERIFY(tab.shown()[0].shipped.isEmpty() && shows(tab, "8 points"));
}

WARPSIGHT_QTEST(LabTabTest)
#include "lab_tab_test.moc"
