#include "app/pages/compare/compare_tab.h"

#include <QComboBox>
#include <QEvent>
#include <QLabel>
#include <algorithm>
#include <cmath>
#include <optional>

#include "app/charts/curve_pane.h"
#include "app/pages/compare/compare_table.h"
#include "app/pages/compare/step_view.h"
#include "app/pages/compare/waterfall_view.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/core/comparison/compared_step.h"

namespace ws::app {
namespace {

QString colour_span(const QString& text, const QColor& colour) {
  return QString("<span style='color:%1'>%2</span>").arg(colour.name(), text.toHtmlEscaped());
}

QString cause_name(prof::Meaning meaning) {
  return meaning == prof::Meaning::Launch ? QObject::tr("launch gaps") : ws::app::meaning_name(meaning);
}

}  // namespace

void CompareTab::setRuns(const std::vector<Run*>& runs) {
  for (const auto& run : runs_)
    if (run) disconnect(run, nullptr, this, nullptr);
  runs_.assign(runs.begin(), runs.end());
  std::erase_if(samples_,
                [&](const auto& entry) { return std::find(runs.begin(), runs.end(), entry.first) == runs.end(); });
  for (Run* run : runs)
    connect(run, &Run::changed, this, [this, run] {
      // What is read from a file is there at once; what trains is looked at once a second.
      if (!due_.isActive() && isVisible()) due_.start(run->live() ? 1000 : 30);
    });
  const auto still = [&](const QPointer<Run>& run) {
    return run && std::find(runs.begin(), runs.end(), run.data()) != runs.end();
  };
  // The slower one is what people compare against: it begins as the baseline.
  if (!still(baseline_) || !still(candidate_) || baseline_ == candidate_) {
    baseline_ = runs.size() > 1 ? runs[1] : nullptr;
    candidate_ = runs.empty() ? nullptr : runs[0];
    if (baseline_ && candidate_ && candidate_->usPerStep() > baseline_->usPerStep()) std::swap(baseline_, candidate_);
  }
  fillPickers();
  for (CurvePane* pane : {loss_, speed_}) pane->setRuns(runs);
  refresh();
}

void CompareTab::fillPickers() {
  for (auto [combo, chosen] : {std::pair{baseline_box_, baseline_.data()}, {candidate_box_, candidate_.data()}}) {
    combo->clear();
    for (const auto& run : runs_)
      if (run) combo->addItem(badge_icon(run->slot), run->title);
    combo->setCurrentIndex(-1);  // says that one more is to be ticked
    for (size_t i = 0; i < runs_.size(); ++i)
      if (chosen && runs_[i] == chosen) combo->setCurrentIndex(static_cast<int>(i));
    combo->setEnabled(runs_.size() > 1);
  }
}

// A run against itself says nothing: the other picker takes what this one had.
void CompareTab::setPair(Run* baseline, Run* candidate) {
  if (baseline && baseline == candidate) {
    if (baseline == baseline_)
      baseline = candidate_;
    else
      candidate = baseline_;
  }
  baseline_ = baseline;
  candidate_ = candidate;
  fillPickers();
  refresh();
}

void CompareTab::swapRuns() { setPair(candidate_, baseline_); }

std::vector<Run*> CompareTab::ordered() const {
  std::vector<Run*> all;
  for (const QPointer<Run>& run : {baseline_, candidate_})
    if (run && std::find(all.begin(), all.end(), run.data()) == all.end()) all.push_back(run);
  for (const auto& run : runs_)
    if (run && std::find(all.begin(), all.end(), run.data()) == all.end()) all.push_back(run);
  return all;
}

const RunSample& CompareTab::sample(const Run* run) const {
  static const RunSample none;
  const auto at = samples_.find(run);
  return at == samples_.end() ? none : at->second.sample;
}

void CompareTab::refresh() {
  stale_.clear();
  for (Run* run : ordered()) {
    Cached& known = samples_[run];
    const bool same = known.spans == run->trace.span_count() && known.steps == run->steps.size() &&
                      known.ended == run->summary.has_value();
    if (!same) known.left = Cached::Left::All;
    if (known.left != Cached::Left::Nothing) stale_.emplace_back(run);
  }
  if (stale_.empty())
    show_all();
  else
    next_.start();
}

void CompareTab::sampleNext() {
  constexpr size_t kEventsATurn = 50'000;
  while (!stale_.empty() && !stale_.front()) stale_.erase(stale_.begin());
  if (!stale_.empty()) {
    const Run* run = stale_.front();
    Cached& cached = samples_[run];
    if (cached.left == Cached::Left::All) {
      cached.spans = run->trace.span_count();
      cached.steps = run->steps.size();
      cached.ended = run->summary.has_value();
      cached.sample = sample_of(*run);
      cached.left = Cached::Left::Memory;
    } else if (cached.memory->update(run->trace, kEventsATurn)) {
      cached.left = Cached::Left::Nothing;
      stale_.erase(stale_.begin());
    }
  }
  if (!stale_.empty()) return next_.start();
  show_all();
}

void CompareTab::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void CompareTab::show_all() {
  comparison_ = baseline_ && candidate_ ? compare_runs(*baseline_, sample(baseline_), *candidate_, sample(candidate_))
                                        : PairComparison{};
  legend_->setText(colour_span("▂", theme().worse) + tr(" slower  ") + colour_span("▂", theme().better) +
                   tr(" faster  ") + colour_span("▂", theme().focus) + tr(" not in the baseline"));
  showHeadline();
  showCauses();
  showChoices();
  showWarnings();
  showMeasures();
  showKernels();
  showSpec();
  showBars();
  std::vector<StepView::Shown> shown;
  for (Run* run : ordered()) {
    const auto cached = samples_.find(run);
    shown.push_back({run, sample(run), cached == samples_.end() ? nullptr : cached->second.memory});
  }
  step_->setRuns(std::move(shown));
  const bool pair = baseline_ && candidate_;
  waterfall_->setComparison(comparison_, pair ? baseline_->slot : -1, pair ? candidate_->slot : -1);
}

void CompareTab::showHeadline() {
  const PairComparison& c = comparison_;
  times_->setVisible(baseline_ && candidate_);
  if (!baseline_ || !candidate_) return headline_->setText(tr("Tick two runs to compare them"));
  const QString who = QString(run_letter(candidate_->slot)), other = QString(run_letter(baseline_->slot));
  const double ratio = c.candidate_us > 0 ? c.baseline_us / c.candidate_us : 0;
  if (!(c.baseline_us > 0 && c.candidate_us > 0))
    headline_->setText(tr("%1 and %2 side by side").arg(other, who));
  else if (!c.beyond_noise)
    headline_->setText(tr("%1 is as fast as %2: within noise").arg(who, other));
  else
    headline_->setText(ratio >= 1 ? tr("%1 is %2× faster a step").arg(who, significant_text(ratio))
                                  : tr("%1 is %2× slower a step").arg(who, significant_text(1 / ratio)));
  const double delta = c.candidate_us - c.baseline_us;
  if (std::isnan(delta)) return times_->setText(tr("The step time of one is not known."));
  times_->setText(
      tr("%1 → %2 µs, %3%4 µs")
          .arg(us_text(c.baseline_us), us_text(c.candidate_us), delta > 0 ? "+" : "", fixed_text(delta, 1)) +
      (c.half_width_us > 0 ? tr(" ± %1 (95 % interval)").arg(fixed_text(c.half_width_us, 1)) : QString()));
}

// "A step has 20 → 3 kernels, 15 → 0 allocations."
QString CompareTab::changedCounts() const {
  if (!baseline_ || !candidate_ || !comparison_.traced) return {};
  const RunSample &a = sample(baseline_), &b = sample(candidate_);
  QStringList parts;
  const auto add = [&parts](const QString& words, double before, double after) {
    if (std::lround(before) == std::lround(after)) return;
    parts << words.arg(fixed_text(before, 0), fixed_text(after, 0));
  };
  add(tr("%1 → %2 kernels"), a.kernels_per_step, b.kernels_per_step);
  add(tr("%1 → %2 allocations"), a.allocations_per_step, b.allocations_per_step);
  return parts.isEmpty() ? QString() : tr("A step has %1.").arg(parts.join(", "));
}

// The three causes that weigh most, and with more than two runs who is fastest of all.
void CompareTab::showCauses() {
  QStringList lines, parts, changes;
  std::optional<QString> beyond;
  double shown = 0;  // shares of more than the whole are made up for by others: then times say more
  const double total = static_cast<double>(comparison_.waterfall.b_ps - comparison_.waterfall.a_ps);
  for (const prof::Cause& cause : comparison_.waterfall.causes) {
    const double share = total != 0 ? static_cast<double>(cause.delta_ps()) / total : 0;
    if (changes.size() < 3 && std::abs(share) > 0.05)
      changes << QString("%1 %2%3 µs")
                     .arg(cause_name(cause.meaning), cause.delta_ps() < 0 ? "−" : "+",
                          us_text(std::abs(static_cast<double>(cause.delta_ps())) * 1e-6));
    shown += std::max(0.0, share);
    if (share > 1.005 && !beyond)
      beyond = cause_name(cause.meaning);  // which others made up for in part
    else if (parts.size() < 3 && share > 0.05)
      parts << (parts.isEmpty() && !beyond ? tr("%1 % of the difference: %2") : tr("%2 (%1 %)"))
                   .arg(std::lround(100 * share))
                   .arg(cause_name(cause.meaning));
  }
  if (comparison_.beyond_noise && shown > 1.3 && changes.size() > 1) {
    const QString first = changes.takeFirst();
    lines << "<b>" + first.toHtmlEscaped() + "</b>" + tr(", then %1").arg(changes.join(", ")) + ".";
  } else if ((beyond || !parts.isEmpty()) && comparison_.beyond_noise) {
    const QString first = beyond ? tr("More than the whole difference: %1").arg(*beyond) : parts.takeFirst();
    lines << "<b>" + first.toHtmlEscaped() + "</b>" +
                 (parts.isEmpty() ? QString() : tr(", then %1").arg(parts.join(", "))) + ".";
  }
  if (const QString counts = changedCounts(); !counts.isEmpty()) lines << counts.toHtmlEscaped();
  const std::vector<Run*> runs = ordered();
  if (runs.size() > 2) {
    const auto us = [this](const Run* run) {
      const double mean = compared_step_us(sample(run), run->usPerStep());
      return mean > 0 ? mean : 1e300;
    };
    const Run* best = *std::min_element(runs.begin(), runs.end(), [&](Run* a, Run* b) { return us(a) < us(b); });
    lines << tr("Fastest of %1: %2 %3, %4 a step.")
                 .arg(runs.size())
                 .arg(run_letter(best->slot))
                 .arg(best->title.toHtmlEscaped(), time_axis_text(us(best)));
  }
  if (!baseline_ || !candidate_)
    lines << tr("Train a run, change one choice, train again: both are in the list at the right.");
  causes_->setText(lines.join("<br>"));
}

void CompareTab::showChoices() {
  QStringList parts;
  for (const FieldChange& change : comparison_.choices)
    parts << QString("%1 <span style='color:%2'>%3 →</span> <b>%4</b>")
                 .arg(colour_span(QString::fromUtf8(field(change.key).label.data()), theme().secondary),
                      theme().secondary.name(), QString::fromStdString(change.from).toHtmlEscaped(),
                      QString::fromStdString(change.to).toHtmlEscaped());
  const auto count = parts.size();
  if (count > 8) parts = parts.mid(0, 8) << tr("%1 more under Choices").arg(count - 8);
  choices_->setVisible(baseline_ && candidate_ && comparison_.choices_known);
  choices_->setText(
      parts.isEmpty()
          ? tr("The same choices in both.")
          : QString("<b>%1</b> &nbsp; ").arg(count == 1 ? tr("1 choice differs") : tr("%1 choices differ").arg(count)) +
                parts.join(" &nbsp;·&nbsp; "));
}

// What makes a comparison with the baseline unfair, each said once with the runs it holds for.
void CompareTab::showWarnings() {
  std::vector<std::pair<QString, QString>> said;  // sentence, letters
  const std::vector<Run*> runs = ordered();
  for (size_t i = 1; i < runs.size(); ++i)
    for (const QString& sentence : compare_runs(*runs[0], sample(runs[0]), *runs[i], sample(runs[i])).warnings) {
      const auto at = std::find_if(said.begin(), said.end(), [&](const auto& s) { return s.first == sentence; });
      if (at == said.end())
        said.emplace_back(sentence, QString(run_letter(runs[i]->slot)));
      else
        at->second += ", " + QString(run_letter(runs[i]->slot));
    }
  QStringList lines;
  for (const auto& [sentence, letters] : said) lines << (runs.size() > 2 ? letters + ": " + sentence : sentence);
  warnings_->setVisible(!lines.isEmpty());
  warnings_->setText(colour_span("▲ " + lines.join(" · "), theme().worse));
}

void CompareTab::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange && legend_) show_all();
  QWidget::changeEvent(event);
}

}  // namespace ws::app
