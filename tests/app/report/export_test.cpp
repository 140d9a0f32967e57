// What the window writes, opened by other programs: PDF by poppler, SVG by an XML reader and a renderer, CSV and JSON
// by python, the HTML report by a browser where there is one.
#include <signal.h>

#include <QImage>
#include <QPainter>
#include <QProcess>
#include <QStandardPaths>
#include <QSvgRenderer>
#include <QTemporaryDir>
#include <QXmlStreamReader>
#include <QTest>
#include <nlohmann/json.hpp>

#include "app/charts/curve_pane.h"
#include "app/pages/compare/compare_tab.h"
#include "app/workspace/compared_live_run.h"
#include "app/pages/experiments/experiment_chart.h"
#include "app/pages/compare/step_view.h"
#include "app/widgets/theme.h"
#include "app/widgets/chart_file.h"
#include "app/timeline/range_export.h"
#include "app/report/report_pages.h"
#include "app/report/share_export.h"
#include "app/workspace/job.h"
#include "app/text/units.h"
#include "profiling/base/packed_file.h"
#include "profiling/formats/convert.h"
#include "tests/app/support/made_run.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/failure_text.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/synthetic_trace.h"

using namespace ws;
using namespace ws::app;

namespace {

std::unique_ptr<Run> run_of(const QString& title, test::StepStyle style, int slot) {
  auto run = std::make_unique<Run>();
  run->title = title;
  run->slot = slot;
  run->device = "NVIDIA H200";
  test::add_steps(run->trace, style, 0, 60);
  Summary summary;
  summary.steps = 60;
  summary.us_per_step = 100;
  summary.spec = run->spec;
  run->summary = summary;
  for (int i = 0; i < 60; ++i) run->steps.push_back({double(i), i * 1e-3, 0, float(2.3 / (1 + i)), 0.5F});
  run->evals.push_back({60, 0.06, 1, 0.3, 0.9});
  test::measure_steps(*run);
  return run;
}

QString tool(const char* name) { return QStandardPaths::findExecutable(name); }

struct Said {
  int status = -1;
  QByteArray out;
};
Said ask(const QString& program, const QStringList& arguments, int milliseconds = 30'000) {
  QProcess process;
  process.setProcessChannelMode(QProcess::MergedChannels);
  process.start(program, arguments);
  if (!process.waitForFinished(milliseconds)) return {};
  return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1, process.readAll()};
}

// Something is drawn: several colours, and not only at the edge.
bool blank(const QImage& picture) {
  if (picture.isNull()) return true;
  QSet<QRgb> colours;
  int ink = 0;
  for (int y = 0; y < picture.height(); y += 3)
    for (int x = 0; x < picture.width(); x += 3) {
      colours.insert(picture.pixel(x, y));
      ink += qGray(picture.pixel(x, y)) < 200;
    }
  return colours.size() < 6 || ink < 60;
}

}  // namespace

class ExportTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  std::unique_ptr<Run> a_ = run_of("direct, \"unfused\" <eager>", test::StepStyle::EagerDirect, 0);
  std::unique_ptr<Run> b_ = run_of("graph · arena", test::StepStyle::GraphArena, 1);
  QString at(const QString& name) const { return folder_.filePath(name); }
  ChartPicture chart() {
    return {"chart", "A caption with µ and <brackets>", QSize(500, 200),
            [](QPainter& painter, const QRectF& area) {
              painter.fillRect(area.adjusted(20, 20, -60, -60), theme().of(prof::Meaning::Matrix));
              painter.setPen(theme().text);
              painter.setFont(ui_font(14));
              painter.drawText(area, Qt::AlignCenter, "words in the picture");
            },
            [] { return QByteArray("name,value\n\"a, b\",1.5\n"); }};
  }

 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void chartsArePictures();
  void svgIsWellFormedAndDraws();
  void pdfPagesAreNotBlank();
  void theCommandLineWritesPdfToo();
  void csvIsReadByPython();
  void curvesAreFiguresToo();
  void timelinesBecomeChromeTraces();
  void theReportAsksForNothing();
  void reportAndChartOpenInABrowser();
  void aPageIsMadeInTheBackground();
  void nothingIsLeftOfAFailedExport();
};

void ExportTest::chartsArePictures() {
  write_chart(chart(), at("a.png"), 2);
  const QImage picture(at("a.png"));
  QCOMPARE(picture.width(), 1000);
  QVERIFY2(picture.height() > 400, "the caption has its room");
  QVERIFY(!blank(picture));
  QVERIFY2(qGray(picture.pixel(3, 3)) > 240, "pictures are drawn on white, also from the dark window");
  QCOMPARE(theme().name, ThemeName::Dark);
  write_chart(chart(), at("b.png"), 1);
  QCOMPARE(QImage(at("b.png")).width(), 500);
}

void ExportTest::svgIsWellFormedAndDraws() {
  write_chart(chart(), at("a.svg"));
  StepView view;
  view.resize(900, 400);
  view.setRuns({{a_.get(), sample_of(*a_)}, {b_.get(), sample_of(*b_)}});
  write_chart({"lanes",
               run_caption(*a_),
               QSize(900, int(view.contentHeight())),
               [&](QPainter& painter, const QRectF& area) { view.render(painter, area); },
               {}},
              at("lanes.svg"));
  for (const char* name : {"a.svg", "lanes.svg"}) {
    QFile file(at(name));
    QVERIFY(file.open(QIODevice::ReadOnly));
    QXmlStreamReader xml(&file);
    int texts = 0, shapes = 0;
    while (!xml.atEnd()) {
      if (xml.readNext() != QXmlStreamReader::StartElement) continue;
      texts += xml.name() == QLatin1String("text");
      shapes += xml.name() == QLatin1String("path") || xml.name() == QLatin1String("rect") ||
                xml.name() == QLatin1String("polyline");
    }
    QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
    QVERIFY2(texts >= 1 && shapes >= 1, "text stays text, shapes stay shapes");
    QSvgRenderer renderer(at(name));
    QVERIFY(renderer.isValid());
    QImage picture(renderer.defaultSize(), QImage::Format_RGB32);
    picture.fill(Qt::white);
    QPainter painter(&picture);
    renderer.render(&painter);
    painter.end();
    QVERIFY2(!blank(picture), name);
  }
  if (tool("xmllint").isEmpty()) QSKIP("xmllint is not installed: the SVG was read by Qt only");
  QCOMPARE(ask(tool("xmllint"), {"--noout", "--nonet", at("a.svg"), at("lanes.svg")}).status, 0);
}

void ExportTest::pdfPagesAreNotBlank() {
  write_chart(chart(), at("chart.pdf"));
  write_report({a_.get(), b_.get()}, at("report.pdf"));
  for (const char* name : {"chart.pdf", "report.pdf"}) {
    QFile file(at(name));
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY(file.read(5) == "%PDF-");
  }
  if (tool("pdftoppm").isEmpty()) QSKIP("pdftoppm is not installed: the PDF was written but not opened");
  for (const char* name : {"chart", "report"}) {
    const Said said = ask(tool("pdftoppm"), {"-r", "72", "-png", at(QString(name) + ".pdf"), at(name)});
    QVERIFY2(said.status == 0 && said.out.isEmpty(), said.out.constData());
    const QStringList pages = QDir(folder_.path()).entryList({QString(name) + "-*.png"});
    QVERIFY(!pages.isEmpty());
    for (const QString& page : pages) QVERIFY2(!blank(QImage(at(page))), qPrintable(page));
  }
  if (tool("pdftotext").isEmpty()) return;
  const QByteArray text = ask(tool("pdftotext"), {at("report.pdf"), "-"}).out;
  QVERIFY2(text.contains("graph · arena") && text.contains("NVIDIA H200"), "the text of a PDF is text");
  QVERIFY2(text.contains("launch gaps") && text.contains("gemm dW1") && text.contains("stream 7"),
           "also that of its figures");
  QVERIFY2(text.contains("A: direct, \"unfused\" <eager>"), "every letter of it is found");
}

void ExportTest::theCommandLineWritesPdfToo() {
  for (const auto style : {test::StepStyle::EagerDirect, test::StepStyle::GraphArena}) {
    prof::RunData run;
    const bool direct = style == test::StepStyle::EagerDirect;
    run.summary.name = direct ? "direct" : "planned ahead", run.summary.device = "NVIDIA H200";
    run.summary.status = "finished", run.summary.steps = 60;
    test::add_steps(run.trace, style, 0, 60);
    prof::export_run(run, at(direct ? "one.wsrun" : "two.wsrun").toStdString());
  }
  const QStringList runs{at("one.wsrun"), at("two.wsrun")};
  const Said said = ask(WARPSIGHT_CLI, QStringList{"report"} + runs + QStringList{"--out", at("cli.pdf")});
  QVERIFY2(said.status == 0 && said.out.contains((at("cli.pdf") + " (").toUtf8()), said.out.constData());
  if (!tool("pdftoppm").isEmpty()) {
    QCOMPARE(ask(tool("pdftoppm"), {"-r", "72", "-png", at("cli.pdf"), at("cli")}).status, 0);
    const QStringList pages = QDir(folder_.path()).entryList({"cli-*.png"});
    QVERIFY(!pages.isEmpty());
    for (const QString& page : pages) QVERIFY2(!blank(QImage(at(page))), qPrintable(page));
  }
  if (!tool("pdftotext").isEmpty()) QVERIFY(ask(tool("pdftotext"), {at("cli.pdf"), "-"}).out.contains("planned ahead"));
  const Said lost = ask(WARPSIGHT_CLI, QStringList{"report"} + runs + QStringList{"--out", at("no/such/cli.pdf")});
  QVERIFY2(lost.status == 1 && lost.out.count('\n') == 1 && lost.out.contains("cli.pdf"), lost.out.constData());
  const Said odd = ask(WARPSIGHT_CLI, {"report", at("none.wsrun"), "--out", at("odd.pdf")});
  QVERIFY2(odd.status == 1 && odd.out.contains("none.wsrun") && !QFileInfo::exists(at("odd.pdf")), odd.out.constData());
  QVERIFY(QFile::copy(WARPSIGHT_CLI, at("alone")));  // without the window's program beside it
  const Said alone = ask(at("alone"), QStringList{"report"} + runs + QStringList{"--out", at("alone.pdf")});
  QVERIFY2(alone.status == 1 && alone.out.contains("not installed beside"), alone.out.constData());
}

void ExportTest::csvIsReadByPython() {
  write_chart(chart(), at("a.csv"));
  CompareTab tab;
  tab.setRuns({a_.get(), b_.get()});
  QTRY_VERIFY(tab.ready());
  QFile measures(at("measures.csv"));
  QVERIFY(measures.open(QIODevice::WriteOnly));
  measures.write(tab.measuresCsv());
  measures.close();
  QFile kernels(at("kernels.csv"));
  QVERIFY(kernels.open(QIODevice::WriteOnly));
  kernels.write(tab.kernelsCsv());
  kernels.close();
  if (tool("python3").isEmpty()) QSKIP("python3 is not installed: nobody reads the CSV");
  const char* script =
      "import csv, sys\n"
      "rows = list(csv.reader(open(sys.argv[1], newline='', encoding='utf-8'), strict=True))\n"
      "assert rows == [['name', 'value'], ['a, b', '1.5']], rows\n"
      "rows = list(csv.DictReader(open(sys.argv[2], newline='', encoding='utf-8'), strict=True))\n"
      "assert len(rows) > 10 and None not in rows[0], rows[:1]\n"
      "step = [r for r in rows if r['measure'] == 'step time, median'][0]\n"
      "names = list(step)\n"
      "a, b, delta = (float(step[names[i]]) for i in (3, 4, 5))\n"
      "assert abs((b - a) - delta) < 1e-6, step\n"
      "rows = list(csv.DictReader(open(sys.argv[3], newline='', encoding='utf-8'), strict=True))\n"
      "deltas = [abs(float(r['delta_us'])) for r in rows]\n"
      "assert len(rows) > 10 and deltas == sorted(deltas, reverse=True), deltas\n"
      "assert any('<' in r['name'] and ',' not in r['a_us'] for r in rows), rows[:2]\n"
      "print('good')\n";
  const Said said = ask(tool("python3"), {"-c", script, at("a.csv"), at("measures.csv"), at("kernels.csv")});
  QCOMPARE(said.out.trimmed(), QByteArray("good"));
}

void ExportTest::curvesAreFiguresToo() {
  CurvePane pane({Gauge::Loss});
  pane.resize(600, 300);
  pane.setRuns({a_.get(), b_.get()});
  pane.redraw();
  const ChartPicture curves{"loss", "", QSize(700, 320),
                            [&](QPainter& painter, const QRectF& area) { pane.renderTo(painter, area); },
                            [&] { return pane.csv(); }};
  for (const char* name : {"loss.png", "loss.svg", "loss.pdf", "loss.csv"}) write_chart(curves, at(name));
  QVERIFY(!blank(QImage(at("loss.png"))));
  QSvgRenderer svg(at("loss.svg"));
  QVERIFY(svg.isValid());
  QFile file(at("loss.svg"));
  QVERIFY(file.open(QIODevice::ReadOnly));
  const QByteArray text = file.readAll();
  QVERIFY2(!text.contains("data:image"), "curves are lines, not pixels");
  QVERIFY(text.contains("training") || text.contains("step"));
  QFile csv(at("loss.csv"));
  QVERIFY(csv.open(QIODevice::ReadOnly));
  QCOMPARE(csv.readAll().count('\n'), 1 + 60 + 60);
}

void ExportTest::timelinesBecomeChromeTraces() {
  const prof::StepWindowNs step = prof::step_window(a_->trace, 20);
  write_range_json(*a_, {step.begin, step.end}, at("step.json"));
  if (tool("python3").isEmpty()) QSKIP("python3 is not installed: nobody reads the JSON");
  const char* script =
      "import json, sys\n"
      "trace = json.load(open(sys.argv[1]))\n"
      "events = trace['traceEvents']\n"
      "whole = [e for e in events if e['ph'] == 'X']\n"
      "assert whole, 'no spans'\n"
      "for e in whole:\n"
      "    for key in ('name', 'ph', 'ts', 'dur', 'pid', 'tid', 'cat'):\n"
      "        assert key in e, (key, e)\n"
      "kernels = [e for e in whole if e['cat'] == 'kernel']\n"
      "assert kernels, {e['cat'] for e in whole}\n"
      "for key in ('stream', 'correlation', 'grid', 'block', 'registers per thread'):\n"
      "    assert key in kernels[0]['args'], (key, kernels[0])\n"
      "print(len(kernels))\n";
  const Said said = ask(tool("python3"), {"-c", script, at("step.json")});
  bool ok = false;
  const int kernels = said.out.trimmed().toInt(&ok);
  QVERIFY2(ok, said.out.constData());
  QVERIFY2(kernels > 5 && kernels < 60, "one step, not all sixty");
}

void ExportTest::theReportAsksForNothing() {
  write_report({a_.get(), b_.get()}, at("report.html"));
  if (tool("python3").isEmpty()) QSKIP("python3 is not installed: nobody parses the HTML");
  const char* script =
      "import html.parser, sys\n"
      "class Look(html.parser.HTMLParser):\n"
      "    found, tags, text = [], set(), ''\n"
      "    def handle_starttag(self, tag, attrs):\n"
      "        self.tags.add(tag)\n"
      "        for key, value in attrs:\n"
      "            if key in ('src', 'href', 'action', 'data', 'srcset', 'poster') or key.startswith('on'):\n"
      "                self.found.append((tag, key, value))\n"
      "            if key == 'style' and 'url(' in (value or ''):\n"
      "                self.found.append((tag, key, value))\n"
      "    def handle_data(self, data):\n"
      "        self.text += data\n"
      "look = Look()\n"
      "text = open(sys.argv[1], encoding='utf-8').read()\n"
      "look.feed(text)\n"
      "assert not look.found, look.found\n"
      "assert not look.tags & {'script', 'link', 'iframe', 'img', 'object', 'embed'}, look.tags\n"
      "assert '@import' not in text and 'svg' in look.tags and 'table' in look.tags\n"
      "assert '<eager>' in look.text, 'what people wrote is text'\n"
      "print('good')\n";
  QCOMPARE(ask(tool("python3"), {"-c", script, at("report.html")}).out.trimmed(), QByteArray("good"));
}

void ExportTest::reportAndChartOpenInABrowser() {
  QString browser;
  for (const char* name : {"chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "chrome"})
    if (browser.isEmpty()) browser = tool(name);
  if (browser.isEmpty()) QSKIP("no Chromium is installed: they were parsed, but not opened in a browser");
  write_report({a_.get(), b_.get()}, at("open.html"));
  write_report({a_.get(), b_.get(), a_.get(), b_.get()}, at("four.html"));
  write_chart(chart(), at("open.svg"));
  for (const char* name : {"open.html", "four.html", "open.svg"}) {
    QFile::remove(at("open.png"));
    const Said said = ask(browser,
                          {"--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,1400",
                           "--screenshot=" + at("open.png"), "file://" + at(name)},
                          60'000);
    QVERIFY2(said.status == 0, said.out.constData());
    QVERIFY2(!blank(QImage(at("open.png"))), name);
  }
}

// tests/app/page opens such pages in a browser.
void ExportTest::aPageIsMadeInTheBackground() {
  const auto shared = [this](const QString& file, const QString& to) {
    Run run;
    run.title = "direct", run.path = file, run.letter = 9;
    Job job;
    QString problem;
    bool over = false;
    share_runs({&run}, at(to), job, [&](const QString& path, const QString& why) { over = path == at(to); problem = why; });
    [&] { QTRY_VERIFY_WITH_TIMEOUT(over, 60'000); }();
    return problem;
  };
  const QString recorded = QStringLiteral(WARPSIGHT_SOURCE_DIR "/resources/recorded/mnist-direct.wsrun");
  QCOMPARE(shared(recorded, "page.html"), QString());
  QFile page(at("page.html"));
  QVERIFY(page.open(QIODevice::ReadOnly));
  const QByteArray html = page.readAll();
  QVERIFY(html.contains("Content-Security-Policy"));
  const qsizetype head = html.indexOf("id=\"head\">") + 10;
  const QByteArray packed = QByteArray::fromBase64(html.mid(head, html.indexOf('<', head) - head));
  ws::PackedReader facts("head", std::span(reinterpret_cast<const uint8_t*>(packed.data()), static_cast<size_t>(packed.size())));
  const auto run = nlohmann::json::parse(facts.read_text())["runs"][0];
  QCOMPARE(run["letter"].get<std::string>(), run_letter(9).toStdString());  // as in the window
  QCOMPARE(run["colour"].get<int>(), 1);
  QVERIFY(!shared("", "none.html").isEmpty());
  QVERIFY(!shared(at("missing.wsrun"), "none.html").isEmpty());
  QVERIFY(!QFile::exists(at("none.html")));
}

void ExportTest::nothingIsLeftOfAFailedExport() {
  QTemporaryDir empty;
  const auto left = [&] {
    return QDir(empty.path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot);
  };
  for (const char* name : {"none/a.png", "none/a.svg", "none/a.pdf", "none/a.csv", "a.gif", "a"})
    QVERIFY_EXCEPTION_THROWN(write_chart(chart(), empty.filePath(name)), Failure);
  QVERIFY_EXCEPTION_THROWN(write_report({a_.get()}, empty.filePath("none/a.html")), Failure);
  QVERIFY_EXCEPTION_THROWN(write_report({a_.get()}, empty.filePath("none/a.pdf")), Failure);
  QVERIFY_EXCEPTION_THROWN(write_range_json(*a_, {0, 1'000'000}, empty.filePath("none/a.json")), Failure);
  QCOMPARE(left(), QStringList());
  // A folder stands where the file should go.
  for (const char* name : {"taken.png", "taken.svg", "taken.pdf", "taken.csv"}) {
    QDir(empty.path()).mkdir(name);
    QVERIFY_EXCEPTION_THROWN(write_chart(chart(), empty.filePath(name)), Failure);
    QDir(empty.path()).rmdir(name);
  }
  QCOMPARE(left(), QStringList());
  // What was there before stays whole when the new one cannot be written.
  write_chart(chart(), empty.filePath("a.png"));
  ChartPicture hopeless = chart();
  hopeless.size = QSize(0, 0);
  hopeless.caption.clear();
  QVERIFY_EXCEPTION_THROWN(write_chart(hopeless, empty.filePath("a.png")), Failure);
  QVERIFY(!blank(QImage(empty.filePath("a.png"))));
  QCOMPARE(left(), QStringList("a.png"));
  QFile::remove(empty.filePath("a.png"));
  // The disk is full before the report is whole.
  write_report({a_.get()}, empty.filePath("a.pdf"));
  QFile kept(empty.filePath("a.pdf"));
  const qint64 size = kept.size();
  {
    const test::FileSizeLimit full(4000);
    QVERIFY(test::failure_text([&] { write_report({a_.get(), b_.get()}, empty.filePath("a.pdf")); }) != "");
  }
  QCOMPARE(QFileInfo(empty.filePath("a.pdf")).size(), size);
  QCOMPARE(left(), QStringList("a.pdf"));
}

WARPSIGHT_QTEST(ExportTest)
#include "export_test.moc"
