#include "app/charts/split_pane.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "app/charts/series.h"
#include "app/widgets/glossary.h"
#include "app/widgets/theme.h"
#include "app/widgets/tip.h"
#include "app/text/units.h"
#include "app/workspace/closing_line.h"
#include "app/workspace/report_reader.h"
#include "profiling/base/table.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

using prof::Meaning;

constexpr double kLeastRow = 12.5, kTightRow = 15, kSplitRow = 21, kSplitHeading = 17, kBarsTop = 34, kBarGap = 4;
constexpr double kSplitNames = 130, kSplitPitch = 56;  // widths of the columns of a table

// Kernels that compute are one part in a small pane. What ranks wait for and transfer is another question.
using prof::computes;

bool hatched(Meaning m) { return m == Meaning::Idle || m == Meaning::Launch; }

double part_of(const StepSplit& split, Meaning meaning, const QString& name = {}) {
  double sum = 0;
  for (const SplitPart& part : split.parts)
    if (part.meaning == meaning && part.name == name) sum += part.us;
  return sum;
}

// Parts with their own names, in order of appearance.
std::vector<SplitRow> named_rows(const std::vector<const StepSplit*>& splits, double unit) {
  std::vector<SplitRow> rows;
  for (const StepSplit* split : splits)
    for (const SplitPart& part : split->parts) {
      const auto same = [&part](const SplitRow& row) { return row.meaning == part.meaning && row.name == part.name; };
      if (!part.name.isEmpty() && std::ranges::none_of(rows, same)) rows.push_back({part.meaning, part.name, {}, part.kind});
    }
  for (SplitRow& row : rows)
    for (const StepSplit* split : splits) row.us.push_back(part_of(*split, row.meaning, row.name) / unit);
  return rows;
}

// In a small pane, parts that are tiny in every run are merged into one row. All rows then fit and still add up.
void merge_small(SplitTable& table) {
  constexpr double kNext = 0.015;
  const auto other = std::ranges::find(table.rows, Meaning::Other, &SplitRow::meaning);
  if (other == table.rows.end()) return;
  for (SplitRow& row : table.rows) {
    if (row.meaning == Meaning::Other || row.meaning == Meaning::Idle || computes(row.meaning)) continue;
    bool small = true;
    for (size_t i = 0; i < row.us.size(); ++i) small = small && row.us[i] < kNext * table.wall[i];
    if (!small) continue;
    for (size_t i = 0; i < row.us.size(); ++i) other->us[i] += std::exchange(row.us[i], 0);
    other->name = QObject::tr("other");
  }
}

// Each part is rounded as on the other pages, and "other" takes what the sum needs. Without such a row, all parts share it.
std::vector<double> rounded_column(const SplitTable& table, size_t column) {
  const double unit = std::pow(10.0, -table.decimals());
  std::vector<double> parts, units;
  for (const SplitRow& row : table.rows) parts.push_back(row.us[column]), units.push_back(std::round(row.us[column] / unit));
  const auto other = static_cast<size_t>(std::ranges::find(table.rows, Meaning::Other, &SplitRow::meaning) - table.rows.begin());
  if (other == table.rows.size()) return round_to_sum(parts, table.wall[column], table.decimals());
  units[other] += std::round(table.wall[column] / unit) - std::accumulate(units.begin(), units.end(), 0.0);
  if (units[other] < 0) return round_to_sum(parts, table.wall[column], table.decimals());
  for (double& part : units) part *= unit;
  return units;
}

}  // namespace

QString SplitTable::text(double time) const { return in_ms ? fixed_text(time, decimals()) : us_text(time); }

SplitTable split_table(const std::vector<const StepSplit*>& splits, bool merged) {
  SplitTable table;
  double least = INFINITY, most = 0;
  for (const StepSplit* split : splits) {
    table.wall.push_back(split->wall_us);
    if (split->wall_us > 0) least = std::min(least, split->wall_us), most = std::max(most, split->wall_us);
  }
  constexpr double kKeepsDigits = 100;  // of the shortest step
  table.in_ms = StepUnit(most).ms && least >= kKeepsDigits;
  table.thousandths = !StepUnit(least).ms;
  const double unit = table.in_ms ? 1000 : 1;
  for (double& wall : table.wall) wall /= unit;
  std::vector<Meaning> kernels;
  for (Meaning meaning : prof::kPartOrder) {
    if (meaning == Meaning::Idle)
      for (SplitRow& row : named_rows(splits, unit)) table.rows.push_back(std::move(row));
    SplitRow row{meaning, ws::app::meaning_name(meaning), {}};
    for (const StepSplit* split : splits) row.us.push_back(part_of(*split, meaning) / unit);
    if (computes(meaning) && std::ranges::any_of(row.us, [](double us) { return us > 0; })) kernels.push_back(meaning);
    if (merged && computes(meaning) && !table.rows.empty()) {
      for (size_t i = 0; i < row.us.size(); ++i) table.rows.front().us[i] += row.us[i];
      continue;
    }
    if (merged && computes(meaning)) row.name = QObject::tr("computing");
    table.rows.push_back(std::move(row));
  }
  // Kernels of one kind keep their name.
  if (merged && kernels.size() == 1) table.rows.front().meaning = kernels[0], table.rows.front().name = ws::app::meaning_name(kernels[0]);
  if (merged) merge_small(table);
  std::erase_if(table.rows, [](const SplitRow& row) {
    return std::all_of(row.us.begin(), row.us.end(), [](double us) { return us <= 0; });
  });
  for (SplitRow& row : table.rows) row.share = table.wall[0] > 0 ? row.us[0] / table.wall[0] : 0;
  for (size_t column = 0; column < splits.size(); ++column) {
    const std::vector<double> rounded = rounded_column(table, column);
    for (size_t i = 0; i < rounded.size(); ++i) table.rows[i].us[column] = rounded[i];
  }
  // Parts that round to zero in every run are left out. The columns still add up.
  std::erase_if(table.rows, [](const SplitRow& row) {
    return std::all_of(row.us.begin(), row.us.end(), [](double us) { return us <= 0; });
  });
  return table;
}

SplitPane::SplitPane(QWidget* parent) : Pane(tr("Step time split"), parent) {
  setTitle(tr("Step time split"), tr("µs per step"));
  auto* space = new QWidget(this);  // painted by the pane itself
  space->setAttribute(Qt::WA_TransparentForMouseEvents);
  setBody(space);
  setMinimumSize(220, 120);
}

void SplitPane::setRuns(const std::vector<Run*>& runs) {
  for (const auto& run : runs_)
    if (run) disconnect(run, nullptr, this, nullptr);
  runs_.assign(runs.begin(), runs.end());
  if (runs.size() > 2) std::ranges::stable_sort(runs_, {}, [](const QPointer<Run>& run) { return run->slot; });  // a pair is baseline and current run
  for (Run* run : runs) connect(run, &Run::changed, this, &SplitPane::refresh);
  refresh();
}

void SplitPane::setCompact(bool compact) {
  compact_ = compact;
  refresh();
}

void SplitPane::refresh() {
  std::vector<const StepSplit*> splits;
  std::set<std::string> which;
  std::erase_if(runs_, [](const QPointer<Run>& run) { return !run; });
  for (const auto& run : runs_) {
    splits.push_back(&run->split);
    if (run->split.steps > 0) which.insert(run->split.which);
  }
  merged_ = false, table_ = split_table(splits, false);
  if (compact_ && tightHeight() > height()) merged_ = true, table_ = split_table(splits, true);
  const QString unit = table_.in_ms ? tr("ms") : tr("µs");
  const QString steps = which.size() == 1 ? QString::fromStdString(*which.begin()) : tr("each run's steps");
  const QString note = which.empty() ? unit : tr("%1 · median of %2").arg(unit, steps);
  const StepSplit* const only = runs_.size() == 1 ? &runs_[0]->split : nullptr;
  const QString of_rank = only && only->rank >= 0 ? tr(" · rank %1").arg(only->rank) : QString();
  setTitle(tr("Step time split"), only ? note + of_rank : note,
           only && only->short_launches ? tr("%1 in short launches").arg(note) : note);
  QStringList said;
  for (const auto& run : runs_)
    said << tr("%1 of %2 %3").arg(step_time_name(), run_letter(run->slot), step_time_text(run->stepUs()));
  for (const SplitRow& row : table_.rows) said << row.name + " " + fixed_text(row.us.front(), 1) + " " + unit;
  setAccessibleDescription(said.join(", "));
  update();
}

// The difference gets its own column if three columns of numbers fit. In a low pane all parts with their colours matter more.
bool SplitPane::differences() const {
  const bool fits = width() >= (compact_ ? 2 * (kSplitNames + 3 * kSplitPitch) : 300);
  return runs_.size() == 2 && table_.wall.size() == 2 && !merged_ && fits;
}

// A share of the step is shown beside the only run if there is space for more than one table side by side.
size_t SplitPane::columns() const {
  return runs_.size() + (differences() || (runs_.size() == 1 && isWide()) ? 1 : 0);
}

// Narrower columns, if so two tables fit side by side.
double SplitPane::columnPitch() const {
  constexpr double kLeastPitch = 46;
  const auto count = static_cast<double>(std::max<size_t>(1, columns()));
  const double alone = std::min(kSplitPitch, (width() - kSplitNames) / count), beside = (width() / 2.0 - kSplitNames) / count;
  return isWide() && beside >= kLeastPitch ? std::min(alone, beside) : alone;
}

bool SplitPane::isWide() const { return width() >= 2 * (kSplitNames + 2 * kSplitPitch); }

void SplitPane::resizeEvent(QResizeEvent* event) {
  Pane::resizeEvent(event);
  refresh();
}

// In a wide pane the rows and their sum continue in a second table, a third, …: numbers stay beside their names.
SplitPane::Tables SplitPane::tables() const {
  const size_t lines = table_.rows.size() + 1;
  if (!isWide()) return {1, lines, width() * 1.0};
  const double each = kSplitNames + columnPitch() * static_cast<double>(columns());
  const size_t most = std::max<size_t>(1, static_cast<size_t>(width() / each));
  const size_t rows = (lines + most - 1) / most;
  const size_t count = (lines + rows - 1) / rows;
  return {count, rows, each};
}

double SplitPane::columnRight(double left, size_t column) const {
  return left + tables().width - 10 - columnPitch() * static_cast<double>(columns() - 1 - column);
}

double SplitPane::tableTop() const { return kBarsTop + static_cast<double>(runs_.size()) * (barHeight() + kBarGap) + kSplitHeading; }
int SplitPane::wantedHeight() const { return static_cast<int>(tableTop() + kSplitRow * static_cast<double>(tables().rows) + 14); }
// Rows that are as low as they can be, without the sum.
double SplitPane::tightHeight() const { return tableTop() + kLeastRow * static_cast<double>(tables().rows - 1) + 6; }

// All bars are visible, with their letters. Many bars become thinner to leave space for the table.
double SplitPane::barHeight() const {
  constexpr double kLeast = 12;
  const double most = runs_.size() > 2 || compact_ ? 17 : 21;
  if (runs_.size() <= 3) return most;
  const double table = kSplitHeading + kTightRow * static_cast<double>(tables().rows) + 6;
  return std::clamp((height() - kBarsTop - table) / static_cast<double>(runs_.size()) - kBarGap, kLeast, most);
}

// How much faster or slower the current run is than the baseline.
QString SplitPane::speedText() const {
  if (runs_.size() != 2) return {};
  return speed_against(*runs_[1], *runs_[0], run_letter(runs_[0]->slot));
}

QString SplitPane::endText(size_t run) const {
  const double us = runs_[run]->stepUs();
  const bool in_ms = StepUnit(us).ms;
  if (in_ms == table_.in_ms) return step_time_text(us);
  return in_ms ? tr("%1 µs").arg(us_text(us)) : tr("%1 ms").arg(fixed_text(us / 1000, table_.decimals()));
}

double SplitPane::paintBars(QPainter& painter, double top) {
  const double widest = *std::max_element(table_.wall.begin(), table_.wall.end());
  double ends = 70;
  for (size_t i = 0; i < runs_.size(); ++i) ends = std::max(ends, number_width(ui_font(12.5, 600), endText(i)) + 4);
  const double left = 32, space = width() - left - 12 - ends;
  const double bar = barHeight();
  for (size_t i = 0; i < runs_.size(); ++i, top += bar + kBarGap) {
    draw_badge(painter, QRectF(10, top + (bar - 15) / 2, 15, 15), runs_[i]->slot);
    double x = left;
    for (const SplitRow& row : table_.rows) {
      const double width = widest > 0 ? row.us[i] / widest * space : 0;
      if (width < 0.3) continue;
      draw_fill(painter, QRectF(x, top, width, bar), part_brush({row.meaning, row.kind}));
      const QString text = table_.text(row.us[i]);
      painter.setFont(ui_font(10.5, 500));
      if (!hatched(row.meaning) && bar > 12 && number_width(painter.font(), text) + 10 < width) {
        painter.setPen(theme().ink_on(part_colour({row.meaning, row.kind})));
        draw_number(painter, QRectF(x + 5, top, width, bar), Qt::AlignLeft | Qt::AlignVCenter, text);
      }
      x += width;
    }
    painter.setFont(ui_font(12.5, 600));
    painter.setPen(theme().text);
    const QString time = endText(i);
    draw_number(painter, QRectF(x + 6, top, ends, bar), Qt::AlignLeft | Qt::AlignVCenter, time);
    const double value_end = x + 6 + number_width(painter.font(), time) + 6;
    if (const QString text = i == 1 ? speedText() : QString(); !text.isEmpty()) {
      painter.setFont(ui_font(11));
      painter.setPen(theme().secondary);
      const QRectF place(value_end, top, width() - value_end - 4, bar);
      if (QFontMetricsF(painter.font()).horizontalAdvance(text) < place.width())
        painter.drawText(place, Qt::AlignLeft | Qt::AlignVCenter, text);
    }
  }
  return top;
}

void SplitPane::paintNumbers(QPainter& painter, const std::vector<double>& us, double share, double left, double y, double height) {
  const auto put = [&](size_t column, const QString& text) {
    draw_number(painter, QRectF(left, y, columnRight(left, column) - left, height), Qt::AlignRight | Qt::AlignVCenter, text);
  };
  for (size_t i = 0; i < us.size(); ++i) put(i, us[i] > 0 ? table_.text(us[i]) : QStringLiteral("—"));  // it does not exist or was not traced
  if (differences()) return put(us.size(), (us[1] > us[0] ? "+" : "") + table_.text(us[1] - us[0]));
  if (columns() > us.size() && table_.wall[0] > 0) put(us.size(), fixed_text(share * 100, 1) + " %");
}

void SplitPane::paintRow(QPainter& painter, const SplitRow& row, double left, double y, double height) {
  draw_fill(painter, QRectF(left + 10, y + height / 2 - 5.5, 11, 11), part_brush({row.meaning, row.kind}));
  painter.setFont(word_font(ui_font(11.5), row.name));
  painter.setPen(theme().secondary);
  QRectF name;
  painter.drawText(QRectF(left + 28, y, kSplitNames, height), Qt::AlignLeft | Qt::AlignVCenter, row.name, &name);
  if (const Word* word = word_of(row.name)) words_.emplace_back(name, word_tip(*word));
  painter.setFont(ui_font(11.5));
  paintNumbers(painter, row.us, row.share, left, y, height);
}

// Only the colours with names, if there is no space for a column of numbers per run.
void SplitPane::paintNames(QPainter& painter, double top) {
  constexpr double kLine = 14, kSwatch = 15;
  painter.setFont(ui_font(11));
  double x = 10;
  top += 2;
  for (const SplitRow& row : table_.rows) {
    const double width = kSwatch + painter.fontMetrics().horizontalAdvance(row.name) + 12.0;
    if (x + width > this->width() && x > 10) x = 10, top += kLine;
    if (top + kLine > height()) return;
    draw_fill(painter, QRectF(x, top + 3, 9, 9), part_brush({row.meaning, row.kind}));
    painter.setPen(theme().secondary);
    painter.drawText(QRectF(x + kSwatch, top, width, kLine), Qt::AlignLeft | Qt::AlignVCenter, row.name);
    x += width;
  }
}

void SplitPane::paintTable(QPainter& painter, double top) {
  constexpr double kNumber = 36;
  const Tables tables = this->tables();
  const double needed = kTightRow * static_cast<double>(std::min<size_t>(3, tables.rows)) + kSplitHeading;
  if (columnPitch() < kNumber || height() - top < needed) return paintNames(painter, top);
  for (size_t i = 0; i < tables.count; ++i) paintHeading(painter, tables.width * static_cast<double>(i), top);
  top += kSplitHeading;
  const double space = height() - top - 6;
  const auto rows = static_cast<double>(tables.count > 1 ? tables.rows : table_.rows.size());
  // The sum stands at the end of the bars, too: it is left out where rows would overlap.
  const double sum = tables.count > 1 ? 0 : 1.3;  // of several tables, one row is the sum
  const bool with_sum = space / (rows + sum) >= kLeastRow;
  const double pitch = std::clamp(space / (rows + (with_sum ? sum : 0)), 11.0, kSplitRow);
  for (size_t i = 0; i <= table_.rows.size(); ++i) {
    const double left = tables.width * static_cast<double>(i / tables.rows);
    const double y = top + pitch * static_cast<double>(i % tables.rows);
    if (y + pitch > height()) continue;
    if (i < table_.rows.size())
      paintRow(painter, table_.rows[i], left, y + 1, pitch);
    else if (with_sum)
      paintSum(painter, left, y, pitch);
  }
  paintWaits(painter, top + pitch * static_cast<double>(tables.rows));
}

// What such parts have in common, if there is space: "allocator calls" is no time of the calls, but of the GPU.
void SplitPane::paintWaits(QPainter& painter, double top) {
  constexpr double kLine = 16;
  QStringList names;
  for (const SplitRow& row : table_.rows)
    if (prof::gpu_waits_in({row.meaning, row.kind})) names << row.name;
  const bool gpu = std::ranges::all_of(runs_, [](const QPointer<Run>& run) { return run && prof::used_gpu(run->trace); });
  const QString text = QStringLiteral("%1: %2").arg(names.join(QStringLiteral(", ")), QString::fromUtf8(prof::kGpuWaits));
  painter.setFont(ui_font(11));
  if (!gpu || names.isEmpty() || height() - top < kLine || QFontMetricsF(painter.font()).horizontalAdvance(text) > width() - 20) return;
  painter.setPen(theme().quiet);
  painter.drawText(QRectF(10, height() - kLine - 2, width() - 20, kLine), Qt::AlignLeft | Qt::AlignVCenter, text);
}

void SplitPane::paintHeading(QPainter& painter, double left, double top) {
  painter.setFont(ui_font(11));
  painter.setPen(theme().quiet);
  const auto put = [&](size_t column, const QString& text) {
    painter.drawText(QRectF(left, top, columnRight(left, column) - left, 15), Qt::AlignRight | Qt::AlignVCenter, text);
  };
  for (size_t i = 0; i < runs_.size(); ++i) put(i, run_letter(runs_[i]->slot));
  if (differences()) put(2, run_letter(runs_[1]->slot) + QString::fromUtf8(" − ") + run_letter(runs_[0]->slot));
  painter.fillRect(QRectF(left + 10, top + kSplitHeading, tables().width - 20, 1), theme().border);
}

void SplitPane::paintSum(QPainter& painter, double left, double top, double pitch) {
  painter.fillRect(QRectF(left + 10, top + 2, tables().width - 20, 1), theme().border);
  painter.setFont(ui_font(11.5, 600));
  painter.setPen(theme().text);
  painter.drawText(QRectF(left + 10, top + 3, kSplitNames, pitch), Qt::AlignLeft | Qt::AlignVCenter, step_time_name());
  paintNumbers(painter, table_.wall, 1, left, top + 3, pitch);
}

// Beside the title: which steps do not count.
QString SplitPane::wordAt(QPointF at) const {
  QStringList left_out;
  for (const auto& run : runs_)
    if (run && at.y() < kBarsTop && !run->split.left_out.isEmpty() && !left_out.contains(run->split.left_out)) left_out << run->split.left_out;
  if (!left_out.isEmpty()) return left_out.join('\n');
  const auto word = std::ranges::find_if(words_, [at](const auto& each) { return each.first.contains(at); });
  return word == words_.end() ? QString() : word->second;
}

void SplitPane::mousePressEvent(QMouseEvent* event) {
  QToolTip::showText(event->globalPosition().toPoint(), wordAt(event->position()), this);
}

bool SplitPane::event(QEvent* event) {
  return showed_tip(event, this, [this](QPointF at) { return wordAt(at); }) || Pane::event(event);
}

void SplitPane::paintEvent(QPaintEvent* event) {
  words_.clear();
  Pane::paintEvent(event);
  QPainter painter(this);
  const bool any = std::any_of(table_.wall.begin(), table_.wall.end(), [](double wall) { return wall > 0; });
  if (!any || runs_.empty()) {
    painter.setFont(ui_font(11.5));
    painter.setPen(theme().quiet);
    const QString reason =
        runs_.empty()                      ? tr("Click a run, or press Train")
        : runs_.front()->live()            ? tr("Filled with the first traced steps")
        : runs_.front()->command.isEmpty() ? tr("No step of this run was traced. Choose a trace level and train again.")
                                           : tr("No steps were found in this program. Mark them with warpsight.step().");
    painter.drawText(rect().adjusted(12, 28, -12, 0), Qt::AlignCenter | Qt::TextWordWrap, reason);
    return;
  }
  paintTable(painter, paintBars(painter, kBarsTop) + 2);
}

}  // namespace ws::app
