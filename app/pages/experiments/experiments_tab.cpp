#include "app/pages/experiments/experiments_tab.h"
#include "app/text/units.h"

#include <QDateTime>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/core/report/report.h"
#include "app/pages/experiments/experiment_dialog.h"
#include "app/widgets/chart_file.h"
#include "app/widgets/labels.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/training_session.h"
#include "engine/devices/devices.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

constexpr int kLeftWidth = 326;

QLabel* paragraph(QWidget* parent, QVBoxLayout* column, const QFont& font) {
  auto* made = label(parent, font, {.selectable = true});
  column->addWidget(made);
  return made;
}

}  // namespace

ExperimentsTab::ExperimentsTab(TrainingSession* session, const QString& folder, QWidget* parent)
    : QWidget(parent), session_(session), folder_(folder), job_(new ExperimentJob(this)) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(5);
  QWidget* right = buildRight();
  row->addWidget(buildLeft());
  row->addWidget(right, 1);
  connect(list_, &QListWidget::currentRowChanged, this, &ExperimentsTab::chosen);
  connect(list_, &ExperimentList::said, this, &ExperimentsTab::said);
  connect(job_, &ExperimentJob::began, this, [this](const QString& label, int repeat, int done, int of) {
    state_->setText(tr("%1 of %2: %3, repeat %4").arg(done + 1).arg(of).arg(label).arg(repeat + 1));
  });
  connect(job_, &ExperimentJob::trained, this, [this] { readResult(); showResult(); });
  connect(job_, &ExperimentJob::printed, this, [this](const QString& line) {
    if (!line.startsWith(' ')) state_->setText(tr("%1: %2").arg(job_->place(), line));
  });
  connect(job_, &ExperimentJob::ended, this, &ExperimentsTab::ended);
  connect(session_, &TrainingSession::machineChanged, this, [this] {
    if (running()) return;
    list_->setCuda(cuda());
    chosen();
  });
}

QWidget* ExperimentsTab::buildLeft() {
  auto* panel = new QWidget(this);
  style_ground(*panel, "panel");
  panel->setFixedWidth(kLeftWidth);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  list_ = new ExperimentList(folder_ + "/own", panel);
  column->addWidget(list_, 3);
  auto* own = new QPushButton(theme_icon("plus"), tr("New experiment…"), panel);
  own->setProperty("small", true);
  connect(own, &QPushButton::clicked, this, &ExperimentsTab::makeNew);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(10, 4, 10, 6);
  row->addWidget(own);
  row->addStretch(1);
  column->addLayout(row);
  auto* page = new QWidget(panel);
  auto* lines = new QVBoxLayout(page);
  lines->setContentsMargins(12, 10, 12, 10);
  lines->setSpacing(8);
  title_ = paragraph(page, lines, ui_font(14, 600));
  text_ = paragraph(page, lines, ui_font(12.5));
  expect_ = paragraph(page, lines, ui_font(12.5));
  more_ = new QPushButton(tr("More"), page);
  more_->setProperty("link", true);
  lines->addWidget(more_, 0, Qt::AlignLeft);
  rest_ = paragraph(page, lines, ui_font(12.5));
  connect(more_, &QPushButton::clicked, this, [this] { showRest(rest_->isHidden()); });
  size_ = paragraph(page, lines, ui_font(11));
  size_->setForegroundRole(QPalette::PlaceholderText);
  lines->addStretch(1);
  auto* scroll = new QScrollArea(panel);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setWidget(page);
  scroll->viewport()->setAutoFillBackground(false);
  page->setAutoFillBackground(false);
  column->addWidget(scroll, 4);
  column->addWidget(buildFooter());
  return panel;
}

QWidget* ExperimentsTab::buildFooter() {
  auto* footer = new QWidget(this);
  style_ground(*footer, "footer");
  auto* column = new QVBoxLayout(footer);
  column->setContentsMargins(10, 8, 10, 8);
  state_ = label(footer, ui_font(11), {.plain = true});  // other machines print here
  progress_ = new QProgressBar(footer);
  progress_->setTextVisible(false);
  progress_->setAccessibleName(tr("Progress of the experiment"));
  auto* row = new QHBoxLayout;
  repeats_ = new QSpinBox(footer);
  repeats_->setRange(1, 1000);
  repeats_->setMaximumWidth(44);
  repeats_->setButtonSymbols(QAbstractSpinBox::NoButtons);
  repeats_->setAccessibleName(tr("Repeats"));
  export_ = new QPushButton(tr("Export"), footer);
  run_ = new QPushButton(tr("Run"), footer);
  run_->setMinimumWidth(106);  // fits its longest text
  row->addWidget(new QLabel(tr("Repeats"), footer));
  row->addWidget(repeats_);
  row->addStretch(1);
  row->addWidget(export_);
  row->addWidget(run_);
  column->addWidget(state_);
  column->addWidget(progress_);
  column->addLayout(row);
  connect(run_, &QPushButton::clicked, this, [this] { running() ? stop() : run(); });
  connect(export_, &QPushButton::clicked, this, &ExperimentsTab::chooseExport);
  connect(repeats_, &QSpinBox::valueChanged, this, [this] { showState(); });
  return footer;
}

QWidget* ExperimentsTab::buildRight() {
  auto* picture = picture_ = new Pane(tr("Result"), this);
  picture->legend()->hide();
  chart_ = new ExperimentChart(picture);
  auto* body = new QWidget(picture);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(chart_, 1);
  empty_ = label(body, ui_font(12.5), {.plain = true});
  empty_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  empty_->setMargin(12);
  column->addWidget(empty_, 1);
  column->addWidget(ending_ = buildEnding(body));
  picture->setBody(body);
  outcome_ = option_button(tr("What is shown"), picture);
  outcome_->setText(info(Outcome::StepTime).name + ", µs");
  auto* menu = new QMenu(outcome_);
  for (const OutcomeInfo& o : outcomes()) {
    const QString text = o.unit.isEmpty() ? o.name : o.name + ", " + o.unit;
    menu->addAction(text, this, [this, which = o.outcome] { showOutcome(which); });
  }
  outcome_->setMenu(menu);
  view_ = option_button(tr("How it is shown"), picture);
  view_->setText(tr("Bars"));
  auto* views = new QMenu(view_);
  for (const auto& [view, text] : {std::pair{ExperimentView::Bars, tr("Bars")},
                                   {ExperimentView::HeatMap, tr("Heat map")},
                                   {ExperimentView::Lines, tr("Against size")},
                                   {ExperimentView::Parallel, tr("Parallel coordinates")}}) {
    QAction* action = views->addAction(
        text, this, [this, which = view, name = text] { chart_->setView(which); view_->setText(name); });
    action->setData(static_cast<int>(view));
  }
  view_->setMenu(views);
  picture->addOption(outcome_);
  picture->addOption(view_);
  auto* numbers = new Pane(tr("Numbers"), this);
  numbers_ = numbers;
  numbers->legend()->hide();
  table_ = new TrialTable(numbers);
  numbers->setBody(table_);
  connect(table_, &TrialTable::noteChanged, numbers,
          [numbers](const QString& note) { numbers->setTitle(tr("Numbers"), note); });
  connect(table_, &QTableWidget::cellDoubleClicked, this, &ExperimentsTab::openTrial);
  auto* split = new QSplitter(Qt::Vertical, this);
  split->setHandleWidth(5);
  split->addWidget(picture);
  split->addWidget(numbers);
  split->setSizes({480, 320});
  return split;
}

QWidget* ExperimentsTab::buildEnding(QWidget* parent) {
  auto* ending = new QWidget(parent);
  auto* row = new QHBoxLayout(ending);
  row->setContentsMargins(12, 6, 10, 8);
  row->setSpacing(12);
  conclusion_ = label(ending, ui_font(12.5, 500), {.selectable = true});
  next_ = small_button({}, ending);
  next_->setAccessibleName(tr("Next experiment"));
  connect(next_, &QPushButton::clicked, this, [this] { list_->selectNext(); });
  row->addWidget(conclusion_, 1);
  row->addWidget(next_);
  return ending;
}

QString ExperimentsTab::conclusion() const { return ending_->isHidden() ? QString() : conclusion_->text(); }

// Each machine has its own results.
QString ExperimentsTab::folderOf(const ExperimentSpec& spec) const {
  const std::string plain = file_name_of(spec.name);  // a name may come from another machine
  const QString name = plain.empty() ? QStringLiteral("experiment") : QString::fromStdString(plain);
  if (!session_->machine()) return QDir(folder_).filePath(name);
  return QDir(folder_ + "/on-" + QString::fromStdString(file_name_of(session_->machine()->place().toStdString()))).filePath(name);
}

// While an experiment runs, the user may choose another machine.
QString ExperimentsTab::shownFolder() const { return running() ? job_->folder() : folderOf(spec_); }

bool ExperimentsTab::cuda() const { return session_->machine() ? session_->machine()->hasGpu() : device_info().cuda; }

void ExperimentsTab::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  list_->setCuda(cuda());
  list_->fill();
  showState();
}

bool ExperimentsTab::add(const ExperimentSpec& spec) {
  if (running()) {
    emit said(tr("Stop the experiment first."), true);
    return false;
  }
  const QString path = list_->keep(spec);
  return !path.isEmpty() && open(path);
}

void ExperimentsTab::makeNew() {
  ExperimentDialog dialog(base_ ? base_() : RunSpec{}, this);
  if (dialog.exec() == QDialog::Accepted) add(dialog.spec());
}

bool ExperimentsTab::open(const QString& path) {
  try {
    const ExperimentSpec spec = load_experiment(path.toStdString());
    if (running()) {
      emit said(tr("Stop the experiment first."), true);
      return true;
    }
    list_->select(QString::fromStdString(spec.title), path);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void ExperimentsTab::chosen() {
  if (running() || list_->path().isEmpty()) return;
  known_ = false;
  try {
    spec_ = load_experiment(list_->path().toStdString());
    trials_ = trials_of(spec_, cuda());
    known_ = true;
  } catch (const std::exception& problem) {
    state_->setText(QString::fromUtf8(problem.what()));
  }
  title_->setText(QString::fromStdString(spec_.title.empty() ? spec_.name : spec_.title));
  const QString text = QString::fromStdString(spec_.text);  // what varies, then how and why
  text_->setTextFormat(Qt::PlainText);
  text_->setText(text.section("\n\n", 0, 0));
  rest_->setTextFormat(Qt::PlainText);
  rest_->setText(text.section("\n\n", 1));
  more_->setVisible(!rest_->text().isEmpty());
  showRest(false);
  expect_->setText(spec_.expect.empty()
                       ? QString()
                       : tr("<b>Expected</b> %1").arg(QString::fromStdString(spec_.expect).toHtmlEscaped()));
  showOutcome(outcome_of(spec_.look_at));
  readResult();
  repeats_->setValue(result_.spec.repeats);
  showResult();
}

void ExperimentsTab::showRest(bool shown) {
  rest_->setVisible(shown);
  more_->setText(shown ? tr("Less") : tr("More"));
}

void ExperimentsTab::showOutcome(Outcome outcome) {
  chart_->setOutcome(outcome);
  table_->setOutcome(outcome);
  const OutcomeInfo& about = info(outcome);
  outcome_->setText(about.unit.isEmpty() ? about.name : about.name + ", " + about.unit);
}

// Shows earlier results in the folder at once, otherwise the choices without numbers.
void ExperimentsTab::readResult() {
  result_ = {};
  result_.spec = spec_;
  for (const Trial& trial : trials_) result_.trials.push_back({trial, {}});
  const QString folder = shownFolder();
  if (!known_ || !QFileInfo::exists(folder + "/results.jsonl")) return;
  try {
    ExperimentResult read = read_experiment(folder.toStdString(), cuda());
    if (read.trials.size() == trials_.size()) result_ = std::move(read);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

void ExperimentsTab::run() {
  if (!known_ || running()) return;
  if (session_->busy()) return emit said(tr("Stop the training first (Run › Stop)."), true);
  if (result_.complete && !wantsMore() && !keepEarlier())
    return emit said(tr("Nothing was trained: the earlier result in %1 cannot be renamed.").arg(folderOf(spec_)), true);
  spec_.repeats = repeats_->value();
  readResult();  // before the thread writes there
  result_.spec.repeats = spec_.repeats;
  try {
    if (session_->machine())
      job_->startThere(session_->machine(), spec_, folderOf(spec_));
    else
      job_->start(spec_, folderOf(spec_));
    session_->hold(this, tr("Stop the experiment first (Experiments › Stop)."));
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
  showResult();
}

bool ExperimentsTab::follow(const RemoteJobInfo& job) {
  if (running() || session_->busy() || !session_->machine() || !session_->held().isEmpty()) return false;
  try {
    const nlohmann::json parsed = parse_json(job.text, "The experiment");
    const JsonInput experiment = JsonInput(parsed, "").required("experiment");
    if (experiment.at("preset").there()) experiment.at("preset").refuse("no file of this machine");
    const ExperimentSpec spec = experiment_from_json(experiment.value());
    const std::vector<Trial> trials = trials_of(spec, cuda());
    list_->select(spec);
    spec_ = spec, trials_ = trials, known_ = true;
    job_->follow(session_->machine(), job.name, spec_, folderOf(spec_));
    session_->hold(this, tr("Stop the experiment first (Experiments › Stop)."));
    readResult();
    result_.spec.repeats = spec_.repeats;
    showResult();
    return true;
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
    return false;
  }
}

// True if more repeats are asked for than a complete result has: it goes on too.
bool ExperimentsTab::wantsMore() const { return repeats_->value() > result_.spec.repeats; }

// Renames a complete result instead of deleting it. Returns false if that is not possible.
bool ExperimentsTab::keepEarlier() {
  const QString folder = folderOf(spec_);
  return !QFileInfo::exists(folder) || QDir().rename(folder, folder + QDateTime::currentDateTime().toString("-yyyyMMdd-HHmmss"));
}

void ExperimentsTab::ended(const QString& problem) {
  session_->hold(this, {});
  if (job_->folder() == folderOf(spec_)) {
    readResult();
    showResult();
  } else {  // another machine was chosen meanwhile
    list_->setCuda(cuda());
    chosen();
  }
  if (!problem.isEmpty()) emit said(problem, true);
}

void ExperimentsTab::showResult() {
  chart_->setResult(result_);
  const std::string sentence = measured_text(result_);
  ending_->setVisible(!sentence.empty());
  conclusion_->setText(QString::fromStdString(sentence));
  next_->setText(tr("Try next: %1").arg(list_->nextTitle()));
  next_->setVisible(result_.complete && !list_->nextTitle().isEmpty());
  table_->setResult(result_);
  QStringList notes{chart_->hasNumbers() ? tr("median of the repeats · line: least to most") : QString(), skipped_text(trials_, cuda())};
  notes.removeAll(QString());
  picture_->setTitle(tr("Result"), notes.join(" · "));
  numbers_->setVisible(chart_->hasNumbers());
  const bool drawn = chart_->hasNumbers() || running();
  for (QWidget* part : std::initializer_list<QWidget*>{chart_, outcome_, view_}) part->setVisible(drawn);
  empty_->setVisible(!drawn);
  showState();
}

// What one gets, and of which choices.
QString ExperimentsTab::emptyText() const {
  constexpr qsizetype kMostNamed = 24;
  QStringList names;
  for (const Trial& trial : trials_)
    if (trial.skipped.empty()) names << QString::fromStdString(trial.label);
  if (names.isEmpty()) return {};
  const QString what = tr("Run trains %1 combinations, %2 times each. You get the %3 of each one as a bar with its spread, and all numbers in a table.")
                           .arg(names.size()).arg(repeats_->value()).arg(info(outcome_of(spec_.look_at)).name.toLower());
  const QString more = names.size() > kMostNamed ? QStringLiteral("\n…") : QString();
  return what + QStringLiteral("\n\n") + names.mid(0, kMostNamed).join('\n') + more;
}

void ExperimentsTab::showState() {
  const bool busy = running();
  int done = 0;
  for (const TrialResult& t : result_.trials) done += static_cast<int>(t.runs.size());
  const int of = known_ ? trainings(result_.spec, trials_) : 0;
  const QString whose = list_->own() ? tr("Your own") : tr("Shipped with Warpsight");
  const auto here = std::ranges::count_if(trials_, [](const Trial& trial) { return trial.skipped.empty(); });
  const QString choices = here == static_cast<std::ptrdiff_t>(trials_.size()) ? tr("%1 combinations").arg(here) : tr("%1 of %2 combinations run here").arg(here).arg(trials_.size());
  size_->setText(known_ ? tr("%1 · %2: %3 trainings in shuffled order").arg(whose, choices).arg(of) : QString());
  const QString label = busy                                            ? tr("Stop")
                         : result_.complete && done > 0 && !wantsMore() ? tr("Run again")
                         : done > 0                                     ? tr("Go on")
                                                                        : tr("Run");
  run_->setText(label);
  run_->setIcon(theme_icon(busy ? "stop" : "play", Qt::white));
  run_->setEnabled(known_ && (busy || of > 0));
  list_->setEnabled(!busy);
  repeats_->setEnabled(!busy);
  export_->setEnabled(done > 0);
  empty_->setText(known_ ? emptyText() : QString());
  progress_->setVisible(busy);
  progress_->setRange(0, std::max(1, of));
  progress_->setValue(done);
  for (auto* action : view_->menu()->actions()) {
    const auto view = static_cast<ExperimentView>(action->data().toInt());
    action->setEnabled(chart_->allows(view));
    if (view == chart_->view()) view_->setText(action->text());
  }
  if (busy) return;
  if (of == 0 && known_)
    state_->setText(tr("None of its combinations can run on %1.").arg(session_->machine() ? session_->machine()->place() : tr("this machine")));
  else if (done == 0)
    state_->setText(session_->machine() ? tr("Not run on %1 yet.").arg(session_->machine()->place()) : tr("Not run here yet."));
  else
    state_->setText(result_.complete
                        ? tr("Complete: %1 trainings on %2").arg(done).arg(QString::fromStdString(result_.device))
                        : tr("%1 of %2 done. Press Go on for the rest.").arg(done).arg(of));
}

void ExperimentsTab::openTrial(int row) {
  if (row < 0 || row >= static_cast<int>(result_.trials.size())) return;
  for (const TrialRun& run : result_.trials[static_cast<size_t>(row)].runs)
    if (!run.file.empty()) return emit openWanted(QDir(shownFolder()).filePath(QString::fromStdString(run.file)));
}

bool ExperimentsTab::exportTo(const QString& path) {
  const QString caption = title_->text() + "\n" + QString::fromStdString(result_.device) + " · " +
                          tr("median of the repeats, line: least to most") + "\n" +
                          QString::fromStdString(measured_text(result_));
  try {
    write_chart({"experiment", caption, chart_->size(),
                 [this](QPainter& painter, const QRectF& area) { chart_->render(painter, area); },
                 [this] { return QByteArray::fromStdString(experiment_csv(result_)); }},
                path);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
    return false;
  }
  emit said(written_text(path), false);
  return true;
}

void ExperimentsTab::chooseExport() {
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Export the result"), QString::fromStdString(spec_.name) + ".csv",
                                   tr("Table (*.csv);;Chart (*.svg *.png *.pdf)"));
  if (!path.isEmpty()) exportTo(path);
}

}  // namespace ws::app
