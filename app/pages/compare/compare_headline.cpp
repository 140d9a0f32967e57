#include "app/pages/compare/compare_headline.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMap>
#include <QResizeEvent>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/core/comparison/comparison_text.h"
#include "app/core/comparison/comparison.h"
#include "app/pages/compare/compare_samples.h"
#include "app/text/units.h"
#include "app/widgets/glossary.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/shipped_runs.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr QChar kJoined(0x00A0);  // a cause keeps its number on its line

QLabel* rich_label(QWidget* parent, double size) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setTextFormat(Qt::RichText);
  label->setFont(ui_font(size));
  return label;
}

QString coloured(const QString& text, const QColor& colour) {
  return QString("<span style='color:%1'>%2</span>").arg(colour.name(), text.toHtmlEscaped());
}

QString letter(const Run* run) { return run_letter(run->slot); }

// "allocator calls −103.0 µs, launch gaps −7.0 µs, sync +4.0 µs": the largest causes and the rest, which sum to the change.
QString causes_text(const prof::Waterfall& exact) {
  constexpr int64_t kLongStep = 10'000'000'000;  // 10 ms, as in the picture below and in the measures
  constexpr size_t kMostCauses = 3;
  const bool in_ms = std::max(exact.a_ps, exact.b_ps) >= kLongStep;
  const prof::Waterfall w = prof::rounded(exact, in_ms ? 10'000'000 : 100'000);
  const int digits = in_ms ? 2 : 1;
  const double unit = in_ms ? 1e9 : 1e6, shown_as = std::pow(10.0, digits);
  const auto rounded = [&](int64_t ps) { return std::round(static_cast<double>(ps) / unit * shown_as) / shown_as; };
  const QString with_unit = kJoined + QString(in_ms ? "ms" : "µs");
  const auto change = [&](double value) { return (value > 0 ? "+" : "") + fixed_text(value, digits) + with_unit; };
  double rest = rounded(w.b_ps - w.a_ps);
  QStringList parts;
  for (const prof::Cause& cause : w.causes) {
    const double value = rounded(cause.delta_ps());
    if (value == 0 || parts.size() == kMostCauses) break;
    const QString part = QString::fromUtf8(prof::part_name({cause.meaning, cause.kind})).replace(' ', kJoined) + kJoined + change(value);
    parts << (parts.isEmpty() ? "<b>" + part.toHtmlEscaped() + "</b>" : part.toHtmlEscaped());
    rest -= value;
  }
  if (parts.isEmpty()) return {};
  if (std::round(rest * shown_as) != 0) parts << QObject::tr("all other causes %1").arg(change(rest)).replace(' ', kJoined);
  return parts.join(", ") + '.';
}

// "Kernels per step: 20 → 3. Allocations per step: 15 → 0."
QString changed_counts(const Comparison& c) {
  QStringList parts;
  const auto add = [&](const QString& words, MeasureKind kind) {
    const ComparedMeasure& m = c.of(kind);
    const double a = m.a.value.value, b = m.b.value.value;
    if (!m.delta.known() || std::lround(a) == std::lround(b)) return;
    const auto shown = [&](double mean) { return fixed_text(mean, mean < 10 && mean != std::round(mean) ? m.a.decimals : 0); };
    parts << words.arg(shown(a), shown(b));
  };
  add(QObject::tr("Kernels per step: %1 → %2."), MeasureKind::Kernels);
  add(QObject::tr("Allocations per step: %1 → %2."), MeasureKind::Allocations);
  return parts.join(" ");
}

// Names the runs that are as fast as the fastest, within noise. Empty if only the pair does the same work.
QString fastest_of(const ComparedRuns& compared) {
  std::vector<size_t> alike;
  for (size_t i = 0; i < compared.runs.size(); ++i)
    if (!other_program(*compared.figures[0], *compared.figures[i]) && same_task(compared.figures[0]->choices(), compared.figures[i]->choices())) alike.push_back(i);
  if (alike.size() <= 2) return {};
  const auto us = [&](size_t i) { return compared.figures[i]->time.known() ? compared.figures[i]->time.us.value : 1e300; };
  const size_t best = *std::ranges::min_element(alike, {}, us);
  const auto time = [&](size_t i) { return step_time_measure(*compared.figures[i]); };
  QStringList equal;
  for (const size_t i : alike) {
    const MeasureDelta d = delta_of(time(best), time(i));
    if (i != best && d.known() && d.verdict == Verdict::WithinNoise) equal << letter(compared.runs[i]);
  }
  const Run& run = *compared.runs[best];
  const bool all = alike.size() == compared.runs.size();
  const QString fastest = (all ? QObject::tr("Fastest of %1: %2 %3, step time %4")
                               : QObject::tr("Fastest of the %1 that do the same work: %2 %3, step time %4"))
                              .arg(alike.size())
                              .arg(letter(&run))
                              .arg(run.title.toHtmlEscaped(), time_axis_text(us(best)));
  return fastest + (equal.isEmpty() ? QString() : QObject::tr("; as fast, within noise: %1").arg(equal.join(", "))) + ".";
}

// "A, B: recorded on an NVIDIA H200."
QString where_recorded(const ComparedRuns& compared) {
  QMap<QString, QStringList> letters;  // by place
  for (const Run* run : compared.runs)
    if (run->shipped) letters[origin_text(*run)] << letter(run);
  QStringList all;
  for (const auto& [where, of] : letters.asKeyValueRange()) all << QString("%1: %2.").arg(of.join(", "), where);
  all.sort();  // by letter
  return all.join(' ');
}

}  // namespace

CompareHeadline::CompareHeadline(QWidget* parent) : QWidget(parent), top_(new QHBoxLayout) {
  style_ground(*this, "panel");
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(14, 9, 12, 8);
  column->setSpacing(5);
  auto* left = new QVBoxLayout;
  left->setSpacing(1);
  verdict_ = new QLabel(this);
  verdict_->setFont(ui_font(21, 600));
  verdict_->setWordWrap(true);
  times_ = new WordLabel(this);
  times_->setFont(ui_font(12));
  times_->setForegroundRole(QPalette::PlaceholderText);
  times_->setWordWrap(true);
  judged_ = new QLabel(this);
  judged_->setFont(ui_font(12, 600));
  judged_->setWordWrap(true);
  left->addWidget(verdict_);
  left->addWidget(judged_);
  left->addWidget(times_);
  left->addStretch(1);
  causes_ = rich_label(this, 12);
  choices_ = rich_label(this, 12);
  warnings_ = rich_label(this, 11);
  top_->addLayout(left, 1);
  top_->addSpacing(30);
  top_->addWidget(causes_, 1);
  column->addLayout(top_);
  column->addWidget(choices_);
  column->addWidget(warnings_);
  column->addStretch(1);
}

void CompareHeadline::addButton(QWidget* button) { top_->addWidget(button, 0, Qt::AlignTop); }

void CompareHeadline::setRuns(const ComparedRuns& compared) {
  showVerdict(compared);
  showJudged(compared);
  showCauses(compared);
  showChoices(compared);
  showWarnings(compared);
  fitHeight();
}

void CompareHeadline::showWaiting(const QString& baseline, const QString& candidate) {
  verdict_->setText(tr("Comparing %1 with %2…").arg(candidate, baseline));
  times_->setWords({});
  for (QLabel* label : {causes_, choices_, warnings_}) label->clear();
}

// A verdict with its times, and the choices. A line of warnings is rare.
int CompareHeadline::usualHeight() const {
  const auto line = [](const QLabel* label) { return QFontMetrics(label->font()).height(); };
  const QMargins around = layout()->contentsMargins();
  return around.top() + line(verdict_) + line(times_) + line(choices_) + 2 * layout()->spacing() + around.bottom();
}

// The nested layouts keep heights for a width from before a label was shown. Then a line would be cut off.
void CompareHeadline::fitHeight() {
  for (QLayout* nested : findChildren<QLayout*>()) nested->invalidate();
  height_ = std::max({height_, usualHeight(), layout()->totalHeightForWidth(width())});
  setFixedHeight(height_);
  layout()->activate();
}

void CompareHeadline::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (event->size().width() == event->oldSize().width()) return;
  height_ = 0;
  fitHeight();
}

void CompareHeadline::showVerdict(const ComparedRuns& compared) {
  times_->setVisible(compared.pair());
  if (!compared.pair()) return verdict_->setText(tr("Tick two runs to compare them"));
  const Comparison& c = compared.comparison;
  const std::string a = letter(compared.baseline).toStdString(), b = letter(compared.candidate).toStdString();
  verdict_->setText(with_units(QString::fromStdString(answer_text(c, a, b))));
  const ComparedMeasure& time = c.of(MeasureKind::StepTime);
  if (!time.delta.known()) return times_->setWords(tr("The step time of one is not known."));
  const bool differs = !noise_hides_all(time.a, time.b) || time.delta.verdict != Verdict::WithinNoise;
  const double delta = time.delta.delta;
  const auto number = [&](double value) { return fixed_text(value, time.a.decimals); };
  if (!differs)
    return times_->setWords(tr("Step time, median: %1 and %2 %3. The steps vary so much that no difference can be seen.")
                               .arg(number(time.a.value.value), number(time.b.value.value), QString::fromStdString(time.a.unit)));
  const auto with_sign = [&](double value) { return (value > 0 ? "+" : "") + number(value); };
  const double noise = time.delta.noise;
  times_->setWords(tr("Step time, median: %1 → %2 %3. Difference: %4 %3")
                      .arg(number(time.a.value.value), number(time.b.value.value), QString::fromStdString(time.a.unit), with_sign(delta)) +
                  (noise > 0 ? tr(" ([95 % interval]: %1 to %2)").arg(with_sign(delta - noise), with_sign(delta + noise)) : QString()));
}

void CompareHeadline::showJudged(const ComparedRuns& compared) {
  const Comparison& c = compared.comparison;
  const bool same_work = c.speed == Speed::WithinNoise || c.speed == Speed::Differs;
  judged_->setVisible(compared.pair() && compared.pinned && same_work);
  if (judged_->isHidden()) return judged_->clear();
  const ComparedMeasure& time = c.of(MeasureKind::StepTime);
  const StepVerdict judged = judge_step(time.a, time.b);
  judged_->setText(with_units(tr("Pinned baseline %1: %2 · limit %3").arg(letter(compared.baseline), QString::fromStdString(judged_text(judged)), QString::fromStdString(percent(judged.limit)))));
}

QString CompareHeadline::judgedText() const { return judged_->text(); }

// The most important causes. With more than two runs, also which run is the fastest.
void CompareHeadline::showCauses(const ComparedRuns& compared) {
  QStringList lines;
  if (compared.pair()) {
    const Comparison& c = compared.comparison;
    if (c.split && c.of(MeasureKind::StepTime).delta.verdict != Verdict::WithinNoise)
      lines << causes_text(c.by_kind);
    lines << changed_counts(c).toHtmlEscaped();
  }
  if (compared.runs.size() > 2) lines << fastest_of(compared);
  lines << where_recorded(compared);
  if (!compared.pair()) lines << tr("Train, change one setting and train again, or record a program twice: both are in the Runs list.");
  lines.removeAll(QString());
  causes_->setText(with_units(lines.join("<br>")));
}

void CompareHeadline::showChoices(const ComparedRuns& compared) {
  QStringList parts;
  for (const FieldChange& change : compared.comparison.choices)
    parts << QString("%1 <span style='color:%2'>%3 →</span> <b>%4</b>")
                 .arg(coloured(QString::fromUtf8(field(change.key).label.data()), theme().secondary),
                      theme().secondary.name(), QString::fromStdString(choice_text(change.from)).toHtmlEscaped(),
                      QString::fromStdString(choice_text(change.to)).toHtmlEscaped());
  const auto count = parts.size();
  if (count > 8) parts = parts.mid(0, 8) << tr("%1 more under Settings").arg(count - 8);
  choices_->setVisible(compared.pair() && compared.comparison.choices_known);
  choices_->setText(
      parts.isEmpty()
          ? tr("The same settings in both.")
          : QString("<b>%1 → %2: %3</b> &nbsp; ").arg(letter(compared.baseline), letter(compared.candidate), count == 1 ? tr("1 setting differs") : tr("%1 settings differ").arg(count)) +
                parts.join(" &nbsp;·&nbsp; "));
}

// Shows why a comparison with the baseline is unfair: each reason once, with the runs that it applies to.
void CompareHeadline::showWarnings(const ComparedRuns& compared) {
  std::vector<std::pair<QString, QString>> said;  // sentence, letters
  for (size_t i = 1; i < compared.runs.size(); ++i)
    for (const std::string& warning :
         warnings_of(*compared.figures[0], *compared.figures[i], letter(compared.runs[0]).toStdString(),
                     letter(compared.runs[i]).toStdString())) {
      const QString sentence = QString::fromStdString(warning);
      const auto at = std::ranges::find(said, sentence, &std::pair<QString, QString>::first);
      if (at == said.end())
        said.emplace_back(sentence, letter(compared.runs[i]));
      else
        at->second += ", " + letter(compared.runs[i]);
    }
  QStringList lines;
  for (const auto& [sentence, letters] : said)
    lines << (compared.runs.size() > 2 ? letters + ": " + sentence : sentence);
  warnings_->setVisible(!lines.isEmpty());
  warnings_->setText(coloured("▲ " + lines.join(" · "), theme().worse));
}

}  // namespace ws::app
