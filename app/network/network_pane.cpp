#include "app/network/network_pane.h"

#include <QBoxLayout>
#include <QFileInfo>
#include <QLabel>
#include <QPushButton>
#include <QTextBrowser>
#include <algorithm>

#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

bool has_weights(const Run& run) {
  return run.origin != RunOrigin::Imported && !run.lab && !run.recording &&
         (run.live() || QFileInfo::exists(weights_path(run.path)));
}

// Before its first test a network misreads nearly all, which says nothing of the training.
bool before_first_test(const Run& run, const WeightsSnapshot& snapshot) {
  return run.live() && (run.evals.empty() || static_cast<double>(snapshot.step) < run.evals.front().step);
}

}  // namespace

NetworkPane::NetworkPane(TrainingSession* session, QWidget* parent)
    : Pane(tr("The network now"), parent),
      reader_(trainer_of(session)),
      baseline_(trainer_of(session)),
      texts_(new QTextBrowser(this)),
      empty_(new QLabel(this)),
      swap_(new QPushButton(theme_icon("swap"), {}, this)) {
  legend()->hide();
  setMinimumSize(200, 120);
  swap_->setProperty("small", true);
  swap_->setAccessibleName(tr("Swap with the loss"));
  swap_->setToolTip(tr("Swap places with the loss"));
  connect(swap_, &QPushButton::clicked, this, &NetworkPane::swapWanted);
  addOption(swap_);
  auto* body = new QWidget(this);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 4);
  column->setSpacing(0);
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  column->addWidget(empty_);
  texts_->setAccessibleName(tr("What the network writes"));
  texts_->setFrameShape(QFrame::NoFrame);
  texts_->setProperty("inPane", true);
  texts_->hide();
  column->addWidget(texts_, 1);
  connect(&looks_, &LookReader::looked, this, &NetworkPane::takeLook);
  connect(&looks_, &LookReader::failed, this, &NetworkPane::say);
  using Kind = LearnedView::Kind;
  for (const auto& [kind, name] : {std::pair{Kind::Plane, tr("Predictions")},
                                   {Kind::Filters, tr("First-layer weights")},
                                   {Kind::Wrong, tr("Misread: guess → truth")},
                                   {Kind::Confusion, tr("Confusion matrix")}}) {
    auto* view = new LearnedView(kind, name, body);
    view->setTight(true);
    view->hide();
    if (kind != Kind::Plane) column->addWidget(view, kind == Kind::Filters ? 3 : 2);
    views_.push_back(view);
  }
  baseline_plane_ = new LearnedView(Kind::Plane, {}, body);
  baseline_plane_->setTight(true);
  baseline_plane_->hide();
  planes_ = new QBoxLayout(QBoxLayout::TopToBottom);
  planes_->setSpacing(0);
  planes_->addWidget(views_[0], 1);
  planes_->addWidget(baseline_plane_, 1);
  column->addLayout(planes_, 2);
  setBody(body);
  connect(&reader_, &WeightsReader::read, this, &NetworkPane::take);
  connect(&reader_, &WeightsReader::failed, this, &NetworkPane::say);
  connect(&baseline_, &WeightsReader::read, this, [this](const auto& snapshot, const auto& rows) {
    baseline_plane_->setContent(snapshot, rows);
    showPlanes();
  });
}

void NetworkPane::setRuns(const std::vector<Run*>& runs) {
  useful_ = std::ranges::any_of(runs, [](const Run* run) { return has_weights(*run); });
  Run* current = current_of(runs);
  Run* baseline = runs.size() > 1 && has_weights(*runs[0]) ? runs[0] : nullptr;
  if (baseline != baseline_.run()) {
    baseline_.setRun(baseline);
    baseline_plane_->setContent(nullptr, nullptr);
    showPlanes();
  }
  if (current == reader_.run()) return;
  reader_.setRun(current);
  written_.clear();
  if (current) looks_.setRun(current->spec);
  say(reader_.whyNothing());
}

// Both planes are of the same kind of data. Each has the name of its run then.
void NetworkPane::showPlanes() {
  const bool both = !views_[0]->isHidden() && baseline_plane_->hasContent();
  baseline_plane_->setVisible(both);
  const auto name = [](const Run* run) {
    return run && run->slot >= 0 ? run_letter(run->slot) + " · " + run->title : QString();
  };
  views_[0]->setName(both ? name(reader_.run()) : tr("Predictions"));
  baseline_plane_->setName(name(baseline_.run()));
  planes_->setDirection(planes_->geometry().width() > planes_->geometry().height() ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
}

void NetworkPane::say(const QString& sentence) {
  for (LearnedView* view : views_) view->hide();
  baseline_plane_->hide();
  texts_->hide();
  empty_->setText(sentence);
  empty_->show();
  setTitle(tr("The network now"), {});
}

void NetworkPane::take(const std::shared_ptr<const WeightsSnapshot>& snapshot,
                       const std::shared_ptr<const data::Dataset>& rows) {
  if (!reader_.run()) return;
  for (LearnedView* view : views_) view->setContent(snapshot, rows);
  const bool plane = views_[0]->hasContent(), pictures = !plane && views_[1]->hasContent();
  const bool confusion = !plane && !pictures && views_[3]->hasContent();
  views_[0]->setVisible(plane);
  views_[1]->setVisible(pictures);
  views_[2]->setVisible(pictures && views_[2]->hasContent() && !before_first_test(*reader_.run(), *snapshot));
  views_[2]->setName(tr("Misread at step %1: guess → truth").arg(count_text(snapshot->step)));
  views_[3]->setVisible(confusion);
  showPlanes();
  if (rows->context > 0) looks_.setWeights(snapshot, rows);
  empty_->setVisible(!plane && !pictures && !confusion && written_.empty());
  empty_->setText(rows->context > 0 ? tr("The network writes…") : tr("No picture for this kind of data: see Weights"));
  const QString letter = reader_.run()->slot >= 0 ? run_letter(reader_.run()->slot) + " · " : QString();
  setTitle(tr("The network now"), letter + tr("step %1").arg(count_text(snapshot->step)),
           tr("step %1").arg(count_text(snapshot->step)));
}

void NetworkPane::takeLook(const std::shared_ptr<const Look>& look) {
  constexpr size_t kShownTexts = 3;
  if (!reader_.run()) return;
  keep_text(written_, {look->step, look->prompt, look->written}, kShownTexts);
  texts_->setHtml(written_html(written_));
  empty_->hide();
  texts_->show();
}

void NetworkPane::showEvent(QShowEvent* event) {
  Pane::showEvent(event);
  for (WeightsReader* reader : {&reader_, &baseline_}) reader->setWatched(true);
}

void NetworkPane::hideEvent(QHideEvent* event) {
  Pane::hideEvent(event);
  for (WeightsReader* reader : {&reader_, &baseline_}) reader->setWatched(false);
}

void NetworkPane::resizeEvent(QResizeEvent* event) {
  Pane::resizeEvent(event);
  showPlanes();
}

}  // namespace ws::app
