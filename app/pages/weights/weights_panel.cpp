#include "app/pages/weights/weights_panel.h"

#include <QApplication>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>

#include "app/text/units.h"
#include "engine/cpu/cpu_executor.h"
#include "engine/train/checkpoint.h"
#include "app/widgets/theme.h"
#include "engine/train/trainer.h"

namespace ws::app {
namespace {

constexpr int kLearnedRow = 10, kSpareRow = 20;  // of the grid: below the histograms, and what is left over
constexpr int kEmptyHeight = 320;                // what is said where there are no weights stands in the middle
constexpr int kLookMs = 150, kAskMs = 600, kHistogramColumns = 4;
constexpr size_t kBins = 48;
constexpr int64_t kRowsOfPictures = 1000;

std::vector<double> finite(const std::vector<float>& values) {
  std::vector<double> kept;
  for (float v : values)
    if (std::isfinite(v)) kept.push_back(static_cast<double>(v));
  return kept;
}

// Both on the bins of their common range.
HistogramData compared(const LayerWeights& layer) {
  std::vector<double> both = finite(layer.now);
  const auto first = finite(layer.first);
  both.insert(both.end(), first.begin(), first.end());
  HistogramData data = histogram_of(both, kBins, false);
  const auto count = [&](const std::vector<float>& values) {
    std::vector<double> counts(kBins);
    for (float v : values) {
      if (!std::isfinite(v)) continue;
      const double share = (static_cast<double>(v) - data.low) / (data.high - data.low);
      counts[static_cast<size_t>(std::clamp(share * kBins, 0.0, kBins - 1.0))] += 1;
    }
    return counts;
  };
  data.counts = count(layer.now), data.ghost = count(layer.first);
  return data;
}

double spread(const std::vector<float>& values) {
  double mean = 0, square = 0;
  for (float v : values) mean += static_cast<double>(v), square += static_cast<double>(v) * static_cast<double>(v);
  const auto n = static_cast<double>(std::max<size_t>(1, values.size()));
  return std::sqrt(std::max(0.0, square / n - mean / n * mean / n));
}

}  // namespace

WeightsPanel::WeightsPanel(AskTrainer ask, QWidget* parent)
    : QWidget(parent), ask_(std::move(ask)), title_(new QLabel(this)) {
  title_->setFont(ui_font(12));
  title_->setContentsMargins(12, 8, 12, 4);
  auto* inside = new QWidget(this);
  grid_ = new QGridLayout(inside);
  grid_->setContentsMargins(8, 8, 8, 8);
  grid_->setSpacing(8);
  using Kind = LearnedView::Kind;
  for (const auto& [kind, name] : {std::pair{Kind::Plane, tr("Data and what the network says of it")},
                                   {Kind::Filters, tr("First-layer weights")},
                                   {Kind::Confusion, tr("Confusion matrix")},
                                   {Kind::Samples, tr("Sample predictions")}})
    views_.push_back(new LearnedView(kind, name, inside));
  for (LearnedView* view : views_) view->hide();
  for (int column = 0; column < kHistogramColumns; ++column) grid_->setColumnStretch(column, 1);
  grid_->setRowStretch(kSpareRow, 1);
  auto* scroll = new QScrollArea(this);
  scroll->setWidget(inside);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(title_);
  column->addWidget(scroll, 1);
  timer_.setInterval(kLookMs);
  since_.start();
  connect(&timer_, &QTimer::timeout, this, [this] {
    if (isVisible() && (!snapshot_ || since_.elapsed() >= kAskMs)) this->ask();
  });
  timer_.start();
  setRun(nullptr);
}

void WeightsPanel::setRun(Run* run) {
  if (run == run_ && run) return;
  run_ = run;
  snapshot_.reset(), data_.reset();
  asked_ = kept_ = false;
  problem_.clear();
  reading_.drop();
  showHistograms();
  for (LearnedView* view : views_) view->setContent(nullptr, nullptr), view->hide();
  showTitle(whyNothing());
  if (!run || run->origin == RunOrigin::Imported) return;
  load();
  connect(run, &Run::ended, this, [this, run] {
    if (run_ == run && isVisible()) readKept();
  });
}

// Pictures need few rows; other sets are small and are loaded whole, so that their scaling is the run's.
void WeightsPanel::load() {
  data::DataSpec spec = run_->spec.data;
  if (spec.name == "mnist" || spec.name == "fashion-mnist" || spec.name == "idx") spec.limit = kRowsOfPictures;
  const auto loaded = std::make_shared<std::shared_ptr<const data::Dataset>>();
  reading_.start(
      [loaded, spec](const Job::Side&) { *loaded = std::make_shared<const data::Dataset>(data::load(spec)); },
      [this, loaded](const QString& problem) {
        data_ = *loaded;
        if (!problem.isEmpty()) showProblem(problem);
      });
}

bool WeightsPanel::keptWeights() const { return QFileInfo::exists(weights_path(run_->path)); }

bool WeightsPanel::reading() const {
  return run_ && !snapshot_ && problem_.isEmpty() && run_->origin != RunOrigin::Imported &&
         (run_->live() || keptWeights());
}

QString WeightsPanel::whyNothing() const {
  if (!run_) return tr("Tick a run, or press Train: its weights stand here, as the init made them and as they are.");
  if (run_->origin == RunOrigin::Imported) return tr("A trace of another program holds no weights.");
  if (run_->live()) return tr("Reading the weights…");
  if (keptWeights()) return tr("Reading the weights that this run ended with…");
  return tr("This run kept no weights: those of networks up to 64 MiB that end or are stopped in the window are kept "
            "beside the run file, as %1.")
      .arg(QFileInfo(weights_path(run_->path)).fileName());
}

// The weights that an ended run left beside its file, looked at by the CPU: any machine can.
void WeightsPanel::readKept() {
  if (!keptWeights()) return showTitle(whyNothing());
  if (!data_ || std::exchange(kept_, true)) return;
  const auto snapshot = std::make_shared<WeightsSnapshot>();
  const auto work = [snapshot, rows = data_, spec = run_->spec,
                     path = weights_path(run_->path).toStdString()](const Job::Side&) {
    const Checkpoint kept = load_checkpoint(path);
    RunSpec on_cpu = spec;
    on_cpu.exec = ExecSpec{};
    on_cpu.exec.device = Device::Cpu;
    const auto executor = make_cpu_executor();
    executor->load(make_model(spec.model, rows->features, rows->outputs), *rows, on_cpu);
    executor->set_state(kept.state);
    *snapshot = probe_weights(*executor, *rows, on_cpu);
  };
  reading_.start(work, [this, snapshot](const QString& problem) {
    problem.isEmpty() ? setSnapshot(snapshot, data_) : showProblem(problem);
  });
}

void WeightsPanel::showProblem(const QString& problem) {
  problem_ = problem;
  showTitle(problem);
}

void WeightsPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  ask();
}

void WeightsPanel::ask() {
  if (!run_ || !data_) return;
  if (!run_->live()) return readKept();
  if (asked_) return;
  since_.start();
  asked_ = ask_(*run_, [panel = QPointer(this), run = run_, rows = data_, spec = run_->spec](Executor& executor) {
    const auto snapshot = std::make_shared<const WeightsSnapshot>(probe_weights(executor, *rows, spec));
    QMetaObject::invokeMethod(qApp, [panel, run, rows, snapshot] {
      if (!panel || panel->run_ != run) return;
      panel->asked_ = false;
      panel->setSnapshot(snapshot, rows);
    });
  });
}

void WeightsPanel::setSnapshot(std::shared_ptr<const WeightsSnapshot> snapshot,
                               std::shared_ptr<const data::Dataset> loaded) {
  snapshot_ = std::move(snapshot);
  showHistograms();
  std::vector<LearnedView*> filled;
  for (LearnedView* view : views_) {
    view->setContent(snapshot_, loaded);
    view->setVisible(view->hasContent());
    if (view->hasContent()) filled.push_back(view);
  }
  for (size_t i = 0; i < filled.size(); ++i) {
    const bool alone = i % 2 == 0 && i + 1 == filled.size();
    grid_->addWidget(filled[i], kLearnedRow + static_cast<int>(i / 2), static_cast<int>(i % 2) * 2, 1, alone ? 4 : 2);
  }
  // What was learned has the height that is left.
  const int last = kLearnedRow + (static_cast<int>(filled.size()) + 1) / 2;
  for (int row = kLearnedRow; row < kSpareRow; ++row) grid_->setRowStretch(row, row < last);
  grid_->setRowStretch(kSpareRow, filled.empty());
  showTitle((run_ && !run_->live()
                 ? tr("Weights after the last step, %1 · filled: now · outline: as the init made them")
                 : tr("Weights at step %1 · filled: now · outline: as the init made them"))
                .arg(count_text(snapshot_->step)));
}

void WeightsPanel::showTitle(const QString& text) {
  title_->setText(text);
  title_->setWordWrap(true);
  title_->setAlignment(snapshot_ ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignCenter);
  title_->setMinimumHeight(snapshot_ ? 0 : kEmptyHeight);
  title_->setForegroundRole(QPalette::PlaceholderText);
}

void WeightsPanel::showHistograms() {
  const size_t wanted = snapshot_ ? snapshot_->layers.size() : 0;
  while (histograms_.size() > wanted) delete histograms_.back(), histograms_.pop_back();
  for (size_t i = 0; i < wanted; ++i) {
    const LayerWeights& layer = snapshot_->layers[i];
    if (i == histograms_.size()) {
      histograms_.push_back(new HistogramView(tr("Weights of %1").arg(QString::fromStdString(layer.name)), this));
      histograms_.back()->setMinimumHeight(120);
      grid_->addWidget(histograms_.back(), static_cast<int>(i) / kHistogramColumns,
                       static_cast<int>(i) % kHistogramColumns);
      histograms_.back()->show();
    }
    HistogramData bins = compared(layer);
    const bool one = layer.now.size() == 1 && layer.first.size() == 1;
    const auto said = [one](const std::vector<float>& values) {
      return significant_text(one ? static_cast<double>(values[0]) : spread(values));
    };
    bins.caption = (one ? tr("%1  %2 × %3   %4, at first %5") : tr("%1  %2 × %3   σ %4, at first %5"))
                       .arg(QString::fromStdString(layer.name))
                       .arg(layer.rows)
                       .arg(layer.cols)
                       .arg(said(layer.now), said(layer.first));
    histograms_[i]->setData(std::move(bins), theme().of(prof::Meaning::Matrix));
  }
}

}  // namespace ws::app
