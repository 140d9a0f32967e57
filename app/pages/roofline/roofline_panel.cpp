#include "app/pages/roofline/roofline_panel.h"

#include <QMouseEvent>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "app/widgets/headlined.h"
#include "app/widgets/theme.h"
#include "app/widgets/tip.h"
#include "app/text/units.h"
#include "app/core/runs/plan_times.h"
#include "app/core/runs/run_ceilings.h"
#include "app/timeline/meaning_legend.h"
#include "app/timeline/time_scale.h"
#include "engine/devices/devices.h"
#include "engine/lab/ceilings.h"
#include "engine/plan/op_tags.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr int kRooflineRefreshMs = 1500, kChartLeft = 88, kChartBottom = 40, kChartTop = 22, kChartRight = 20;
constexpr double kReach = 9;  // of the pointer
constexpr double kNamedFrom = 0.35;  // a slope has its name at this share of the width
constexpr prof::TimeNs kNewest = 2'000'000'000;

QString power_text(int power, const char* unit) {
  static const char* const kPrefix[] = {"", "k", "M", "G", "T", "P"};
  const int third = std::clamp(power / 3, 0, 5);
  return QString::number(std::pow(10.0, power - third * 3), 'g', 4) + " " + kPrefix[third] + unit;
}

double of_precision(Precision precision, double fp32, double tf32, double half) {
  return precision == Precision::Fp32 ? fp32 : precision == Precision::Tf32 ? tf32 : half;
}

std::vector<std::pair<QString, double>> products_of(double fp32, double tf32, double half) {
  std::vector<std::pair<QString, double>> known;
  for (const auto& [name, value] : {std::pair{QObject::tr("fp32"), fp32},
                                    {QObject::tr("tf32 tensor cores"), tf32},
                                    {QObject::tr("fp16 and bf16 tensor cores"), half}})
    if (value > 0) known.emplace_back(name, value);
  return known;
}

// From the vendors' data sheets, dense, without sparsity: FLOP/s and B/s. None of them has L2.
struct Sheet {
  const char* part;
  double fp32, tf32, half, bytes;
};
const Sheet* sheet_of(const QString& device) {
  static constexpr Sheet kKnown[] = {{"H200", 67e12, 494e12, 989e12, 4.8e12},
                                     {"H100", 67e12, 494e12, 989e12, 3.35e12},
                                     {"A100", 19.5e12, 156e12, 312e12, 2.0e12}};
  for (const Sheet& sheet : kKnown)
    if (device.contains(QLatin1String(sheet.part))) return &sheet;
  return nullptr;
}

Roof with_sheet(Roof roof, const QString& device) {
  if (const Sheet* sheet = sheet_of(device)) roof.dram_peak_bytes_per_s = sheet->bytes;
  return roof;
}

std::optional<Roof> measured_roof(const lab::Ceilings& seen, Precision precision) {
  const double flops = of_precision(precision, seen.fp32_flops_s, seen.tf32_flops_s, seen.fp16_flops_s);
  if (!(flops > 0 && seen.read_write_bytes_s > 0)) return std::nullopt;
  Roof roof{{flops, seen.read_write_bytes_s}, true, false, QObject::tr("measured on this machine")};
  roof.products = products_of(seen.fp32_flops_s, seen.tf32_flops_s, seen.fp16_flops_s);
  roof.l2_bytes_per_s = seen.l2_bytes_s;
  return roof;
}

// A persistent kernel runs whole steps. The times of its training ops come from the stamps inside it.
void add_inner_ops(std::vector<prof::RooflinePoint>& points, const Run& run, const prof::Ceilings& ceilings) {
  const bool known = std::ranges::any_of(points, [](const auto& p) { return p.phase != "evaluate"; });
  if (known || !run.plan) return;
  const Plan& plan = run.plan->plan;
  const std::vector<double> us = plan_times(plan, run.trace).us;
  const std::vector<prof::OpTag> tags = op_tags(plan, run.trace);
  for (size_t i = 0; i < us.size(); ++i)
    if (us[i] > 0) points.push_back(prof::roofline_point(op_info(plan, plan.ops[i]), tags[i], us[i] * 1e3, ceilings));
}

// True if the run used the same GPU as in this machine.
bool can_measure(const Run& run) {
  return device_info().cuda && without_count(run.device.toStdString()) == device_info().name;
}

}  // namespace

Roof roof_of(const QString& device, Precision precision) {
  if (const auto seen = measured_roof(lab::remembered_ceilings(without_count(device.toStdString())), precision))
    return with_sheet(*seen, device);
  Roof roof{{}, false, false, QObject::tr("taken from the data sheet")};
  if (const Sheet* sheet = sheet_of(device)) {
    roof.ceilings = {of_precision(precision, sheet->fp32, sheet->tf32, sheet->half), sheet->bytes};
    roof.products = products_of(sheet->fp32, sheet->tf32, sheet->half);
  }
  return with_sheet(roof, device);
}

Roof roof_of(const Run& run) {
  const Precision precision = run.spec.exec.precision;
  const auto kept = run.reader ? kept_ceilings(run.reader->summary()) : std::nullopt;
  auto seen = kept ? measured_roof(kept->ceilings, precision) : std::nullopt;
  if (!seen) return roof_of(run.device, precision);
  seen->recorded = true;
  seen->whose =
      kept->driver.empty()
          ? QObject::tr("measured on the recording machine")
          : QObject::tr("measured on the recording machine, driver %1").arg(QString::fromStdString(kept->driver));
  return with_sheet(*seen, run.device);
}

RooflineView::RooflineView(Focus* focus, QWidget* parent) : QWidget(parent), focus_(focus) {
  setAccessibleName(tr("Roofline: FLOP per second by FLOP per byte"));
  connect(focus, &Focus::changed, this, qOverload<>(&QWidget::update));
}

void RooflineView::setPoints(Run* run, std::vector<prof::RooflinePoint> points, const Roof& roof) {
  run_ = run, points_ = std::move(points), roof_ = roof;
  const prof::Ceilings& ceilings = roof.ceilings;
  std::erase_if(points_, [](const prof::RooflinePoint& p) { return p.flops_per_s <= 0 || p.intensity <= 0; });
  if (!points_.empty()) {
    double least_x = 1e9, most_x = 0, least_y = 1e18, most_y = std::max(1.0, ceilings.flops_per_s);
    const double least_bytes = ceilings.bytes_per_s > 0 ? ceilings.bytes_per_s : 1e30;
    for (const auto& [name, flops] : roof.products)
      most_y = std::max(most_y, flops), most_x = std::max(most_x, 2 * flops / least_bytes);
    for (const auto& p : points_)
      least_x = std::min(least_x, p.intensity), most_x = std::max(most_x, p.intensity),
      least_y = std::min(least_y, p.flops_per_s), most_y = std::max(most_y, p.flops_per_s);
    if (ceilings.bytes_per_s > 0) most_x = std::max(most_x, ceilings.flops_per_s / ceilings.bytes_per_s * 2);
    x_low_ = std::floor(std::log10(least_x)), x_high_ = std::ceil(std::log10(most_x) + 0.01);
    y_low_ = std::floor(std::log10(least_y)), y_high_ = std::ceil(std::log10(most_y) + 0.05);
  }
  update();
}

QRectF RooflineView::area() const {
  return {kChartLeft, kChartTop, std::max(10.0, width() - double(kChartLeft) - kChartRight),
          std::max(10.0, height() - double(kChartTop) - kChartBottom)};
}
double RooflineView::x(double v) const {
  return area().left() + (std::log10(v) - x_low_) / (x_high_ - x_low_) * area().width();
}
double RooflineView::y(double v) const {
  return area().bottom() - (std::log10(v) - y_low_) / (y_high_ - y_low_) * area().height();
}
QPointF RooflineView::placeOf(const prof::RooflinePoint& point) const {
  return {x(point.intensity), y(point.flops_per_s)};
}

std::vector<QRectF> RooflineView::pointBoxes() const {
  constexpr double kRing = 6.5;  // with its rim: a name beside it does not cut it
  std::vector<QRectF> boxes;
  for (const auto& point : points_) boxes.emplace_back(placeOf(point) - QPointF(kRing, kRing), QSizeF(2 * kRing, 2 * kRing));
  return boxes;
}

void RooflineView::paintRoof(QPainter& painter, std::vector<QRectF>& taken) const {
  const prof::Ceilings& ceilings = roof_.ceilings;
  if (ceilings.flops_per_s <= 0 || ceilings.bytes_per_s <= 0) return;
  const Theme& t = theme();
  const double ridge = ceilings.flops_per_s / ceilings.bytes_per_s, low = std::pow(10, x_low_);
  painter.save();
  painter.setClipRect(area().adjusted(0, -2, 0, 0));
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(t.text, 1.7));
  painter.drawPolyline(QPolygonF{QPointF(x(low), y(low * ceilings.bytes_per_s)),
                                 QPointF(x(ridge), y(ceilings.flops_per_s)),
                                 QPointF(area().right(), y(ceilings.flops_per_s))});
  painter.restore();
  painter.setPen(t.secondary);
  painter.setFont(ui_font(11));
  QRectF words;
  painter.drawText(QRectF(area().left(), y(ceilings.flops_per_s) - 18, area().width() - 4, 16), Qt::AlignRight,
                   tr("roof: arithmetic in %1 · %2 TFLOP/s").arg(QString::fromStdString(std::string(to_string(run_->spec.exec.precision))), significant_text(ceilings.flops_per_s / 1e12)), &words);
  taken.push_back(words);
  paintSlopeName(painter, ceilings.bytes_per_s, tr("roof: memory · %1 TB/s"), taken);
}

// Below the slope, or above it where the lower side belongs to another slope.
void RooflineView::paintSlopeName(QPainter& painter, double bytes_per_s, const QString& text, std::vector<QRectF>& taken) const {
  constexpr double kSlopeName = 260;
  const double at = std::pow(10, x_low_ + kNamedFrom * (x_high_ - x_low_));
  const bool above = bytes_per_s > roof_.ceilings.bytes_per_s;
  const QPointF place(x(at), y(at * bytes_per_s));
  QRectF words;
  painter.drawText(above ? QRectF(place.x() - kSlopeName - 10, place.y() - 20, kSlopeName, 16) : QRectF(place.x() + 10, place.y() + 4, kSlopeName, 16), above ? Qt::AlignRight : Qt::AlignLeft,
                   text.arg(significant_text(bytes_per_s / 1e12)), &words);
  taken.push_back(words);
}

// The slopes as small boxes: no name lies on them.
std::vector<QRectF> RooflineView::slopeBoxes() const {
  constexpr int kBoxes = 120;
  std::vector<QRectF> boxes;
  for (const double bytes : {roof_.ceilings.bytes_per_s, roof_.l2_bytes_per_s})
    for (int i = 0; bytes > 0 && i < kBoxes; ++i) {
      const double at = std::pow(10, x_low_ + (x_high_ - x_low_) * i / kBoxes), flops = at * bytes;
      if (flops <= roof_.ceilings.flops_per_s) boxes.emplace_back(x(at) - 2, y(flops) - 2, area().width() / kBoxes + 2, 4);
    }
  return boxes;
}

// A ceiling of arithmetic, from where memory no longer limits to the right end. No name lies on it.
QRectF RooflineView::lineOf(double flops) const {
  const double left = std::max(area().left(), x(flops / std::max(1.0, roof_.ceilings.bytes_per_s)));
  return {left, y(flops) - 0.5, std::max(0.0, area().right() - left), 1};
}

// At the right, if there is space: above the line, or below it.
std::optional<QRectF> RooflineView::placeAt(double line, double width, const std::vector<QRectF>& taken) const {
  constexpr double kHigh = 16, kOnward = 24, kApart = 16;
  const QRectF space = area().adjusted(0, -kChartTop, -4, 0);
  for (double right = space.right(); right - width > space.left(); right -= kOnward)
    for (const double top : {line - kHigh - 1, line + 1}) {
      const QRectF words(right - width, top, width, kHigh);
      if (space.contains(words) && std::ranges::none_of(taken, [&](const QRectF& r) { return r.adjusted(-kApart, 0, kApart, 0).intersects(words); }))
        return words;
    }
  return std::nullopt;
}

// Thin lines: the peak rates of other number formats, and the bandwidth of data in the L2 cache.
void RooflineView::paintOtherCeilings(QPainter& painter, std::vector<QRectF>& taken) const {
  if (roof_.ceilings.flops_per_s <= 0 || roof_.ceilings.bytes_per_s <= 0) return;
  const Theme& t = theme();
  const QRectF box = area();
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(ui_font(11));
  for (const auto& [name, flops] : roof_.products) {
    if (flops == roof_.ceilings.flops_per_s) continue;
    painter.setPen(QPen(t.strong_border, 1, Qt::DashLine));
    painter.drawLine(QPointF(lineOf(flops).left(), y(flops)), QPointF(box.right(), y(flops)));
    const QString text = tr("%1 · %2 TFLOP/s").arg(name, significant_text(flops / 1e12));
    const auto words = placeAt(y(flops), painter.fontMetrics().horizontalAdvance(text) + 4, taken);
    if (!words) continue;
    taken.push_back(*words);
    painter.setPen(t.quiet);
    painter.drawText(*words, Qt::AlignRight | Qt::AlignVCenter, text);
  }
  if (roof_.l2_bytes_per_s > roof_.ceilings.bytes_per_s) {
    const double low = std::pow(10, x_low_), ridge = roof_.ceilings.flops_per_s / roof_.l2_bytes_per_s;
    painter.setClipRect(box);
    painter.setPen(QPen(t.strong_border, 1.4, Qt::DashLine));
    painter.drawLine(QPointF(x(low), y(low * roof_.l2_bytes_per_s)), QPointF(x(ridge), y(roof_.ceilings.flops_per_s)));
    painter.setPen(t.quiet);
    paintSlopeName(painter, roof_.l2_bytes_per_s, tr("data in the L2 cache · %1 TB/s"), taken);
  }
  painter.restore();
}

// Draws a ring at the position from hardware counters (measured bytes), linked to the position from the plan.
void RooflineView::paintCounted(QPainter& painter) const {
  for (const auto& point : points_) {
    const double bytes = point.dram_share * roof_.dram_peak_bytes_per_s;
    if (bytes <= 0) continue;
    const QPointF at(std::clamp(x(point.flops_per_s / bytes), area().left(), area().right()), y(point.flops_per_s));
    painter.setPen(QPen(theme().of(point.meaning), 1.4));
    painter.setBrush(Qt::NoBrush);
    painter.drawLine(placeOf(point), at);
    painter.drawEllipse(at, 4, 4);
  }
}

void RooflineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& t = theme();
  painter.fillRect(rect(), t.base);
  const QRectF box = area();
  painter.setFont(ui_font(11));
  for (int p = static_cast<int>(x_low_); p <= static_cast<int>(x_high_); ++p) {
    const double at = std::round(x(std::pow(10.0, p)));
    painter.fillRect(QRectF(at, box.top(), 1, box.height()), t.grid);
    painter.setPen(t.quiet);
    painter.drawText(QRectF(at - 40, box.bottom() + 4, 80, 16), Qt::AlignCenter,
                     QString::number(std::pow(10.0, p), 'g', 4));
  }
  for (int p = static_cast<int>(y_low_); p <= static_cast<int>(y_high_); ++p) {
    const double at = std::round(y(std::pow(10.0, p)));
    painter.fillRect(QRectF(box.left(), at, box.width(), 1), t.grid);
    painter.setPen(t.quiet);
    painter.drawText(QRectF(0, at - 8, kChartLeft - 8, 16), Qt::AlignRight | Qt::AlignVCenter, power_text(p, "FLOP/s"));
  }
  painter.fillRect(QRectF(box.left(), box.top(), 1, box.height()), t.strong_border);
  painter.fillRect(QRectF(box.left(), box.bottom(), box.width(), 1), t.strong_border);
  painter.setPen(t.quiet);
  painter.drawText(QRectF(box.left(), box.bottom() + 20, box.width(), 16), Qt::AlignCenter, tr("FLOP per byte moved"));
  if (std::ranges::any_of(points_, [](const auto& p) { return p.phase == "evaluate"; }))
    painter.drawText(QRectF(box.left(), box.bottom() + 20, box.width(), 16), Qt::AlignRight, tr("ring: in evaluation"));
  std::vector<QRectF> taken = pointBoxes();
  for (const auto& [name, flops] : roof_.products) taken.push_back(lineOf(flops));
  taken.push_back(lineOf(roof_.ceilings.flops_per_s));
  for (const QRectF& slope : slopeBoxes()) taken.push_back(slope);
  paintRoof(painter, taken);
  paintOtherCeilings(painter, taken);
  painter.setRenderHint(QPainter::Antialiasing);
  paintCounted(painter);
  const auto* chosen = focus_->get<OpChoice>();
  for (const auto& point : points_) {
    const QPointF at = placeOf(point);
    const bool selected = chosen && chosen->run == run_ && std::ranges::find(point.ops, chosen->op) != point.ops.end();
    const bool evaluates = point.phase == "evaluate";
    const QPen edge = evaluates ? QPen(t.of(point.meaning), 2) : QPen(t.fill_edge, 1);
    painter.setPen(selected ? QPen(t.text, 2) : edge);
    painter.setBrush(evaluates ? t.base : t.of(point.meaning));
    const double radius = selected ? 7 : 5;
    painter.drawEllipse(at, radius, radius);
  }
  paintNames(painter, box, std::move(taken));
}

// Beside its point, where no other name, point or line is; else further away.
std::optional<QRectF> RooflineView::placeOfName(QPointF at, double width, const QRectF& box, const std::vector<QRectF>& taken) const {
  constexpr double kHigh = 16, kFarthest = 160, kFurther = 14;
  const auto free = [&](const QRectF& place) {
    return box.contains(place) && std::ranges::none_of(taken, [&](const QRectF& r) { return r.intersects(place); });
  };
  for (const QPointF corner : {QPointF(9, -8), QPointF(-9 - width, -8), QPointF(-width / 2, -22), QPointF(-width / 2, 7), QPointF(7, -20), QPointF(7, 5),
                               QPointF(-7 - width, -20), QPointF(-7 - width, 5)})
    if (const QRectF place(at + corner, QSizeF(width, kHigh)); free(place)) return place;
  for (double away = 2 * kFurther; away < kFarthest; away += kFurther)
    for (int turn = 0; turn < 16; ++turn) {
      const QPointF middle = at + QLineF::fromPolar(away, 22.5 * turn).p2();
      if (const QRectF place(middle - QPointF(width / 2, kHigh / 2), QSizeF(width, kHigh)); free(place)) return place;
    }
  return std::nullopt;
}

// A name that does not touch its point has a line to it. A name without any space appears on hover.
void RooflineView::paintNames(QPainter& painter, const QRectF& box, std::vector<QRectF> taken) const {
  constexpr double kTouches = 14;
  for (const prof::RooflinePoint& point : points_) {
    const QPointF at = placeOf(point);
    const auto name = QString::fromStdString(point.name);
    const auto place = placeOfName(at, painter.fontMetrics().horizontalAdvance(name) + 4, box, taken);
    if (!place) continue;
    taken.push_back(*place);
    const QPointF nearest(std::clamp(at.x(), place->left(), place->right()), std::clamp(at.y(), place->top(), place->bottom()));
    if (QLineF lead(at, nearest); lead.length() > kTouches) {
      constexpr double kRing = 6;
      lead.setP1(lead.pointAt(kRing / lead.length()));
      painter.setPen(QPen(theme().quiet, 1));
      painter.drawLine(lead);
    }
    painter.fillRect(*place, theme().base);  // lines end at the name
    painter.setPen(theme().secondary);
    painter.drawText(*place, Qt::AlignVCenter, name);
  }
}

int RooflineView::pointAt(QPointF at) const {
  for (size_t i = 0; i < points_.size(); ++i)
    if (QLineF(placeOf(points_[i]), at).length() < kReach) return static_cast<int>(i);
  return -1;
}

void RooflineView::mousePressEvent(QMouseEvent* event) {
  const int i = pointAt(event->position());
  if (i >= 0 && run_) focus_->reveal(OpChoice{run_, points_[static_cast<size_t>(i)].op});
}

// The bytes of an op are counted as if each were moved from memory.
QString RooflineView::above_roof() { return tr("Above the roof: the data of the op stays in the L2 cache, which is faster than the memory."); }

// Points may lie one on the other: each has its lines.
QString RooflineView::tipAt(QPointF at) const {
  QStringList tips;
  for (const auto& point : points_)
    if (QLineF(placeOf(point), at).length() < kReach) tips << tipOf(point);
  return tips.join("\n\n");
}

QString RooflineView::tipOf(const prof::RooflinePoint& p) const {
  QString text =
      QString::fromStdString(p.name + (p.layer.empty() ? "" : " · " + p.layer) + " · " + p.phase) + "\n" +
      significant_text(p.flops_per_s / 1e9) + " GFLOP/s · " + significant_text(p.bytes_per_s / 1e9) + " GB/s\n" +
      tr("%1 executions, %2 in all").arg(count_text(static_cast<int64_t>(p.executions)), span_time(p.time_ns));
  if (p.dram_share >= 0) {
    text += "\n" + tr("DRAM as counted: %1 % of its peak").arg(fixed_text(p.dram_share * 100, 1));
    if (roof_.dram_peak_bytes_per_s > 0)
      text += tr(", %1 GB/s").arg(significant_text(p.dram_share * roof_.dram_peak_bytes_per_s / 1e9));
  }
  if (roof_.ceilings.flops_per_s > 0)
    text += "\n" + tr("%1 % of the roof, %2 bound")
                       .arg(fixed_text(p.share * 100, 1), p.memory_bound ? tr("memory") : tr("compute"));
  if (p.share > 1) text += "\n" + above_roof();
  return text;
}

bool RooflineView::event(QEvent* event) {
  return showed_tip(event, this, [this](QPointF at) { return tipAt(at); }) || QWidget::event(event);
}

RooflinePanel::RooflinePanel(Focus* focus, QWidget* parent)
    : Pane(tr("Roofline"), parent),
      body_(new Headlined(this)),
      view_(new RooflineView(focus, body_)),
      evaluation_(new QPushButton(tr("Show evaluation ops"), this)),
      colours_(new MeaningLegend(this)),
      measure_(new QPushButton(tr("Measure this card"), this)) {
  legend()->hide();
  measure_->hide(), evaluation_->hide();
  auto* picture = new QWidget(body_);
  auto* column = new QVBoxLayout(picture);
  column->setContentsMargins(0, 0, 0, 0), column->setSpacing(0);
  column->addWidget(view_, 1), column->addWidget(colours_);
  body_->setPicture(picture);
  evaluation_->setToolTip(tr("The evaluation tests the network between training steps, with batches of its own."));
  connect(evaluation_, &QPushButton::clicked, this, [this] {
    shows_evaluation_ = !shows_evaluation_;
    refresh();
  });
  addOption(evaluation_);
  connect(measure_, &QPushButton::clicked, this, &RooflinePanel::measure);
  addOption(measure_);
  setBody(body_);
  refresh_.setInterval(kRooflineRefreshMs);
  connect(&refresh_, &QTimer::timeout, this, [this] {
    if (isVisible() && run_ && run_->live()) refresh();
  });
  refresh_.start();
}

void RooflinePanel::setRun(Run* run) {
  run_ = run;
  if (isVisible() || !run) refresh();
}

void RooflinePanel::showEvent(QShowEvent* event) {
  Pane::showEvent(event);
  refresh();
}

// Takes some seconds of the whole GPU, so do not run it during a training.
void RooflinePanel::measure() {
  measuring_.start([](const Job::Side& side) { lab::measure_ceilings(*side.cancelled()); },
                   [this](const QString& problem) {
                     measure_->setToolTip(problem);
                     refresh();
                   });
  refresh();
}

// What most of the training's ops have in common.
QString RooflinePanel::finding(const std::vector<prof::RooflinePoint>& points) {
  constexpr double kFar = 0.1;
  const auto trains = [](const prof::RooflinePoint& p) { return p.phase != "evaluate" && p.flops_per_s > 0 && p.intensity > 0; };
  const auto ops = std::ranges::count_if(points, trains);
  const auto far = std::ranges::count_if(points, [&](const auto& p) { return trains(p) && p.share < kFar; });
  if (2 * far > ops)
    return tr("%1 of %2 ops with arithmetic stay below a tenth of their roof: they are too small to fill the GPU.").arg(far).arg(ops);
  if (std::ranges::any_of(points, [](const auto& p) { return p.share > 1; })) return RooflineView::above_roof();
  return tr("Under the slope memory limits an op, under the flat part arithmetic.");
}

// Which line limits the points.
QString RooflinePanel::notes(const Roof& roof) {
  const QString l2 = roof.l2_bytes_per_s > roof.ceilings.bytes_per_s ? tr(", L2 cache") : QString();
  return tr("Solid: the roof, %1. Dashed: other formats%2.").arg(roof.whose, l2);
}

void RooflinePanel::refresh() {
  if (!run_) {
    measure_->hide(), evaluation_->hide();
    view_->setPoints(nullptr, {}, {});
    body_->showReason(tr("Click a traced run or press Train.\nEach op appears here: its FLOP/s against its FLOP per byte."));
    return setTitle(tr("Roofline"), {});
  }
  const Roof roof = roof_of(*run_);
  measure_->setVisible(can_measure(*run_) && !roof.recorded);
  measure_->setEnabled(!run_->live() && !measuring_.running());
  const QString measure = roof.measured ? tr("Measure again") : tr("Measure this card");
  measure_->setText(measuring_.running() ? tr("Measuring…") : measure);
  if (run_->live())
    measure_->setToolTip(tr("Wait until the training ends. Measuring takes the whole card for some seconds."));
  const prof::TimeNs end = run_->trace.last_time() + 1, begin = std::max(run_->trace.first_time(), end - kNewest);
  auto points = prof::roofline(run_->trace, begin, end, roof.ceilings);
  add_inner_ops(points, *run_, roof.ceilings);
  const auto evaluates = [](const prof::RooflinePoint& point) { return point.phase == "evaluate"; };
  evaluation_->setVisible(std::ranges::any_of(points, evaluates) && !std::ranges::all_of(points, evaluates));
  evaluation_->setText(shows_evaluation_ ? tr("Hide evaluation ops") : tr("Show evaluation ops"));
  if (evaluation_->isVisibleTo(this) && !shows_evaluation_) std::erase_if(points, evaluates);
  std::set<prof::Meaning> meanings;
  for (const auto& point : points) meanings.insert(point.meaning);
  colours_->setMeanings(meanings);
  const bool known = roof.ceilings.flops_per_s > 0;
  if (points.empty())
    body_->showReason(run_->origin == RunOrigin::Imported ? tr("The arithmetic of a recorded program's kernels is not known,\nso they cannot be placed here. Kernel times shows how long each takes.")
                                                          : tr("Each op of a traced run appears here:\nits FLOP/s against its FLOP per byte."));
  else
    body_->showResult(known ? finding(points) : tr("No ceiling is known for this device."), known ? notes(roof) : QString());
  view_->setPoints(run_, std::move(points), roof);
  setTitle(tr("Roofline"), run_->title + (run_->device.isEmpty() ? QString() : " · " + run_->device), run_->device);
}

}  // namespace ws::app
