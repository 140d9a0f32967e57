#include "app/pages/lab/lab_tab.h"
#include "app/text/units.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QPushButton>
#include <QRegularExpression>
#include <nlohmann/json.hpp>

#include "app/core/lab/recorded_lab.h"
#include "app/core/lab/shipped_labs.h"
#include "app/pages/lab/lab_export.h"
#include "app/widgets/labels.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/remote_machine.h"
#include "app/workspace/run.h"
#include "engine/devices/devices.h"
#include "profiling/base/json_input.h"

namespace ws::app {
namespace {

QString fresh_path(const QString& folder, const lab::LabSpec& spec) {
  if (folder.isEmpty() || !QDir().mkpath(folder)) return {};
  const QString stamp = QDateTime::currentDateTime().toString("yyyyMMdd-HHmmss-zzz");
  return folder + "/lab-" + QString::fromStdString(std::string(to_string(spec.operation))) + "-" + stamp + ".wsrun";
}

// "PyTorch 2.11.0+cu130" is too long for a label.
QString short_source(const QString& source) {
  static const QRegularExpression version("^(.*\\d+\\.\\d+)\\.\\S*$");
  const auto match = version.match(source);
  return match.hasMatch() ? match.captured(1) : source;
}

}  // namespace

LabTab::LabTab(QWidget* parent)
    : QWidget(parent),
      job_(new LabJob(this)),
      torch_(new LabTorch(this)),
      form_(new LabForm),
      results_(new LabResults) {
  auto* panel = new QWidget(this);
  panel->setObjectName("panel");
  panel->setFixedWidth(300);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(form_, 1);
  column->addWidget(buildFooter());
  auto* split = new QHBoxLayout(this);
  split->setContentsMargins(0, 0, 0, 0);
  split->setSpacing(5);
  split->addWidget(panel);
  split->addWidget(results_, 1);
  connect(job_, &LabJob::changed, this, &LabTab::showResult);
  connect(job_, &LabJob::progressed, this, [this](int done, int of, const QString& what) {
    state_->setText(tr("%1 of %2: %3").arg(done).arg(of).arg(what));
  });
  connect(job_, &LabJob::ended, this, &LabTab::jobEnded);
  connect(torch_, &LabTorch::said, this, [this](const QString& line) { say(tr("PyTorch: %1").arg(line)); });
  connect(torch_, &LabTorch::measured, this, [this](const lab::LabResult& result) {
    torch_note_ = QString::fromStdString(result.message);
    layOver(result, tr("PyTorch"));
  });
  connect(torch_, &LabTorch::ended, this, &LabTab::torchEnded);
  connect(form_, &LabForm::said, this, &LabTab::say);
  connect(form_, &LabForm::clockChosen, results_, &LabResults::setClock);
  connect(form_, &LabForm::pageChosen, this, [this](const QString& text) {
    results_->setPage(text);
    showResult();
  });
  connect(form_, &LabForm::prepared, this, [this] { results_->setWhyNoGpu(form_->whyNoGpu()); });
  connect(form_, &LabForm::operationSet, this, &LabTab::showResult);
  connect(results_, &LabResults::picked, this, &LabTab::openPoint);
  connect(results_, &LabResults::torchWanted, this, &LabTab::runTorch);
  connect(results_, &LabResults::overlayWanted, this, &LabTab::chooseOverlay);
  connect(results_, &LabResults::noOverlaysWanted, this, &LabTab::removeOverlays);
}

QWidget* LabTab::buildFooter() {
  auto* footer = new QWidget(this);
  style_ground(*footer, "footer");
  auto* row = new QHBoxLayout(footer);
  row->setContentsMargins(10, 6, 10, 6);
  state_ = label(footer, ui_font(11), {.plain = true});  // other machines print here
  state_->setMinimumHeight(44);
  run_ = new QPushButton(tr("Measure"), footer);
  export_ = new QPushButton(tr("Export"), footer);
  export_->setEnabled(false);
  row->addWidget(state_, 1);
  row->addWidget(export_);
  row->addWidget(run_);
  connect(run_, &QPushButton::clicked, this, [this] { job_->running() ? job_->cancel() : run(); });
  connect(export_, &QPushButton::clicked, this, &LabTab::chooseExport);
  return footer;
}

void LabTab::setFolder(const QString& folder) {
  folder_ = folder;
  LabJob::recover(folder);
}

std::vector<LabShown> LabTab::shown() const {
  std::vector<LabShown> all = results();
  const auto shipped = all.empty() ? form_->shipped() : std::nullopt;
  auto result = shipped ? measured_lab(*shipped) : std::nullopt;
  if (!result) return all;
  const QString measured = QString::fromStdString(read_lab_file(shipped->path).value("measured", std::string()));
  all.push_back({std::move(*result), {}, {}, QString::fromStdString(shipped->title) + ". " + measured, form_->ownChoices()});
  return all;
}

std::vector<LabShown> LabTab::results() const {
  std::vector<LabShown> all;
  if (job_->running() || !job_->result().points.empty()) all.push_back({job_->result(), {}, job_->path()});
  for (const auto* more : {&ticked_, &opened_, &before_})
    for (const LabShown& one : *more)
      if (one.path.isEmpty() || one.path != job_->path()) all.push_back(one);
  return all;
}

void LabTab::stop() {
  job_->cancel();
  torch_->stop();
}

void LabTab::run() {
  form_->prepare();
  if (!elsewhere_.isEmpty()) return say(elsewhere_);
  if (torch_->running()) return say(tr("Stop PyTorch first."));
  try {
    const lab::LabSpec wanted = spec();
    before_.clear();
    if (!job_->result().points.empty() && job_->result().spec.operation == wanted.operation)
      before_ = {{job_->result(), tr("before"), job_->path()}};
    const QString path = form_->recordsPoints() ? fresh_path(folder_, wanted) : QString();
    job_->start(wanted, path);
    emit busyChanged(true);
    run_->setText(tr("Stop"));
    export_->setEnabled(false);
    say(form_->whyNoGpu().isEmpty() ? tr("Measuring the card's ceilings") : tr("Starting"));
    showResult();
  } catch (const Failure& failure) {
    say(QString::fromUtf8(failure.what()));
  }
}

void LabTab::setMachine(const std::shared_ptr<RemoteMachine>& machine) {
  job_->setMachine(machine);
  torch_->setMachine(machine);
  if (machine)
    form_->setGpu(machine->hasGpu(), tr("%1 has no GPU").arg(machine->place()));
  else
    form_->setThisMachine();
  results_->setWhyNoGpu(form_->whyNoGpu());
}

bool LabTab::follow(const RemoteJobInfo& job) {
  if (running() || !elsewhere_.isEmpty()) return false;
  try {
    const nlohmann::json parsed = parse_json(job.text, "The sweep");
    const JsonInput in(parsed, "");
    const lab::LabSpec wanted = lab::lab_spec_from_json(in.required("lab").value());
    const bool torch = in.at("torch").flag(false);
    form_->prepare();
    if (torch) {
      torch_->follow(job.name);
      results_->setTorchRunning(true);
    } else {
      setSpec(wanted);
      job_->follow(job.name, wanted, in.at("record").flag(true) ? fresh_path(folder_, wanted) : QString());
      run_->setText(tr("Stop"));
    }
    emit busyChanged(true);
    showResult();
    return true;
  } catch (const std::exception& problem) {
    say(QString::fromUtf8(problem.what()));
    return false;
  }
}

QString LabTab::place() const { return job_->place().isEmpty() ? torch_->place() : job_->place(); }

void LabTab::leave() {
  job_->leave();
  torch_->leave();
}

void LabTab::jobEnded(const QString& problem) {
  run_->setText(tr("Measure"));
  emit busyChanged(false);
  const lab::LabResult& r = job_->result();
  const QString recorded = job_->path().isEmpty() ? QString() : tr(" · click a point for its timeline");
  const QString points = (r.cancelled ? tr("Stopped; %1 points kept") : tr("%1 points")).arg(r.points.size());
  say(problem.isEmpty() ? points + recorded : problem);
  showResult();
}

void LabTab::torchEnded(const QString& problem) {
  results_->setTorchRunning(false);
  emit busyChanged(false);
  const QStringList done{tr("PyTorch's curves are drawn over ours."), torch_note_};
  say(problem.isEmpty() ? done.join(' ').trimmed() : problem);
}

// Repeats the last sweep, or runs the current choices if there is none.
void LabTab::runTorch() {
  if (torch_->running()) return torch_->stop();
  if (!elsewhere_.isEmpty()) return say(elsewhere_);
  if (job_->running()) return say(tr("Stop the sweep first (Lab › Stop)."));
  try {
    const lab::LabSpec wanted = job_->result().points.empty() ? spec() : job_->result().spec;
    torch_->start(wanted);
  } catch (const Failure& failure) {
    return say(QString::fromUtf8(failure.what()));
  }
  emit busyChanged(true);
  results_->setTorchRunning(true);
  say(tr("Starting PyTorch."));
}

void LabTab::showResult() {
  const std::vector<LabShown> all = shown();
  results_->setShown(all, job_->running());
  export_->setEnabled(!all.empty() && !job_->running());
}

void LabTab::openPoint(const LabPick& pick) {
  const auto all = shown();
  if (pick.shown >= all.size()) return;
  const LabShown& from = all[pick.shown];
  if (job_->running() && from.path == job_->path()) return say(tr("Timelines open when the sweep is over."));
  for (const lab::LabPoint& p : from.result.points)
    if (p.way == pick.way && p.size == pick.size) {
      if (from.path.isEmpty() || p.recorded.steps == 0)
        return say(tr("This point has no timeline: it was not recorded."));
      return emit pointWanted(from.path, p.recorded);
    }
}

bool LabTab::openResult(const QString& path) {
  try {
    const nlohmann::json object = read_json(path.toStdString());
    if (!object.is_object() || !object.contains("points")) return false;
    layOver(lab::lab_result_from_json(object), QFileInfo(path).completeBaseName());
  } catch (const Failure& failure) {
    say(QString::fromUtf8(failure.what()));
    return false;
  }
  return true;
}

// `fallback`: the name of a result without a source. The form has the choices of the sweep that is alone.
void LabTab::layOver(lab::LabResult result, const QString& fallback) {
  const QString source = QString::fromStdString(result.source);
  if (results().empty()) setSpec(result.spec);
  opened_.push_back({std::move(result), source.isEmpty() ? fallback : short_source(source), {}});
  showResult();
}

void LabTab::showRuns(const std::vector<Run*>& runs) {
  std::vector<LabShown> sweeps;
  for (const Run* run : runs) {
    if (run->origin != RunOrigin::Imported || run->path.isEmpty()) continue;
    const auto [entry, fresh] = known_.try_emplace(run->path);
    try {
      if (fresh)
        if (auto result = read_lab(run->path.toStdString()))
          entry->second = LabShown{std::move(*result), run->created.toString("d MMM HH:mm"), run->path};
    } catch (const std::exception& problem) {
      say(QString::fromUtf8(problem.what()));
    }
    if (entry->second) sweeps.push_back(*entry->second);
  }
  const auto same = [](const LabShown& a, const LabShown& b) { return a.path == b.path; };
  if (std::ranges::equal(sweeps, ticked_, same)) return;
  ticked_ = std::move(sweeps);
  if (!ticked_.empty() && job_->result().points.empty() && !job_->running()) setSpec(ticked_[0].result.spec);
  showResult();
}

void LabTab::exportTo(const QString& path) {
  const auto all = shown();
  if (all.empty()) return;
  try {
    write_chart(lab_picture(*chart(), all[0].result), path);
    say(written_text(path));
  } catch (const Failure& failure) {
    say(QString::fromUtf8(failure.what()));
  }
}

void LabTab::chooseExport() {
  const auto all = shown();
  if (all.empty()) return;
  try {
    if (const QString done = ask_and_write(this, lab_picture(*chart(), all[0].result)); !done.isEmpty()) say(done);
  } catch (const Failure& failure) {
    say(QString::fromUtf8(failure.what()));
  }
}

void LabTab::removeOverlays() {
  opened_.clear(), ticked_.clear(), before_.clear();
  showResult();
}

void LabTab::chooseOverlay() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Add a result to this chart"), folder_,
                                                    tr("Results of the laboratory or of PyTorch's script (*.json)"));
  if (!path.isEmpty() && !openResult(path))
    say(tr("%1 is not a laboratory result. Choose a sweep saved as .json.").arg(QFileInfo(path).fileName()));
}

void LabTab::say(const QString& sentence) {
  state_->setText(sentence);
  state_->setToolTip(sentence);
}

}  // namespace ws::app
