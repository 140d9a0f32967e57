// Forty seeded runs through the real window: trained, changed in mid-run, stopped, failed, imported and opened again. All
// views of a run must print the same figures. WARPSIGHT_SEED=1 chooses other runs.
#include <QFile>
#include <QListView>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "app/charts/curve_pane.h"
#include "app/charts/plot.h"
#include "app/charts/split_pane.h"
#include "app/core/comparison/comparison_text.h"
#include "app/core/report/report.h"
#include "app/core/runs/training_folder.h"
#include "app/pages/compare/compare_tab.h"
#include "app/pages/details/details_panel.h"
#include "app/pages/insights/insights_tab.h"
#include "app/pages/library/library_model.h"
#include "app/pages/library/runs_panel.h"
#include "app/pages/live/live_page.h"
#include "app/report/report_pages.h"
#include "app/text/units.h"
#include "app/timeline/timeline_painter.h"
#include "app/window/status_line.h"
#include "app/window/top_bar.h"
#include "engine/devices/devices.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/formats/convert.h"
#include "tests/app/support/cut_off.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;
using ws::RunSpec;

namespace {

// A number as it is printed: two of them agree if they may be roundings of one value.
struct Printed {
  double value = NAN, half_step = 0;
  bool known() const { return value == value; }
};

double unit_of(const QString& unit) {
  static const std::map<QString, double> units{{"µs", 1}, {"ms", 1e3}, {"s", 1e6}, {"B", 1}, {"KiB", 1024},
                                               {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"%", 1}, {"", 1},
                                               {"samples/s", 1}, {"M samples/s", 1e6}};
  const auto at = units.find(unit);
  return at == units.end() ? NAN : at->second;
}

Printed printed(QString text, const QString& unit) {
  text = text.remove(QChar(0x202F)).replace(QChar(0x2212), '-').trimmed();
  static const QRegularExpression number(R"(^-?(\d+)(?:\.(\d+))?$)");
  const auto match = number.match(text);
  const double scale = unit_of(unit);
  if (!match.hasMatch() || std::isnan(scale)) return {};
  return {text.toDouble() * scale, 0.5 * std::pow(10.0, -double(match.captured(2).size())) * scale};
}

// "18.1 µs": the number and the unit that follow a word.
Printed after(const QString& text, const QString& word) {
  static const QString number = QString::fromUtf8(R"(\s*[:,]?\s*(-?[\d  .]+?)\s?(µs|ms|s|KiB|MiB|GiB|B|%)(?=\W|$))");
  const auto match = QRegularExpression(QRegularExpression::escape(word) + number).match(text);
  return match.hasMatch() ? printed(match.captured(1), match.captured(2)) : Printed{};
}

constexpr const char* kTime = "step time";
constexpr const char* kLow = "5th percentile";
constexpr const char* kHigh = "95th percentile";
constexpr const char* kMean = "mean step";
constexpr const char* kBatchLoss = "batch loss";
constexpr const char* kTrainLoss = "training loss";
constexpr const char* kTestLoss = "test loss";
constexpr const char* kAccuracy = "test accuracy";
constexpr const char* kMemory = "peak memory";
constexpr const char* kCalls = "allocator calls";
constexpr const char* kCost = "tracing cost";
constexpr const char* kSteps = "steps";
constexpr const char* kThroughput = "throughput";
// In words:
constexpr const char* kTitle = "title";
constexpr const char* kStatus = "status";
constexpr const char* kDevice = "device";
constexpr const char* kChoices = "choices";
constexpr const char* kLetter = "letter";

// What all views of one run say, by figure and view.
class Said {
 public:
  void add(const char* figure, const QString& view, Printed value) {
    if (value.known()) all_[figure].emplace_back(view, value);
  }
  void add(const char* figure, const QString& view, const QString& text, const QString& unit = {}) {
    add(figure, view, printed(text, unit));
  }
  void addWords(const char* figure, const QString& view, const QString& words) {
    if (!words.trimmed().isEmpty()) words_[figure].emplace_back(view, words.simplified());
  }
  int wordsOf(const char* figure) const {
    const auto at = words_.find(figure);
    return at == words_.end() ? 0 : static_cast<int>(at->second.size());
  }
  QStringList views(const char* figure) const {
    QStringList names;
    if (const auto at = all_.find(figure); at != all_.end())
      for (const auto& [view, value] : at->second) names << QString("%1 %2").arg(view).arg(value.value);
    return names;
  }
  QStringList contradictions() const {
    QStringList found;
    for (const auto& [figure, list] : all_)
      for (size_t i = 1; i < list.size(); ++i) {
        const auto& [view, value] = list[i];
        for (size_t k = 0; k < i; ++k) {
          const Printed& other = list[k].second;
          if (std::abs(value.value - other.value) <= 1.02 * (value.half_step + other.half_step) + 1e-9) continue;
          found << QString("%1: %2 in %3, %4 in %5").arg(figure).arg(other.value).arg(list[k].first).arg(value.value).arg(view);
          break;
        }
      }
    for (const auto& [figure, list] : words_)
      for (const auto& [view, words] : list)
        if (words != list.front().second)
          found << QString("%1: “%2” in %3, “%4” in %5").arg(figure, list.front().second, list.front().first, words, view);
    return found;
  }
  void join(const Said& other) {
    for (const auto& [figure, list] : other.all_) all_[figure].insert(all_[figure].end(), list.begin(), list.end());
    for (const auto& [figure, list] : other.words_) words_[figure].insert(words_[figure].end(), list.begin(), list.end());
  }

 private:
  std::map<QString, std::vector<std::pair<QString, QString>>> words_;
  std::map<QString, std::vector<std::pair<QString, Printed>>> all_;
};

// "90 % of the steps took 17.2 µs to 19.0 µs"
void add_spread(const QString& text, const QString& view, Said& said, const QString& begin = "of the steps took") {
  said.add(kLow, view, after(text, begin));
  said.add(kHigh, view, after(text.section(begin, 1), " to"));
}

QString without_tags(QString html) { return html.remove(QRegularExpression("<[^>]*>")).replace("&nbsp;", " "); }

void look_at_top_bar(MainWindow& window, const QString& when, Said& said) {
  static const std::pair<QString, const char*> cells[] = {
      {"training loss", kTrainLoss}, {"test loss", kTestLoss}, {"test accuracy", kAccuracy}, {"step time", kTime}, {"peak ", kMemory}};
  for (const NumberCell* cell : window.topBar()->findChildren<NumberCell*>())
    for (const auto& [name, figure] : cells)
      if (cell->accessibleName().startsWith(name)) {
        const QString text = cell->accessibleDescription().trimmed();
        said.add(figure, when + " top bar", text.section(' ', 0, 0), text.section(' ', 1, 1));
        if (figure == kTime) add_spread(cell->toolTip(), when + " top bar", said);
      }
  for (const QLabel* label : window.topBar()->findChildren<QLabel*>())
    said.add(kCost, when + " top bar", after(label->text(), QString::fromUtf8("tracing costs ≥")));
}

// "finished · 450 steps · training took 0.4 s with first steps and tests"
void look_at_progress(MainWindow& window, const Run& run, const QString& when, Said& said) {
  static const QRegularExpression letter("^[A-Z]+ ");
  const QString text = window.topBar()->findChild<ProgressCell*>()->accessibleDescription().remove(letter);
  static const QRegularExpression steps(QString::fromUtf8("· ([^·]+) steps(?: recorded)? · "));
  if (const auto match = steps.match(text); match.hasMatch()) said.add(kSteps, when + " top bar", match.captured(1));
  if (run.hasChoices() && run.summary && !run.progress)
    said.addWords(kStatus, when + " top bar", text.section(QString::fromUtf8(" ·"), 0, 0));
}

// The step that an insight's gain is measured against.
void look_at_insights(MainWindow& window, const QString& when, Said& said) {
  if (!show_tab(window, "Suggestions")) return;
  for (QWidget* widget : window.findChild<InsightsTab*>()->findChildren<QWidget*>()) {
    if (!widget->isVisible() || !ws::test::paints_letters(*widget)) continue;
    const auto texts = painted_texts(*widget);
    for (size_t i = 0; i + 1 < texts.size(); ++i)
      if (texts[i].text == "median now")
        said.add(kTime, when + " insights", texts[i + 1].text.section(' ', 0, 0), texts[i + 1].text.section(' ', 1));
  }
}

// The header names the current run on every page.
void look_at_header(MainWindow& window, const QString& when, Said& said) {
  for (const char* tab : {"Plan", "Kernel times"})
    if (show_tab(window, tab)) said.addWords(kTitle, when + " header of " + tab, window.topBar()->currentRun()->title());
}

void look_at_live(MainWindow& window, const Run& run, const QString& when, Said& said) {
  const QString letter = run_letter(run.slot);
  const QString split = window.findChild<LivePage*>()->split()->accessibleDescription();
  said.add(kTime, when + " split", after(split, "step time of " + letter));
  said.addWords(kLetter, when + " split", QRegularExpression("step time of (\\w+) ").match(split).captured(1));
  for (const CurvePane* pane : window.findChild<LivePage*>()->findChildren<CurvePane*>())
    if (pane->findChild<Plot*>()->accessibleName() == "Loss chart" && !pane->legend()->items().empty() && !pane->legend()->items().front().value.isEmpty())
      said.add(std::isfinite(run.testLoss()) ? kTestLoss : kTrainLoss, when + " legend", pane->legend()->items().front().value);
  const auto bars = painted_texts(*window.findChild<LivePage*>()->split());
  for (size_t i = 0; i + 1 < bars.size(); ++i)  // the number at the end of a bar has a unit; shares stand in a wide table
    if (bars[i + 1].text != "%") said.add(kTime, when + " bar of the split", printed(bars[i].text, bars[i + 1].text.isEmpty() ? "?" : bars[i + 1].text));
  const QString details = without_tags(window.findChild<DetailsPanel*>()->html());
  add_spread(details, when + " details", said, "90 % of the steps");
  said.add(kCost, when + " details", after(details, QString::fromUtf8("tracing costs≥")));
}

// The row of the run alone: two texts, "18.1" and "µs/step".
void look_at_runs_list(MainWindow& window, Run& run, const QString& when, Said& said) {
  auto* panel = window.findChild<RunsPanel*>();
  QListView* view = panel->view();
  const QModelIndex index = panel->model()->indexOf(&run);
  view->scrollTo(index);
  const QRect row = view->visualRect(index);
  QString value, unit;
  constexpr int kBadgeEnds = 48;
  for (const PaintedText& text : painted_texts(*view->viewport())) {
    if (!row.contains(text.box.center().toPoint())) continue;
    if (text.box.right() < row.left() + kBadgeEnds) said.addWords(kLetter, when + " runs", text.text);
    if (text.box.right() < row.right() - 20) continue;
    (text.text.contains("/step") ? unit : value) = text.text;
  }
  said.add(kTime, when + " runs", value, unit.section('/', 0, 0));
  said.addWords(kTitle, when + " runs", index.data().toString());
}

void look_at_library(MainWindow& window, const Run& run, const QString& when, Said& said) {
  LibraryModel model(window.workspace()->library());
  for (int row = 0; row < model.rowCount(); ++row) {
    if (model.run(row) != &run) continue;
    const auto text = [&](int column) { return model.index(row, column).data().toString(); };
    said.add(kTime, when + " library", text(LibraryModel::StepTime).section(' ', 0, 0),
             text(LibraryModel::StepTime).section(' ', 1));
    add_spread(model.index(row, LibraryModel::StepTime).data(Qt::ToolTipRole).toString(), when + " library", said);
    said.add(kTestLoss, when + " library", text(LibraryModel::TestLoss));
    said.add(kAccuracy, when + " library", text(LibraryModel::Accuracy), "%");
    said.add(kMemory, when + " library", text(LibraryModel::Peak).section(' ', 0, 0), text(LibraryModel::Peak).section(' ', 1));
    said.add(kCalls, when + " library", text(LibraryModel::Calls));
    said.addWords(kTitle, when + " library", text(LibraryModel::Name));
    if (run.hasChoices()) said.addWords(kStatus, when + " library", text(LibraryModel::Status));
    said.addWords(kDevice, when + " library", text(LibraryModel::Device));
    said.addWords(kChoices, when + " library", text(LibraryModel::Changes));
  }
}

void look_at_compare(MainWindow& window, const QString& when, Said& said) {
  const std::pair<QString, const char*> rows[] = {{"step time, median", kTime},
                                                  {"step time, P5", kLow},
                                                  {"step time, P95", kHigh},
                                                  {"mean step", kMean},
                                                  {"test loss, last", kTestLoss},
                                                  {"test accuracy, last", kAccuracy},
                                                  {"peak memory", kMemory},
                                                  {"allocator calls per step", kCalls},
                                                  {"throughput", kThroughput},
                                                  {"tracing costs", kCost}};
  const QTableWidget* table = window.findChild<CompareTab*>()->measures();
  if (const QTableWidgetItem* head = table->horizontalHeaderItem(1)) said.addWords(kTitle, when + " compare", head->toolTip());
  for (int row = 0; row < table->rowCount(); ++row) {
    if (!table->item(row, 0) || !table->item(row, 1)) continue;
    const QString name = table->item(row, 0)->text();
    for (const auto& [begin, figure] : rows)
      if (name.startsWith(begin))
        said.add(figure, when + " compare", table->item(row, 1)->text(), name.mid(begin.size()).remove(", "));
  }
}

void look_at_report(const ReportRun& report, const Run& run, const QString& view, Said& said) {
  const QString html = QString::fromStdString(report_html({report}));
  const QString table = html.section("<table>", 1, 1).section("</table>", 0, 0);
  const QStringList heads = table.section("</tr>", 0, 0).split("</th>"), cells = table.section("</tr>", 1, 1).split("</td>");
  for (int i = 0; i < std::min(heads.size(), cells.size()); ++i) {
    const QString head = without_tags(heads[i]).trimmed(), cell = without_tags(cells[i]).trimmed();
    if (head == QString::fromUtf8("step time, µs")) {  // "18.1, 17.2 to 19.0"
      said.add(kTime, view, cell.section(',', 0, 0), "µs");
      said.add(kLow, view, cell.section(", ", 1).section(" to ", 0, 0), "µs");
      said.add(kHigh, view, cell.section(" to ", 1).section(' ', 0, 0), "µs");
    }
    if (head == "loss") said.add(cell.contains("test loss") ? kTestLoss : kTrainLoss, view, cell.section(' ', 0, 0));
    if (head == "test accuracy %") said.add(kAccuracy, view, cell, "%");
    if (head == "allocator calls per step") said.add(kCalls, view, cell);
    if (head == "peak memory") said.add(kMemory, view, cell.section(' ', 0, 0), cell.section(' ', 1));
    if (head == "run") said.addWords(kTitle, view, cell);
    if (head == "status" && run.hasChoices()) said.addWords(kStatus, view, cell);
    if (head == "device") said.addWords(kDevice, view, cell);
    if (head == "steps") said.add(kSteps, view, cell);
    if (head == "samples/s") said.add(kThroughput, view, cell);
    if (i == 0 && report.letter >= 0) said.addWords(kLetter, view, cell);
    if (head == "tracing costs") said.add(kCost, view, after(cell, QString::fromUtf8("≥")));
  }
}

// "  step time, median (µs)      41.2      41.2": what `warpsight diff` prints.
void look_at_diff(const ws::prof::RunData& data, const QString& when, Said& said) {
  static const std::pair<const char*, const char*> rows[] = {
      {"step time, median", kTime},    {"step time, P5", kLow}, {"step time, P95", kHigh},
      {"mean step", kMean}, {"test loss, last", kTestLoss},
      {"test accuracy, last", kAccuracy}, {"peak memory", kMemory},         {"allocator calls per step", kCalls},
      {"throughput", kThroughput},     {"tracing costs", kCost}};
  const ComparedRun run = compared_run(data);
  const QString text = QString::fromStdString(to_text(compare(run, run)));
  for (const auto& [name, figure] : rows) {
    const QRegularExpression row(QString(R"(^  %1(?: \((.+?)\))? {2,}(\S+))").arg(QRegularExpression::escape(name)),
                                 QRegularExpression::MultilineOption);
    if (const auto match = row.match(text); match.hasMatch())
      said.add(figure, when + " diff", match.captured(2), match.captured(1));
  }
}

void look_at_files(const Run& run, const QString& when, Said& said) {
  const ws::prof::RunData data = ws::prof::import_run(run.path.toStdString());
  look_at_diff(data, when, said);
  const QString stats = QString::fromStdString(ws::prof::to_text(ws::prof::run_stats(data)));
  said.add(kTime, when + " stats", after(stats, "step time"));
  static const QRegularExpression ends(QString::fromUtf8(R"(P5 ([0-9.]+), P95 ([0-9.]+) µs)"));
  said.add(kLow, when + " stats", ends.match(stats).captured(1), QString::fromUtf8("µs"));
  said.add(kHigh, when + " stats", ends.match(stats).captured(2), QString::fromUtf8("µs"));
  static const QRegularExpression sum(R"((\S+) +100\.00  step time, their sum)");
  said.add(kTime, when + " stats", sum.match(stats).captured(1), "µs");
  said.add(kCost, when + " stats", after(stats, QString::fromUtf8("tracing cost ≥")));
  const nlohmann::json json = summary_json(*run.summary, data.summary);
  const auto exact = [&](const char* figure, const nlohmann::json& value, double scale) {
    if (value.is_number() && value.get<double>() * scale > 0)
      said.add(figure, when + " summary.json", Printed{value.get<double>() * scale, 1e-9});
  };
  exact(kTime, json["step_time_us"]["median"], 1);
  exact(kLow, json["step_time_us"]["p5"], 1);
  exact(kHigh, json["step_time_us"]["p95"], 1);
  exact(kBatchLoss, json["final_train_loss"], 1);
  exact(kTestLoss, json["test_loss"], 1);
  exact(kAccuracy, json["test_accuracy"], 100);
  exact(kMemory, json["peak_bytes"], 1);
  exact(kSteps, json["steps"], 1);
  if (run.hasChoices()) exact(kThroughput, json["samples_per_s"], 1);
  said.addWords(kTitle, when + " run file", QString::fromStdString(data.summary.name));
  if (!run.hasChoices()) return;
  said.addWords(kStatus, when + " summary.json", QString::fromStdString(json["status"].get<std::string>()));
  Run ended;
  ended.spec = ws::spec_from_json(json["spec"]);
  said.addWords(kChoices, when + " summary.json", changes_text(ended));
}

template <class Value>
Value any_of(std::mt19937& random, std::initializer_list<Value> values) {
  return *(values.begin() + random() % values.size());
}

const std::pair<const char*, const char*> kSteering[] = {
    {"exec.allocator", "direct"}, {"exec.allocator", "caching"}, {"exec.allocator", "arena"}, {"exec.sync", "every-op"},
    {"exec.fusion", "off"},       {"exec.fusion", "epilogue"},   {"train.lr", "0.01"},
};

RunSpec random_spec(std::mt19937& random) {
  for (;;) {
    RunSpec spec;
    spec.exec.device = ws::Device::Cpu;
    spec.data.name = any_of(random, {"iris", "blobs", "spirals", "circles", "xor", "line"});
    spec.data.points = 120;
    spec.data.validation = any_of(random, {0.0, 0.2, 0.3});
    if (spec.data.name == "line") spec.model.loss = ws::LossKind::MeanSquared;
    spec.model.hidden = any_of(random, {std::vector<int64_t>{8}, {16}, {8, 8}});
    for (const char* key : {"model.init", "model.activation", "train.optimizer", "train.schedule", "exec.allocator",
                            "exec.sync", "exec.fusion", "exec.launch", "exec.precision", "exec.loader"}) {
      const auto values = ws::field(key).values;
      ws::set_field(spec, key, values[random() % values.size()].name);
    }
    spec.train.epochs = any_of<int64_t>(random, {1, 8, 40});
    spec.train.batch = any_of<int64_t>(random, {0, 10, 16, 30});
    spec.train.lr = 0.01;
    spec.train.eval_every = any_of<int64_t>(random, {0, 1, 3});
    if (!ws::why_invalid(spec, false)) return spec;
  }
}

enum class Fate { Finished, Changed, Stopped, Failed, Imported };

}  // namespace

class ViewsAgreeTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  static constexpr int kRuns = 40;

  Run* train(MainWindow& window, Fate fate, std::mt19937& random) {
    RunSpec spec = random_spec(random);
    if (fate == Fate::Failed) spec.data.name = "csv", spec.data.path = "/no/such.csv", spec.data.label_column = "y";
    if (fate == Fate::Changed || fate == Fate::Stopped) spec.train.epochs = 1'000'000;
    QSignalSpy ended(window.workspace()->session(), &TrainingSession::ended);
    window.workspace()->choices()->setSpec(spec);
    Run* run = window.workspace()->train(spec);
    if (!run) return nullptr;
    const auto made = [run] { return run->progress ? run->progress->step : 0; };
    for (int change = 0; fate == Fate::Changed && change < 2; ++change) {
      const int64_t now = made();
      (void)QTest::qWaitFor([&] { return made() > now + 50; }, 60'000);
      const auto& [key, value] = kSteering[random() % std::size(kSteering)];
      window.workspace()->session()->change(key, value);
    }
    if (fate == Fate::Changed || fate == Fate::Stopped) {
      const int64_t now = made();
      (void)QTest::qWaitFor([&] { return made() > now + 50; }, 60'000);
      window.workspace()->session()->stop();
    }
    (void)QTest::qWaitFor([&] { return !ended.isEmpty(); }, 60'000);
    return run;
  }

  Run* import(MainWindow& window, const Run& from, int number) {
    const QString json = home_.path() + QString("/out-%1.json").arg(number);
    ws::prof::convert(from.path.toStdString(), json.toStdString());
    const QString path = runs() + QString("/imported-%1.wsrun").arg(number);
    ws::prof::convert(json.toStdString(), path.toStdString());
    return window.workspace()->library()->open(path);
  }

  // Everything that prints figures of a run, with this run alone ticked.
  Said look(MainWindow& window, Run& run, const QString& when) {
    Said said;
    window.workspace()->library()->tickOnly({&run});
    window.workspace()->pick(&run);
    (void)QTest::qWaitFor([&] { return !window.workspace()->library()->loading(); }, 60'000);
    show_tab(window, "Overview");
    (void)QTest::qWaitFor([&] {
      const QList<CurvePane*> charts = window.findChild<LivePage*>()->findChildren<CurvePane*>();
      return window.findChild<DetailsPanel*>()->settled() &&
             std::ranges::none_of(charts, [](const CurvePane* chart) { return chart->isVisible() && chart->dirty(); });
    }, 60'000);
    look_at_top_bar(window, when, said);
    look_at_progress(window, run, when, said);
    look_at_live(window, run, when, said);
    look_at_runs_list(window, run, when, said);
    look_at_library(window, run, when, said);
    auto* compare = window.findChild<CompareTab*>();
    compare->setRuns({&run});
    if (!QTest::qWaitFor([&] { return compare->ready(); }, 60'000)) qWarning("Compare never got ready");
    look_at_compare(window, when, said);
    look_at_report(report_run_of_file(run.path.toStdString()), run, when + " report of the file", said);
    look_at_report(report_run(run), run, when + " report", said);
    look_at_files(run, when, said);
    look_at_header(window, when, said);
    look_at_insights(window, when, said);
    return said;
  }

  // The curves of the allocator: as high when opened again, and never more used than reserved.
  struct Calls {
    double least = INFINITY, most = 0;
  };
  static Calls calls_of(const Run& run, QStringList& wrong) {
    Calls calls;
    for (const MeterPoint& m : run.meters) {
      calls.least = std::min(calls.least, m.allocate + m.free), calls.most = std::max(calls.most, m.allocate + m.free);
      if (m.allocate < 0 || m.free < 0 || (m.reserved > 0 && m.used > m.reserved))
        wrong << QString("%1 at step %2: %3 calls, %4 bytes used of %5").arg(run.title).arg(m.step)
                     .arg(m.allocate + m.free).arg(m.used).arg(m.reserved);
    }
    return calls;
  }

  std::map<QString, Said> said_;  // by path
  std::set<int> letters_;         // no two runs have the same
  std::map<QString, Calls> calls_;
  std::map<QString, RunSpec> ended_with_;

 private slots:
  void initTestCase() { moveIn(); }
  void cleanupTestCase() { clear(); }

  void liveRunsSayOneThing() {
    auto window = open();
    window->resize(1600, 972);
    const int seed = qEnvironmentVariableIsSet("WARPSIGHT_SEED") ? qEnvironmentVariableIntValue("WARPSIGHT_SEED") : 7;
    std::mt19937 random(static_cast<unsigned>(seed));
    QStringList wrong;
    size_t printed = 0;
    qsizetype spreads = 0;
    for (int number = 0; number < kRuns; ++number) {
      constexpr Fate kFates[] = {Fate::Finished, Fate::Changed, Fate::Finished, Fate::Stopped, Fate::Imported,
                                 Fate::Finished, Fate::Changed, Fate::Failed};
      const Fate fate = kFates[number % std::size(kFates)];
      Run* run = train(*window, fate == Fate::Imported ? Fate::Finished : fate, random);
      QVERIFY(run && run->summary);
      if (fate == Fate::Imported) run = import(*window, *run, number);
      QVERIFY(run);
      if (fate == Fate::Failed) {  // has no file
        QVERIFY(std::isnan(run->stepUs()) && !QFile::exists(run->path));
        continue;
      }
      Said said = look(*window, *run, "live");
      const QStringList times = said.views(kTime);
      printed += static_cast<size_t>(times.size());
      if (times.size() < (run->split.steps > 0 ? 12 : run->stepUs() > 0 ? 10 : 0)) wrong << QString("run %1: too few views: %2").arg(number).arg(times.join("; "));
      spreads = std::max(spreads, std::min(said.views(kLow).size(), said.views(kHigh).size()));
      if (said.wordsOf(kLetter) < 2) wrong << QString("run %1: too few views have its letter").arg(number);
      if (said.wordsOf(kTitle) < 5) wrong << QString("run %1: too few views name it").arg(number);
      for (const QString& each : said.contradictions()) wrong << QString("run %1 (%2): %3").arg(number).arg(run->title, each);
      if (!letters_.insert(run->letter).second) wrong << QString("run %1 has the letter of another").arg(number);
      said_[run->path] = std::move(said);
      if (fate != Fate::Imported) calls_[run->path] = calls_of(*run, wrong), ended_with_[run->path] = run->spec;
    }
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    qInfo("%zu step times printed by %zu runs", printed, said_.size());
    QVERIFY2(spreads >= 6, qPrintable(QString::number(spreads)));
  }

  void openedAgainTheySayTheSame() {
    auto window = open();
    window->resize(1600, 972);
    QStringList wrong;
    for (auto& [path, before] : said_) {
      Run* run = window->workspace()->library()->byPath(path);
      QVERIFY(run);
      look_at_library(*window, *run, "unopened", before);
      before.join(look(*window, *run, "reopened"));
      for (const QString& each : before.contradictions()) wrong << QString("%1: %2").arg(run->title, each);
      if (const auto spec = ended_with_.find(path); spec != ended_with_.end() && !(run->spec == spec->second))
        wrong << run->title + ": other settings when opened again";
      const auto live = calls_.find(path);
      if (live == calls_.end() || !run->loaded || run->meters.empty()) continue;
      const Calls again = calls_of(*run, wrong);
      if (again.least < live->second.least - 0.6 || again.most > live->second.most + 0.6)
        wrong << QString("%1: %2 to %3 allocator calls per step live, %4 to %5 opened again").arg(run->title)
                     .arg(live->second.least).arg(live->second.most).arg(again.least).arg(again.most);
    }
    QVERIFY(said_.size() >= 30);
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }
};

WARPSIGHT_QTEST(ViewsAgreeTest)
#include "views_agree_test.moc"
