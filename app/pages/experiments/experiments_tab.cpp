#include "app/pages/experiments/experiments_tab.h"

#include <QDateTime>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QListWidget>
#include <QMenu>
#include <QPainter>
#include <QProgressBar>
#include <QPushButton>
#include <QRegularExpression>
#include <QSpinBox>
#include <QTableWidget>

#include "app/pages/experiments/experiment_dialog.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/widgets/chart_file.h"
#include "app/core/report/report.h"
#include "app/workspace/training_session.h"
#include "engine/executor/executor.h"
#include "profiling/base/whole_file.h"

#include <nlohmann/json.hpp>

namespace ws::app {
namespace {

enum Column { kChoice, kTime, kSpread, kGain, kThroughput, kFirstLoss, kLastLoss, kAccuracy, kCalls, kPeak, kRuns };

constexpr int kOwnRole = Qt::UserRole + 1;

QTableWidgetItem* cell(const QString& text, bool number) {
  auto* made = new QTableWidgetItem(text);
  if (number) made->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  return made;
}

QString number(const TrialResult& trial, Outcome outcome) {
  const auto m = measured(trial, outcome);
  return m ? outcome_text(outcome, m->median) : QStringLiteral("–");
}

}  // namespace

QString ExperimentsTab::folderOf(const ExperimentSpec& spec) const {
  return QDir(folder_).filePath(QString::fromStdString(spec.name));
}

void ExperimentsTab::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (list_->count() == 0) fillList();
  showState();
}

// One's own may have the title of a shipped one: they stand apart, each kind under its name.
void ExperimentsTab::fillList() {
  addHeading(tr("Shipped with Warpscope"));
  try {
    for (const ExperimentInfo& shipped : shipped_experiments())
      add(QString::fromStdString(shipped.title), QString::fromStdString(shipped.path), false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
  for (const QFileInfo& own : QDir(ownFolder()).entryInfoList({"*.json"}, QDir::Files, QDir::Name)) try {
      const ExperimentSpec spec = load_experiment(own.absoluteFilePath().toStdString());
      add(QString::fromStdString(spec.title), own.absoluteFilePath(), true);
    } catch (const std::exception& problem) {
      emit said(QString::fromUtf8(problem.what()), true);
    }
  if (list_->count() > 1) list_->setCurrentRow(1);
}

bool ExperimentsTab::add(const ExperimentSpec& spec) {
  if (running()) return emit said(tr("An experiment is training: stop it first."), true), false;
  QString name = QString::fromStdString(spec.title).toLower().replace(QRegularExpression("[^a-z0-9]+"), "-");
  if (name.isEmpty() || name == "-") name = "experiment";
  QDir().mkpath(ownFolder());
  QString path = ownFolder() + "/" + name + ".json";
  for (int i = 2; QFileInfo::exists(path); ++i) path = QString("%1/%2-%3.json").arg(ownFolder(), name).arg(i);
  ExperimentSpec kept = spec;
  kept.name = QFileInfo(path).completeBaseName().toStdString();
  if (kept.title.empty()) kept.title = kept.name;
  try {
    prof::write_whole(path.toStdString(), to_json(kept).dump(2) + "\n");
  } catch (const std::exception& problem) {
    return emit said(QString::fromUtf8(problem.what()), true), false;
  }
  return open(path);
}

void ExperimentsTab::makeNew() {
  ExperimentDialog dialog(base_ ? base_() : RunSpec{}, this);
  if (dialog.exec() == QDialog::Accepted) add(dialog.spec());
}

void ExperimentsTab::addHeading(const QString& text) {
  auto* item = new QListWidgetItem(text, list_);
  item->setFlags(Qt::NoItemFlags);
  item->setFont(ui_font(11, 600));
}

void ExperimentsTab::add(const QString& title, const QString& path, bool own) {
  const bool first_own = own && (list_->count() == 0 || !list_->item(list_->count() - 1)->data(kOwnRole).toBool());
  if (first_own) addHeading(tr("Your own"));
  auto* item = new QListWidgetItem(title.isEmpty() ? QFileInfo(path).completeBaseName() : title, list_);
  item->setData(Qt::UserRole, path);
  item->setData(kOwnRole, own);
  item->setToolTip((own ? tr("Your own: %1") : tr("Shipped with Warpscope: %1")).arg(path));
}

bool ExperimentsTab::open(const QString& path) {
  try {
    const ExperimentSpec spec = load_experiment(path.toStdString());
    if (running()) return emit said(tr("An experiment is training: stop it first."), true), true;
    if (list_->count() == 0) fillList();
    const QFileInfo wanted(path);
    for (int row = 0; row < list_->count(); ++row)
      if (const QString known = list_->item(row)->data(Qt::UserRole).toString();
          known == path || (!known.isEmpty() && QFileInfo(known) == wanted))
        return list_->setCurrentRow(row), true;
    add(QString::fromStdString(spec.title), path, true);
    list_->setCurrentRow(list_->count() - 1);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void ExperimentsTab::chosen() {
  const QListWidgetItem* item = list_->currentItem();
  if (!item || running() || item->data(Qt::UserRole).toString().isEmpty()) return;
  known_ = false;
  try {
    spec_ = load_experiment(item->data(Qt::UserRole).toString().toStdString());
    trials_ = trials_of(spec_, device_info().cuda);
    known_ = true;
  } catch (const std::exception& problem) {
    state_->setText(QString::fromUtf8(problem.what()));
  }
  title_->setText(QString::fromStdString(spec_.title.empty() ? spec_.name : spec_.title));
  text_->setTextFormat(Qt::RichText);
  text_->setText(QString::fromStdString(spec_.text).toHtmlEscaped().replace("\n\n", "<br><br>"));
  expect_->setText(spec_.expect.empty()
                       ? QString()
                       : tr("<b>Expected</b> %1").arg(QString::fromStdString(spec_.expect).toHtmlEscaped()));
  showOutcome(outcome_of(spec_.look_at));
  readResult();
  repeats_->setValue(result_.spec.repeats);
  showResult();
}

void ExperimentsTab::showOutcome(Outcome outcome) {
  chart_->setOutcome(outcome);
  const OutcomeInfo& about = info(outcome);
  outcome_->setText(about.unit.isEmpty() ? about.name : about.name + ", " + about.unit);
}

// What an earlier evening left in the folder stands there at once; else the choices, without numbers.
void ExperimentsTab::readResult() {
  result_ = {};
  result_.spec = spec_;
  for (const Trial& trial : trials_) result_.trials.push_back({trial, {}});
  const QString folder = folderOf(spec_);
  if (!known_ || !QFileInfo::exists(folder + "/results.jsonl")) return;
  try {
    ExperimentResult read = read_experiment(folder.toStdString());
    if (read.trials.size() == trials_.size()) result_ = std::move(read);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

void ExperimentsTab::run() {
  if (!known_ || running()) return;
  if (session_->busy()) return emit said(tr("A run is training: stop it first."), true);
  if (result_.complete && !wantsMore()) keepEarlier();
  spec_.repeats = repeats_->value();
  session_->hold(tr("An experiment is training: stop it under Experiments first."));
  readResult();  // before the thread writes there
  result_.spec.repeats = spec_.repeats;
  job_->start(spec_, folderOf(spec_));
  showResult();
}

// More repeats than are there: a complete result goes on too.
bool ExperimentsTab::wantsMore() const { return repeats_->value() > result_.spec.repeats; }

// A complete result is put aside, not thrown away.
void ExperimentsTab::keepEarlier() {
  const QString folder = folderOf(spec_);
  QDir().rename(folder, folder + QDateTime::currentDateTime().toString("-yyyyMMdd-HHmmss"));
}

void ExperimentsTab::ended(const QString& problem) {
  session_->hold({});
  readResult();
  showResult();
  if (!problem.isEmpty()) emit said(problem, true);
}

void ExperimentsTab::showResult() {
  chart_->setResult(result_);
  const std::string sentence = measured_text(result_);
  measured_->setVisible(!sentence.empty());
  measured_->setText(tr("<b>Measured on this machine</b> %1").arg(QString::fromStdString(sentence).toHtmlEscaped()));
  double first = 0;
  table_->clearSpans();
  table_->setRowCount(static_cast<int>(result_.trials.size()));
  for (int row = 0; row < table_->rowCount(); ++row) {
    const TrialResult& trial = result_.trials[static_cast<size_t>(row)];
    if (const auto time = measured(trial, Outcome::StepTime); time && first == 0) first = time->median;
    fillRow(row, trial, first);
  }
  fitColumns();
  showState();
}

void ExperimentsTab::fillRow(int row, const TrialResult& trial, double first) {
  table_->setItem(row, kChoice, cell(QString::fromStdString(trial.trial.label), false));
  table_->item(row, kChoice)->setToolTip(QString::fromStdString(trial.trial.label));
  const QString state = state_of(trial);
  if (!state.isEmpty()) {
    table_->setItem(row, kTime, cell(state, false));
    table_->item(row, kTime)->setToolTip(state);
    table_->setSpan(row, kTime, 1, kRuns);
    return;
  }
  const auto time = measured(trial, Outcome::StepTime);
  table_->setItem(row, kTime, cell(number(trial, Outcome::StepTime), true));
  const QString spread =
      time && time->runs > 1 ? fixed_text(time->least, 1) + " – " + fixed_text(time->most, 1) : QStringLiteral("–");
  table_->setItem(row, kSpread, cell(spread, true));
  table_->item(row, kTime)->setToolTip(tr("Least to most of %1 runs: %2 µs").arg(trial.runs.size()).arg(spread));
  table_->setItem(
      row, kGain,
      cell(time && time->median > 0 ? fixed_text(first / time->median, 2) + "×" : QStringLiteral("–"), true));
  const std::pair<Column, Outcome> rest[] = {{kThroughput, Outcome::Throughput}, {kFirstLoss, Outcome::FirstLoss},
                                             {kLastLoss, Outcome::FinalLoss},    {kAccuracy, Outcome::Accuracy},
                                             {kCalls, Outcome::DriverCalls},     {kPeak, Outcome::Peak}};
  for (const auto& [column, outcome] : rest) table_->setItem(row, column, cell(number(trial, outcome), true));
  table_->setItem(row, kRuns, cell(QString::number(trial.runs.size()), true));
  table_->item(row, kChoice)->setToolTip(allNumbers(row));
}

// Also those whose column has no room.
QString ExperimentsTab::allNumbers(int row) const {
  QStringList lines{table_->item(row, kChoice)->text()};
  for (int column = kTime; column <= kRuns; ++column)
    lines << columnTitle(column, false) + ": " + table_->item(row, column)->text();
  return lines.join('\n');
}

void ExperimentsTab::showState() {
  const bool busy = running();
  int done = 0;
  for (const TrialResult& t : result_.trials) done += static_cast<int>(t.runs.size());
  const int of = known_ ? trainings(result_.spec, trials_) : 0;
  const QListWidgetItem* item = list_->currentItem();
  const QString whose = item && item->data(kOwnRole).toBool() ? tr("Your own") : tr("Shipped with Warpscope");
  size_->setText(known_
                     ? tr("%1 · %2 choices, %3 trainings here in shuffled order").arg(whose).arg(trials_.size()).arg(of)
                     : QString());
  run_->setText(busy                                           ? tr("Stop")
                : result_.complete && done > 0 && !wantsMore() ? tr("Run again")
                : done > 0                                     ? tr("Go on")
                                                               : tr("Run"));
  run_->setIcon(theme_icon(busy ? "stop" : "play", Qt::white));
  run_->setEnabled(known_ && (busy || of > 0));
  list_->setEnabled(!busy);
  repeats_->setEnabled(!busy);
  export_->setEnabled(done > 0);
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
    state_->setText(tr("None of its choices can run on this machine."));
  else if (done == 0)
    state_->setText(tr("Not run here yet."));
  else
    state_->setText(result_.complete
                        ? tr("Complete: %1 trainings on %2").arg(done).arg(QString::fromStdString(result_.device))
                        : tr("%1 of %2 done; Go on takes up the rest.").arg(done).arg(of));
}

void ExperimentsTab::openTrial(int row) {
  if (row < 0 || row >= static_cast<int>(result_.trials.size())) return;
  for (const TrialRun& run : result_.trials[static_cast<size_t>(row)].runs)
    if (!run.file.empty()) return emit openWanted(QDir(folderOf(spec_)).filePath(QString::fromStdString(run.file)));
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
  emit said(tr("Written: %1").arg(QFileInfo(path).fileName()), false);
  return true;
}

void ExperimentsTab::chooseExport() {
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Export the result"), QString::fromStdString(spec_.name) + ".csv",
                                   tr("Table (*.csv);;Chart (*.svg *.png *.pdf)"));
  if (!path.isEmpty()) exportTo(path);
}

}  // namespace ws::app
