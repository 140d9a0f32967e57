#include "app/pages/insights/insight_card.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

using prof::Meaning;

constexpr int kRowHeight = 26, kNameWidth = 80, kValueWidth = 136, kLineNameWidth = 56;
constexpr float kAside = 0.28F;  // opacity of the parts that the insight is not about

QLabel* text_label(const QString& text, const QFont& font, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setFont(font);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

// The name of a kernel may be wider than the card: it may break after an underscore.
QString with_breaks(const QString& text) {
  constexpr qsizetype kLong = 30;
  QStringList words = text.split(' ');
  for (QString& word : words)
    if (word.size() > kLong) word.replace('_', QStringLiteral("_\u200b"));
  return words.join(' ');
}

QString code_html(const QString& code) { return QStringLiteral("<span style=\"font-family:'%1'\">%2</span>").arg(mono_font(12).family(), code.toHtmlEscaped()); }

// What stands in backticks is code.
QString with_code(const QString& text) {
  QStringList parts = text.split('`');
  for (qsizetype i = 0; i < parts.size(); ++i) parts[i] = i % 2 == 1 ? code_html(parts[i]) : parts[i].toHtmlEscaped();
  return parts.join(QString());
}

// The parts of the run's step in the order of prof::parts_of(); empty if the insight is about the mean step of all ranks, or of another rank.
std::vector<EvidenceBars::Part> split_of(const Insight& insight, const RunFacts& facts) {
  const bool other_step = (insight.step_us > 0 && !insight.of_median) || (insight.rank >= 0 && insight.rank != facts.rank);
  std::vector<EvidenceBars::Part> parts;
  const auto add = [&parts](prof::PartId id, double us) {
    if (us > 0) parts.push_back({id, us});
  };
  if (other_step) return parts;
  for (const Meaning meaning : prof::kPartOrder)
    if (meaning != Meaning::Idle) add({meaning}, facts.part(meaning) - (meaning == Meaning::Communication ? facts.rank_wait_us : 0));
  add({Meaning::Communication, prof::PartKind::RankWait}, facts.rank_wait_us);
  add({Meaning::Sync, prof::PartKind::InnerWait}, facts.inner_wait_us);
  add({Meaning::Idle, prof::PartKind::HostData}, facts.data_wait_us);
  add({Meaning::Idle}, facts.part(Meaning::Idle) - facts.data_wait_us);
  return parts;
}

QString change_in_time(double before, double after) {
  return (after > before ? "+" : "") + fixed_text(100 * (after - before) / before, 0) + " %";
}

}  // namespace

EvidenceBars::EvidenceBars(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

QSize EvidenceBars::sizeHint() const { return {360, rows_.empty() ? 0 : rows() * kRowHeight + 20}; }

QString EvidenceBars::nameOf(RowKind kind) const {
  if (kind != RowKind::Now) return kind == RowKind::Predicted ? tr("predicted") : tr("measured");
  if (whole_trace_) return tr("all the time");
  return of_ranks_ ? tr("step") : tr("median now");
}

// The parts in the order of every view. An insight may be about a time that is no part of the split.
void EvidenceBars::setParts(Row& now, const RunFacts& facts, const std::vector<Part>& split) {
  now.parts = split;
  for (const Meaning meaning : prof::kPartOrder)
    if (split.empty() && facts.part(meaning) > 0) now.parts.push_back({meaning == look_at_.meaning ? look_at_ : prof::PartId{meaning}, facts.part(meaning)});
  const auto meant = std::ranges::find(now.parts, look_at_, &Part::id);
  meant_us_ = of_itself_ ? facts.part(look_at_.meaning) : meant == now.parts.end() ? 0 : meant->us;
}

void EvidenceBars::setContent(const RunFacts& facts, const std::vector<Part>& split, const Insight& insight, const Tried* tried) {
  rows_.clear();
  step_us_ = facts.step_us;
  rule_ = QString::fromStdString(insight.rule), several_parts_ = insight.several_parts;
  host_waits_ = insight.host_waits_us > 0;
  look_at_ = {insight.look_at, insight.part}, of_ranks_ = insight.step_us > 0 && !insight.of_median, of_itself_ = insight.step_us > 0 || (insight.share > 0 && !host_waits_), whole_trace_ = facts.whole_trace;
  steps_ = of_ranks_ ? QString() : QString::fromStdString(prof::which_steps(facts.steps)) + (facts.rank < 0 ? QString() : tr(" of rank %1").arg(facts.rank));
  const bool judges_trace = insight.cost_ns > 0 && !of_itself_ && !host_waits_ && !insight.of_median && !facts.whole_trace;  // a step has other shares
  if (facts.step_us > 0 && !judges_trace) {
    Row now{RowKind::Now, timeText(facts.step_us), facts.step_us, {}, {}};
    setParts(now, facts, split);
    // A program without a GPU has nothing to split here.
    const bool idle_only = now.parts.size() == 1 && now.parts[0].id.meaning == Meaning::Idle;
    if (!idle_only) rows_.push_back(std::move(now));
    const auto against_now = [&](RowKind kind, double us) {
      if (us > 0) rows_.push_back({kind, timeText(us), us, {}, kind == RowKind::Measured ? change_in_time(facts.step_us, us) : QString()});  // the headline has the predicted one
    };
    const bool saves = insight.saves_us.known() && insight.saves_us.value > 0 && insight.saves_us.value < facts.step_us;
    against_now(RowKind::Predicted, insight.predicted_us > 0 || !saves ? insight.predicted_us : facts.step_us - insight.saves_us.value);
    if (tried) against_now(RowKind::Measured, tried->measured_us);
  }
  share_in_text_ = !rows_.empty() && insight.why.find(shareText().toStdString()) != std::string::npos;
  QStringList words;
  for (const Row& row : rows_) words << (nameOf(row.kind) + " " + row.value + " " + row.change).trimmed();
  setAccessibleName((whole_trace_ ? tr("The time: %1") : tr("A step: %1")).arg(words.join(", ")) + (steps_.isEmpty() ? QString() : " · " + steps_));
  updateGeometry();
  update();
}

std::vector<prof::PartId> EvidenceBars::colours() const {
  constexpr double kSeen = 0.002;  // a smaller share of the longest bar is less than a pixel
  std::vector<prof::PartId> colours;
  for (const Row& row : rows_)
    for (const Part& part : row.parts)
      if (part.us > kSeen * row.us) colours.push_back(part.id);
  if (meant_us_ > 0 && !colours.empty()) colours.push_back(look_at_);
  return colours;
}

QString EvidenceBars::timeText(double us) const { return text(time_text(us, step_us_)); }

QString EvidenceBars::nameOfPart() const {
  if (look_at_.kind != prof::PartKind::OfMeaning) return QString::fromUtf8(prof::part_name(look_at_));
  if (of_itself_) return rule_;
  if (whole_trace_ && look_at_.meaning == Meaning::Idle) return tr("%1, %2").arg(ws::app::meaning_name(Meaning::Idle), QString::fromUtf8(prof::path_cause_name({prof::PathCause::HostBetweenCalls})));
  return whole_trace_ && look_at_.meaning == Meaning::Sync ? tr("%1 while no kernel runs").arg(ws::app::meaning_name(Meaning::Sync)) : ws::app::meaning_name(look_at_.meaning);
}

// True if the insight is about a share of this part: then it has as large a share of each of its parts.
bool EvidenceBars::isOneOfSeveral(const Part& part) const {
  return part.id.kind == prof::PartKind::OfMeaning && std::ranges::find(several_parts_, part.id.meaning) != several_parts_.end();
}

// All parts pale, and the meant time at the place of its part or parts.
void EvidenceBars::paintParts(QPainter& painter, const Row& row, const QRectF& bar, double scale) const {
  double x = bar.left(), meant = bar.left(), several = 0;
  for (const Part& part : row.parts) several += isOneOfSeveral(part) ? part.us : 0;
  painter.setOpacity(meant_us_ > 0 ? static_cast<double>(kAside) : 1);
  for (const Part& part : row.parts) {
    if (part.id == look_at_) meant = x;
    draw_fill(painter, QRectF(x, bar.top(), part.us * scale, bar.height()), part_brush(part.id));
    if (isOneOfSeveral(part)) {
      const QRectF share(x, bar.top(), part.us * scale * std::min(1.0, meant_us_ / several), bar.height());
      painter.setOpacity(1);
      painter.fillRect(share, theme().base);
      draw_fill(painter, share, part_brush(part.id));
      painter.setOpacity(static_cast<double>(kAside));
    }
    x += part.us * scale;
  }
  painter.setOpacity(1);
  if (row.parts.empty() || !(meant_us_ > 0) || several > 0) return;
  const QRectF box(std::max(bar.left(), std::min(meant, bar.right() - meant_us_ * scale)), bar.top(), meant_us_ * scale, bar.height());
  painter.fillRect(box, theme().base);
  draw_fill(painter, box, part_brush(look_at_));
}

void EvidenceBars::paintRow(QPainter& painter, const Row& row, const QRectF& box, double scale) const {
  const Theme& t = theme();
  painter.setFont(ui_font(11));
  painter.setPen(t.secondary);
  painter.drawText(QRectF(box.left(), box.top(), kNameWidth - 8, box.height()), Qt::AlignLeft | Qt::AlignVCenter,
                   nameOf(row.kind));
  double x = box.left() + kNameWidth;
  const QRectF bar(x, box.top() + 4, row.us * scale, box.height() - 8);
  paintParts(painter, row, bar, scale);
  if (row.parts.empty()) {
    QPen outline(t.strong_border, 1, row.kind == RowKind::Predicted ? Qt::DashLine : Qt::SolidLine);
    painter.setPen(outline);
    painter.setBrush(t.raised);
    painter.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5));
  }
  painter.setFont(ui_font(12, 600));
  painter.setPen(t.text);
  const QRectF value(bar.right() + 8, box.top(), kValueWidth, box.height());
  draw_number(painter, value, Qt::AlignLeft | Qt::AlignVCenter, row.value);
  if (row.change.isEmpty()) return;
  const double after = number_width(painter.font(), row.value) + 8;
  painter.setFont(ui_font(12));
  painter.setPen(t.secondary);
  draw_number(painter, value.adjusted(after, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, row.change);
}

void EvidenceBars::paintEvent(QPaintEvent*) {
  if (rows_.empty()) return;
  QPainter painter(this);
  double most = 0;
  for (const Row& row : rows_) most = std::max(most, row.us);
  const double scale = std::max(10.0, width() - kNameWidth - kValueWidth - 8.0) / most;
  for (int i = 0; i < rows(); ++i)
    paintRow(painter, rows_[static_cast<size_t>(i)], QRectF(0, i * kRowHeight, width(), kRowHeight), scale);
  painter.setPen(theme().secondary);
  painter.setFont(ui_font(11));
  painter.drawText(QRectF(kNameWidth, rows() * kRowHeight, width() - kNameWidth, 18), Qt::AlignLeft | Qt::AlignVCenter, caption());
}

QString EvidenceBars::shareText() const {
  return meant_us_ < 0.005 * rows_[0].us ? tr("less than 1 %") : tr("%1 %").arg(std::lround(100 * meant_us_ / rows_[0].us));
}

QString EvidenceBars::caption() const {
  if (rows_.empty() || rows_[0].parts.empty() || !(meant_us_ > 0)) return {};
  QString of = whole_trace_ ? tr("the time") : steps_.isEmpty() ? tr("the step") : tr("the median");
  if (!steps_.isEmpty()) of += tr(" of %1").arg(steps_);
  if (share_in_text_ || host_waits_) return tr("%1, in %2").arg(nameOfPart(), of);  // the host also waits while the GPU works
  return tr("%1: %2 of %3").arg(nameOfPart(), shareText(), of);
}

InsightCard::InsightCard(const RunFacts& facts, const Insight& insight, const AdviceLines& lines, QWidget* parent)
    : QFrame(parent), facts_(facts_for(insight, facts)), split_(split_of(insight, facts)), insight_(insight) {
  facts_.plan = nullptr;  // the plan belongs to the run, which may be deleted before the card
  style_ground(*this, "panel");
  setAccessibleName(QString::fromStdString(insight.rule));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(16, 12, 16, 12);
  row->setSpacing(26);
  auto* words = new QVBoxLayout;
  words->setSpacing(5);
  words->addWidget(text_label(with_capital(with_units(QString::fromStdString(insight.headline))), ui_font(14, 600), this));
  words->addLayout(buildLines(lines));
  result_ = text_label({}, ui_font(12.5, 600), this);
  words->addWidget(result_);
  auto* buttons = new QHBoxLayout;
  apply_ = new QPushButton(tr("Apply and train again"), this);
  apply_->setAccessibleName(tr("Apply and train again: %1").arg(QString::fromStdString(insight.rule)));
  apply_->setVisible(!insight.change.empty());
  buttons->addWidget(apply_);
  addShow(insight, tr("Show in timeline"), buttons);
  for (const Insight& finding : insight.same_part) addShow(finding, tr("Show in timeline"), buttons);
  for (const Insight& part : insight.includes) addShow(part, tr("Show this part"), buttons);
  blocked_ = text_label({}, ui_font(12), this);
  blocked_->setForegroundRole(QPalette::PlaceholderText);
  blocked_->hide();
  buttons->addWidget(blocked_, 100);
  buttons->addStretch(1);
  words->addSpacing(4);
  words->addLayout(buttons);
  words->addStretch(1);
  row->addLayout(words, 5);
  bars_ = new EvidenceBars(this);
  row->addWidget(bars_, 6, Qt::AlignVCenter);
  connect(apply_, &QPushButton::clicked, this, &InsightCard::applyClicked);
  setTried(nullptr);
}

QGridLayout* InsightCard::buildLines(const AdviceLines& lines) {
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(12), grid->setVerticalSpacing(4);
  grid->setColumnMinimumWidth(0, kLineNameWidth), grid->setColumnStretch(1, 1);
  const auto add = [&](const QString& name, const QString& words, const std::string& tip, bool quiet) {
    if (words.isEmpty()) return;
    QLabel* title = text_label(name, ui_font(12), this);
    title->setForegroundRole(QPalette::PlaceholderText);
    QLabel* line = text_label(words, ui_font(12.5), this);
    line->setToolTip(with_units(QString::fromStdString(tip)));
    if (quiet) line->setForegroundRole(QPalette::PlaceholderText);
    grid->addWidget(title, grid->rowCount(), 0, Qt::AlignTop), grid->addWidget(line, grid->rowCount() - 1, 1);
  };
  QStringList change{changeText(), with_code(with_units(QString::fromStdString(lines.how)))};
  change.removeAll(QString());
  add(tr("why"), with_breaks(with_units(QString::fromStdString(lines.why))), lines.more, false);
  add(tr("do"), change.join(QStringLiteral("<br>")), lines.more, false);
  add(tr("how sure"), with_units(QString::fromStdString(lines.sure)), lines.checked, true);
  return grid;
}

void InsightCard::addShow(const Insight& shown, const QString& words, QHBoxLayout* buttons) {
  auto* button = new QPushButton(shown.shows_gap ? tr("Show the longest gap") : words, this);
  button->setAccessibleName(tr("Show in the timeline: %1").arg(QString::fromStdString(shown.rule)));
  buttons->addWidget(button);
  shows_.push_back({shown, button});
  connect(button, &QPushButton::clicked, this, [this, shown] { emit showClicked(shown); });
}

QString InsightCard::changeText() const {
  QStringList parts;
  for (const auto& [key, value] : insight_.change)
    parts << QString("%1 %2 → %3")
                 .arg(QString::fromUtf8(field(key).label.data(), static_cast<int>(field(key).label.size())),
                      code_html(QString::fromStdString(field_text(facts_.spec, key))), code_html(QString::fromStdString(value)));
  return parts.join(QStringLiteral("<br>"));
}

void InsightCard::setTried(const Tried* tried) {
  bars_->setContent(facts_, split_, insight_, tried);
  result_->setVisible(tried != nullptr);
  if (!tried) return result_->clear();
  if (!tried->problem.isEmpty()) return result_->setText(tried->problem);
  if (tried->running) return result_->setText(tr("Training with the change. The measured time appears here."));
  QStringList words;
  if (insight_.predicted_us > 0) words << tr("predicted %1").arg(time_axis_text(insight_.predicted_us));
  if (tried->measured_us > 0) words << tr("measured median %1").arg(time_axis_text(tried->measured_us));
  if (tried->measured_us > 0 && facts_.step_us > 0) words << change_in_time(facts_.step_us, tried->measured_us);
  if (insight_.predicted_us <= 0)
    words << tr("loss %1 → %2, before %3")
                 .arg(significant_text(tried->first_loss), significant_text(tried->last_loss),
                      significant_text(facts_.last_loss));
  result_->setText(words.join(" · "));
}

QString InsightCard::resultText() const { return result_->text(); }

void InsightCard::setBlocked(const QString& why, bool shown) {
  apply_->setEnabled(why.isEmpty());
  apply_->setToolTip(why);
  blocked_->setText(why);
  blocked_->setVisible(shown && !why.isEmpty());
}

void InsightCard::setShowable(const std::function<bool(const Insight&)>& can) {
  for (const Show& show : shows_) {
    const bool on = can(show.insight);
    show.button->setVisible(show.insight.look_at != Meaning::Other);  // a loss has no place in the timeline
    show.button->setEnabled(on);
    show.button->setToolTip(on ? tr("Go to the longest one in the timeline") : tr("None in the part of the trace that is in memory"));
  }
}

}  // namespace ws::app
