#include "app/pages/insights/insights_tab.h"

#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>
#include <iterator>

#include "app/core/insights/predicted_savings.h"
#include "app/text/qt_text.h"
#include "app/timeline/meaning_legend.h"
#include "app/widgets/pane.h"
#include "app/widgets/section.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/workspace/training_session.h"
#include "engine/devices/devices.h"

namespace ws::app {
namespace {

constexpr int kInsightsRefreshMs = 2000;

Tried outcome(const Run& run) {
  Tried tried;
  tried.running = !run.summary.has_value();
  if (tried.running) return tried;
  const RunFacts facts = facts_of(judged_run(run));
  tried.first_loss = facts.first_loss;
  tried.last_loss = facts.last_loss;
  tried.measured_us = facts.step_us;  // a median, like the step that the insight was found in
  if (run.summary->status == RunStatus::Failed) tried.problem = QString::fromStdString(run.summary->message);
  return tried;
}

}  // namespace

InsightsTab::InsightsTab(TrainingSession* session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* list = new QWidget(scroll);
  column_ = new QVBoxLayout(list);
  column_->setContentsMargins(0, 0, 0, 0);
  column_->setSpacing(5);
  empty_ = new QLabel(list);
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  column_->addWidget(empty_);
  small_ = new SectionTitle({}, list);
  small_->setToolTip(tr("They save less than the ± of the median step."));
  small_->setChecked(false);
  connect(small_, &QAbstractButton::toggled, this, &InsightsTab::showSmall);
  column_->addWidget(small_);
  note_ = new QLabel(list);
  note_->setWordWrap(true);
  note_->setFont(ui_font(11));
  note_->setForegroundRole(QPalette::PlaceholderText);
  note_->setMargin(10);
  column_->addWidget(note_);
  column_->addWidget(new QWidget(list));  // the space below the cards
  scroll->setWidget(list);
  outer->setSpacing(5);
  outer->addWidget(colours_ = new MeaningLegend(this));
  outer->addWidget(scroll);
  due_.setInterval(kInsightsRefreshMs);
  connect(&due_, &QTimer::timeout, this, [this] {
    if (run_ && run_->live()) refresh();
  });
  due_.start();
  connect(&advice_, &RunAdvice::changed, this, &InsightsTab::refresh);
  connect(session_, &TrainingSession::ended, this, &InsightsTab::sessionEnded);
  connect(session_, &TrainingSession::stateChanged, this, &InsightsTab::showAttempts);
  refresh();
}

// While the current run is an attempt to improve the shown run, its cards stay.
void InsightsTab::setRuns(const std::vector<Run*>& runs) {
  Run* current = current_of(runs);
  const bool tried_here = std::ranges::any_of(attempts_, [&](const Attempt& a) { return a.base == run_ && a.run == current; });
  if (run_ && (trying_ || (current && tried_here))) return refresh();
  showRun(current);
}

void InsightsTab::showRun(Run* run) {
  run_ = run;
  refresh();
}

void InsightsTab::sessionEnded(Run* run) {
  showAttempts();
  if (run == run_) refresh();
}

// A live run is copied and replayed while the page is seen.
void InsightsTab::refresh() {
  const bool seen = isVisible() || (run_ && !run_->live());
  advice_.setRun(run_, seen);
  const auto [facts, found] = advice_.found(seen);
  if (!run_) {
    empty_->setText(tr("Train a run to see what it could do better."));
  } else {
    empty_->setText(facts.step_us > 0 ? tr("No advice applies to this run.\nThe page What if shows what a step would save if a part took no time.")
                                      : tr("This run has no trace. Train with tracing on."));
  }
  fill(facts, found);
  showAttempts();
  emit counted(static_cast<int>(std::ranges::count(found, false, &Insight::changes_little)));
}

void InsightsTab::fill(const RunFacts& facts, const std::vector<Insight>& found) {
  std::vector<std::string> now{run_ ? run_->path.toStdString() : std::string()};
  std::vector<AdviceLines> lines;
  const ProvedPredictions proved = proved_predictions(run_ && run_->hasChoices() ? CheckedPrograms::Trainings : CheckedPrograms::Programs);
  for (const Insight& insight : found) {
    lines.push_back(advice_lines(insight, proved));
    now.push_back(insight.headline + lines.back().why + lines.back().how + lines.back().more + lines.back().sure + lines.back().checked);
  }
  empty_->setVisible(found.empty());
  column_->setStretchFactor(found.empty() ? empty_ : column_->itemAt(column_->count() - 1)->widget(), 1);
  column_->setStretchFactor(found.empty() ? column_->itemAt(column_->count() - 1)->widget() : empty_, 0);
  const PredictionsNote note = predictions_note(found, proved);
  noted_ = text(note.text), note_->setToolTip(text(note.checked));
  if (now == shown_) return;
  shown_ = now;
  for (InsightCard* card : cards_) card->hide(), card->deleteLater();
  cards_.clear();
  for (size_t i = 0; i < found.size(); ++i) {
    auto* card = new InsightCard(facts, found[i], lines[i], this);
    connect(card, &InsightCard::applyClicked, this, [this, i] { tryChange(i); });
    connect(card, &InsightCard::showClicked, this, [this](const Insight& shown) { emit showWanted(run_, shown); });
    card->setShowable([this](const Insight& shown) { return evidence_of(*run_, shown).has_value(); });
    column_->insertWidget(found[i].changes_little ? column_->indexOf(note_) : column_->indexOf(small_), card);
    cards_.push_back(card);
  }
  showSmall();
}

// The number on the tab counts the cards that are always shown.
void InsightsTab::showSmall() {
  const auto changes_little = [](const InsightCard* card) { return card->insight().changes_little; };
  const auto small = std::ranges::count_if(cards_, changes_little), all = std::ssize(cards_);
  small_->setVisible(small > 0);
  small_->setText(small < all ? tr("%1 more would change little now").arg(small) : tr("%1 would change little now").arg(small));
  small_->setAccessibleName(small_->text());
  std::vector<prof::PartId> colours;
  for (InsightCard* card : cards_) {
    card->setVisible(small_->isChecked() || !changes_little(card));
    if (!card->isHidden()) std::ranges::copy(card->colours(), std::back_inserter(colours));
  }
  colours_->setParts(colours);
  colours_->setVisible(!colours.empty());
}

const InsightsTab::Attempt* InsightsTab::attemptOf(const std::string& rule) const {
  for (const Attempt& attempt : attempts_)
    if (attempt.base == run_ && attempt.run && attempt.rule == rule) return &attempt;
  return nullptr;
}

QString InsightsTab::blockedBecause(const Insight& insight) const {
  if (insight.change.empty() || !run_) return {};
  if (session_->busy()) return tr("Stop the training first (Run › Stop).");
  if (needsGpu(insight)) return tr("This machine has no GPU.");
  RunSpec spec = run_->spec;
  for (const auto& [key, value] : insight.change) set_field(spec, key, value);
  return QString::fromStdString(why_invalid(spec, device_info().cuda).value_or(Refusal()).text);
}

bool InsightsTab::needsGpu(const Insight& insight) const {
  return run_ && !insight.change.empty() && !session_->busy() && insight.predicted_us > 0 && on_gpu(*run_) && !device_info().cuda;
}

// What is true for all cards stands once, below them.
void InsightsTab::showAttempts() {
  const bool no_gpu = std::ranges::any_of(cards_, [this](const InsightCard* card) { return needsGpu(card->insight()); });
  note_->setText((noted_ + (no_gpu ? tr(" To train with advice about a step on a GPU, this machine needs a GPU.") : QString())).trimmed());
  note_->setVisible(!note_->text().isEmpty());
  for (InsightCard* card : cards_) {
    card->setBlocked(blockedBecause(card->insight()), !needsGpu(card->insight()));
    const Attempt* attempt = attemptOf(card->insight().rule);
    if (!attempt) {
      card->setTried(nullptr);
      continue;
    }
    const Tried tried = outcome(*attempt->run);
    card->setTried(&tried);
  }
}

Run* InsightsTab::tryChange(size_t card) {
  if (card >= cards_.size() || !run_ || !train_) return nullptr;
  const Insight insight = cards_[card]->insight();
  RunSpec spec = run_->spec;
  for (const auto& [key, value] : insight.change) set_field(spec, key, value);
  std::erase_if(attempts_, [&](const Attempt& a) { return !a.run || (a.base == run_ && a.rule == insight.rule); });
  trying_ = true;
  Run* began = train_(spec, {});
  trying_ = false;
  if (began) attempts_.push_back({run_, began, insight.rule});
  showAttempts();
  return began;
}


QString InsightsTab::emptyText() const { return empty_->isHidden() ? QString() : empty_->text(); }

}  // namespace ws::app
