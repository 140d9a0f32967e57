#include "app/pages/lab/lab_tab.h"

#include <QCheckBox>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QRegularExpression>
#include <QTableWidget>
#include <QTimer>
#include <nlohmann/json.hpp>

#include "app/widgets/pane.h"
#include "app/pages/lab/lab_export.h"
#include "app/pages/lab/lab_share.h"
#include "app/pages/lab/lab_sentences.h"
#include "app/core/lab/recorded_lab.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/workspace/run.h"
#include "engine/executor/executor.h"

namespace ws::app {
namespace {

constexpr double kClearGain = 1.05;

QString fresh_path(const QString& folder, const lab::LabSpec& spec) {
  if (folder.isEmpty() || !QDir().mkpath(folder)) return {};
  const QString stamp = QDateTime::currentDateTime().toString("yyyyMMdd-HHmmss-zzz");
  return folder + "/lab-" + QString::fromStdString(std::string(to_string(spec.operation))) + "-" + stamp + ".wsrun";
}

QString operation_title(const lab::LabSpec& spec) {
  switch (spec.operation) {
    case lab::Operation::MatMul:
      return QObject::tr("Time of one matrix product");
    case lab::Operation::Sine:
      return QObject::tr("Time of a sine nested %1 deep").arg(spec.depth);
    case lab::Operation::Expression:
      return QObject::tr("Time of %1").arg(QString::fromStdString(spec.expression).left(40));
    case lab::Operation::Add:
      return QObject::tr("Time of one addition");
    case lab::Operation::Reduce:
      return QObject::tr("Time of one sum");
    case lab::Operation::Softmax:
      return QObject::tr("Time of one softmax");
    case lab::Operation::Copy:
      return QObject::tr("Time of one copy");
  }
  return {};
}

// "PyTorch 2.11.0+cu130" says more than a label can hold.
QString short_source(const QString& source) {
  static const QRegularExpression version("^(.*\\d+\\.\\d+)\\.\\S*$");
  const auto match = version.match(source);
  return match.hasMatch() ? match.captured(1) : source;
}

LabAxis throughput_axis(const lab::LabResult& result) {
  return result.spec.operation == lab::Operation::MatMul ? LabAxis::Flops : LabAxis::Bytes;
}

}  // namespace

void LabTab::setFolder(const QString& folder) {
  folder_ = folder;
  LabJob::recover(folder);
}

std::vector<LabShown> LabTab::shown() const {
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
  ready();
  if (!elsewhere_.isEmpty()) return say(elsewhere_);
  if (torch_->running()) return say(tr("PyTorch is measuring: stop it first."));
  try {
    const lab::LabSpec wanted = spec();
    before_.clear();
    if (!job_->result().points.empty() && job_->result().spec.operation == wanted.operation)
      before_ = {{job_->result(), tr("before"), job_->path()}};
    const QString path = record_->isChecked() ? fresh_path(folder_, wanted) : QString();
    job_->start(wanted, path);
    emit busyChanged(true);
    run_->setText(tr("Stop"));
    export_->setEnabled(false);
    say(device_info().cuda ? tr("Measuring the card's ceilings") : tr("Starting"));
    showResult();
  } catch (const Failure& failure) {
    say(QString::fromUtf8(failure.what()));
  }
}

void LabTab::jobEnded(const QString& problem) {
  run_->setText(tr("Measure"));
  emit busyChanged(false);
  const lab::LabResult& r = job_->result();
  const QString recorded = job_->path().isEmpty() ? QString() : tr(" · click a point for its timeline");
  say(!problem.isEmpty()
          ? problem
          : (r.cancelled ? tr("Stopped; %1 points kept") : tr("%1 points")).arg(r.points.size()) + recorded);
  showResult();
}

void LabTab::showResult() {
  const std::vector<LabShown> all = shown();
  const bool any = !all.empty();
  const lab::LabResult none, &result = any ? all[0].result : none;
  chart_->setShown(all);
  throughput_->setAxis(any ? throughput_axis(result) : LabAxis::Flops);
  throughput_->setShown(all);
  chooseAxis();
  if (any)
    times_pane_->setTitle(operation_title(result.spec),
                          clock_->value() == "events"
                              ? tr("GPU events, median · band: 5th to 95th percentile · CPU and pitfall: host clock")
                              : tr("median of up to %1 · band: 5th to 95th percentile").arg(result.spec.repeats));
  export_->setEnabled(any && !job_->running());
  clear_->setVisible(all.size() > 1);
  showCrossovers();
  showStory();
  showShares();
}

void LabTab::showCrossovers() {
  const auto all = shown();
  auto found = all.empty() ? std::vector<lab::Crossover>{} : lab::crossovers(all[0].result);
  const auto last_time = [&](lab::Way way) {
    double seconds = 0;
    int64_t size = 0;
    for (const lab::LabPoint& p : all[0].result.points)
      if (p.way == way && p.ok && p.size > size) size = p.size, seconds = p.median_s;
    return seconds;
  };
  // Curves that lie on each other cross without meaning.
  std::erase_if(found, [&](const lab::Crossover& c) {
    return last_time(c.slower_below) < kClearGain * last_time(c.faster_above);
  });
  crossovers_->clearSpans();
  crossovers_->setRowCount(std::max(1, static_cast<int>(found.size())));
  if (found.empty()) {
    auto* none = new QTableWidgetItem(all.empty() ? tr("Ways that overtake others come here")
                                                  : tr("No way overtakes another here"));
    none->setFlags(Qt::NoItemFlags);
    none->setForeground(theme().quiet);
    crossovers_->setSpan(0, 0, 1, 5);
    return crossovers_->setItem(0, 0, none);
  }
  for (int row = 0; row < crossovers_->rowCount(); ++row) {
    const lab::Crossover& c = found[static_cast<size_t>(row)];
    const QString cells[] = {lab_short_label(c.slower_below), lab_short_label(c.faster_above), lab_size_text(c.size),
                             time_axis_text(c.seconds * 1e6),
                             significant_text(last_time(c.slower_below) / last_time(c.faster_above)) + "×"};
    for (int column = 0; column < 5; ++column) {
      auto* item = new QTableWidgetItem(cells[column]);
      item->setToolTip(cells[column]);
      if (column > 1) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      crossovers_->setItem(row, column, item);
    }
  }
}

// The page of the chosen sweep, and below it what this machine measured.
void LabTab::showStory() {
  const auto all = shown();
  QStringList lines;
  if (!page_.isEmpty()) lines << page_;
  if (!all.empty()) lines << lab_findings(all[0].result);
  if (ready_ && all.empty() && !device_info().cuda)
    lines << tr("The CPU's curves can be measured here. The GPU's are missing: %1")
                 .arg(QString::fromStdString(device_info().why_not));
  if (lines.isEmpty())
    lines << tr(
        "Each point is checked against the CPU in float64; one that rounding does not explain is wrong, and is not "
        "drawn. Dashed curves are pitfalls: they are shown so that "
        "you know them. A click on a point opens the timeline of its calls.");
  story_title_->setText(lab_headline(all.empty() ? lab::LabResult{} : all[0].result));
  story_->setText(lines.join("\n\n"));
  bool recorded = false;
  if (!all.empty() && !all[0].path.isEmpty())
    for (const lab::LabPoint& p : all[0].result.points)
      recorded = recorded || (p.way == lab::Way::GpuUnsynced && p.recorded.steps > 0);
  to_timeline_->setVisible(recorded && !job_->running());
}

// At the cursor, else at the largest size.
void LabTab::showShares() {
  const auto all = shown();
  std::optional<int64_t> size = chart_->cursorPoint();
  if (!size && !all.empty())
    for (const lab::LabPoint& p : all[0].result.points)
      if (p.ok && (!size || p.size > *size)) size = p.size;
  if (all.empty() || !size) {
    shares_pane_->setTitle(tr("Copies and compute"), {});
    return shares_->setShares({}, lab::Operation::MatMul);
  }
  shares_pane_->setTitle(tr("Copies and compute"),
                         tr("of one call at N = %1").arg(lab_size_text(static_cast<double>(*size))));
  shares_->setShares(lab_shares(all[0].result, *size), all[0].result.spec.operation);
}

void LabTab::setCursorSize(double size) {
  chart_->setCursorSize(size);
  throughput_->setCursorSize(size);
  showShares();
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
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return false;
  const auto object = nlohmann::json::parse(file.readAll().toStdString(), nullptr, false);
  if (!object.is_object() || !object.contains("points")) return false;
  try {
    layOver(lab::lab_result_from_json(object), QFileInfo(path).completeBaseName());
  } catch (const Failure& failure) {
    say(QString::fromUtf8(failure.what()));
    return false;
  }
  return true;
}

// `fallback`: its name where the result does not say where it is from.
void LabTab::layOver(lab::LabResult result, const QString& fallback) {
  const QString source = QString::fromStdString(result.source);
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
    write_chart(lab_picture(*chart_, all[0].result), path);
    say(tr("Written: %1").arg(QFileInfo(path).fileName()));
  } catch (const Failure& failure) {
    say(QString::fromUtf8(failure.what()));
  }
}

void LabTab::chooseExport() {
  const auto all = shown();
  if (all.empty()) return;
  try {
    if (const QString done = ask_and_write(this, lab_picture(*chart_, all[0].result)); !done.isEmpty()) say(done);
  } catch (const Failure& failure) {
    say(QString::fromUtf8(failure.what()));
  }
}

void LabTab::chooseOverlay() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Lay a result over this one"), folder_,
                                                    tr("Results of the laboratory or of PyTorch's script (*.json)"));
  if (!path.isEmpty() && !openResult(path))
    say(tr("%1 is no result of the laboratory.").arg(QFileInfo(path).fileName()));
}

void LabTab::say(const QString& sentence) {
  state_->setText(sentence);
  state_->setToolTip(sentence);
}

}  // namespace ws::app
