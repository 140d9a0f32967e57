#include "app/pages/weights/weights_panel.h"

#include <QGridLayout>
#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>
#include <cmath>

#include "app/text/units.h"
#include "app/widgets/pane.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kLearnedRow = 10, kSpareRow = 20;  // grid rows: below the histograms, and spare
constexpr int kHistogramColumns = 4;
const QString kAtWork = QStringLiteral("work"), kOfWeights = QStringLiteral("weights");
constexpr size_t kBins = 48;

std::vector<double> finite(const std::vector<float>& values) {
  std::vector<double> kept;
  for (float v : values)
    if (std::isfinite(v)) kept.push_back(static_cast<double>(v));
  return kept;
}

// Both use the bins of their common range.
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
    : QWidget(parent),
      reader_(std::move(ask)),
      pane_(new Pane(tr("Weights"), this)),
      reason_(new QLabel(this)),
      parts_(new SegmentedRow(tr("Part of the page"), {{kAtWork, tr("At work"), tr("What the network makes of a picture or a text, while it trains.")},
                                                       {kOfWeights, tr("Weights"), tr("Histograms of the weights, and predictions.")}}, this)),
      work_(new AtWorkView(this)) {
  parts_->setValue(kAtWork);
  parts_->setFixedWidth(170);
  connect(parts_, &SegmentedRow::picked, this, &WeightsPanel::showPart);
  reason_->setMargin(20);
  reason_->setWordWrap(true);
  reason_->setAlignment(Qt::AlignCenter);
  reason_->setForegroundRole(QPalette::PlaceholderText);
  auto* inside = new QWidget(this);
  grid_ = new QGridLayout(inside);
  grid_->setContentsMargins(8, 8, 8, 8);
  grid_->setSpacing(8);
  using Kind = LearnedView::Kind;
  for (const auto& [kind, name] : {std::pair{Kind::Plane, tr("Data and the network's predictions")},
                                   {Kind::Filters, tr("First-layer weights")},
                                   {Kind::Confusion, tr("Confusion matrix")},
                                   {Kind::Samples, tr("Sample predictions")}})
    views_.push_back(new LearnedView(kind, name, inside));
  for (LearnedView* view : views_) view->setMinimumSize(280, 300), view->hide();
  for (int column = 0; column < kHistogramColumns; ++column) grid_->setColumnStretch(column, 1);
  grid_->setRowStretch(kSpareRow, 1);
  scroll_ = new QScrollArea(this);
  scroll_->setWidget(inside);
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  auto* body = new QWidget(this);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  for (QWidget* part : std::initializer_list<QWidget*>{reason_, scroll_, work_}) column->addWidget(part, 1);
  pane_->legend()->hide();
  pane_->addOption(parts_);
  pane_->setBody(body);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(pane_);
  connect(&reader_, &WeightsReader::read, this, &WeightsPanel::setSnapshot);
  connect(&reader_, &WeightsReader::failed, this, &WeightsPanel::showReason);
  setRun(nullptr);
}

void WeightsPanel::setRun(Run* run) {
  if (run == reader_.run() && run) return;
  reader_.setRun(run);
  snapshot_.reset();
  showHistograms();
  for (LearnedView* view : views_) view->setContent(nullptr, nullptr), view->hide();
  if (run) work_->setRun(run->spec);
  showReason(reader_.whyNothing());
}

void WeightsPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  reader_.setWatched(true);
  if (!snapshot_) showReason(reader_.whyNothing());
}

void WeightsPanel::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  reader_.setWatched(false);
}

void WeightsPanel::setSnapshot(std::shared_ptr<const WeightsSnapshot> snapshot,
                               std::shared_ptr<const data::Dataset> loaded) {
  snapshot_ = std::move(snapshot);
  rows_ = loaded;
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
  // The learned pictures take the remaining height.
  const int last = kLearnedRow + (static_cast<int>(filled.size()) + 1) / 2;
  for (int row = kLearnedRow; row < kSpareRow; ++row) grid_->setRowStretch(row, row < last);
  grid_->setRowStretch(kSpareRow, filled.empty());
  showReason({});
}

void WeightsPanel::showReason(const QString& text) {
  reason_->setText(text);
  showPart();
}

void WeightsPanel::showPart() {
  const bool both = snapshot_ && reader_.run() && AtWorkView::shows(reader_.run()->spec), work = both && parts_->value() == kAtWork;
  parts_->setVisible(both);
  work_->setVisible(work);
  if (work) work_->setWeights(snapshot_, rows_);
  scroll_->setVisible(snapshot_ && !work);
  reason_->setVisible(!snapshot_);
  const QString name = reader_.run() ? reader_.run()->title : QString();
  if (!snapshot_) return pane_->setTitle(tr("Weights"), name);
  const QString at = count_text(snapshot_->step);
  const bool live = reader_.run() && reader_.run()->live();
  const QString step = (live || !reader_.run() ? tr("at step %1") : tr("after the last step, %1")).arg(at);
  const QString what = work ? QString() : tr(" · filled: now · outline: as the init made them");
  pane_->setTitle(tr("Weights"), (name.isEmpty() ? QString() : name + " · ") + step + what, step + what);
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
    bins.caption = (one ? tr("%1  %2 × %3   %4, initially %5") : tr("%1  %2 × %3   σ %4, initially %5"))
                       .arg(QString::fromStdString(layer.name))
                       .arg(layer.rows)
                       .arg(layer.cols)
                       .arg(said(layer.now), said(layer.first));
    histograms_[i]->setData(std::move(bins), theme().of(prof::Meaning::Matrix));
  }
}

}  // namespace ws::app
