#include "app/pages/lab/lab_share.h"

#include <QPainter>
#include <algorithm>

#include "app/pages/lab/lab_way_style.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kLegend = 22, kLabel = 132, kTime = 62, kTallest = 24;

QString percent_text(double share) { return QString::number(qRound(share * 100)) + " %"; }

}  // namespace

std::vector<LabShare> lab_shares(const lab::LabResult& result, int64_t size) {
  std::vector<LabShare> shares;
  for (const lab::LabPoint& p : result.points) {
    if (p.size != size || !p.ok || p.median_s <= 0 || lab::info(p.way).pitfall || p.way == lab::Way::GpuCold) continue;
    LabShare share{.way = p.way, .label = lab_label(p.way, result.spec), .seconds = p.median_s};
    const double all = std::max(p.median_s, p.copy_s + p.compute_s);
    share.copy = p.copy_s / all, share.compute = p.compute_s / all;
    share.rest = 1 - share.copy - share.compute;
    share.known = !lab::info(p.way).gpu || p.device_s > 0;
    shares.push_back(share);
  }
  std::ranges::sort(shares, std::greater{}, &LabShare::seconds);
  return shares;
}

LabShareView::LabShareView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Share of copies and compute at the chosen size"));
}

void LabShareView::setShares(std::vector<LabShare> shares, lab::Operation operation) {
  shares_ = std::move(shares);
  operation_ = operation;
  QStringList lines;
  for (const LabShare& s : shares_)
    lines << tr("%1: copies %2, compute %3").arg(s.label, percent_text(s.copy), percent_text(s.compute));
  setAccessibleDescription(lines.join("; "));
  update();
}

prof::Meaning LabShareView::work() const {
  return operation_ == lab::Operation::MatMul ? prof::Meaning::Matrix : prof::Meaning::Pointwise;
}

void LabShareView::paintLegend(QPainter& painter, double y) const {
  const std::pair<prof::Meaning, QString> entries[] = {
      {prof::Meaning::Copy, tr("copies")}, {work(), tr("compute")}, {prof::Meaning::Idle, tr("launch and sync")}};
  double x = 12;
  painter.setFont(ui_font(11));
  for (const auto& [meaning, name] : entries) {
    draw_fill(painter, QRectF(x, y + 4.5, 9, 9), meaning_brush(meaning));
    painter.setPen(theme().secondary);
    painter.drawText(QRectF(x + 14, y, 120, 18), Qt::AlignVCenter, name);
    x += 26 + painter.fontMetrics().horizontalAdvance(name);
  }
}

void LabShareView::paintBar(QPainter& painter, const QRectF& bar, const LabShare& share) const {
  if (!share.known) {
    draw_fill(painter, bar, meaning_brush(prof::Meaning::Copy));
    painter.setPen(theme().ink_on(theme().of(prof::Meaning::Copy)));
    painter.drawText(bar, Qt::AlignCenter, tr("one over the other"));
    return;
  }
  const std::pair<prof::Meaning, double> parts[] = {
      {prof::Meaning::Copy, share.copy}, {work(), share.compute}, {prof::Meaning::Idle, share.rest}};
  double x = bar.left();
  for (const auto& [meaning, part] : parts) {
    const QRectF box(x, bar.top(), part * bar.width(), bar.height());
    x += part * bar.width();
    if (box.width() < 0.5) continue;
    draw_fill(painter, box, meaning_brush(meaning));
    const QString text = percent_text(part);
    if (meaning == prof::Meaning::Idle || painter.fontMetrics().horizontalAdvance(text) + 6 > box.width()) continue;
    painter.setPen(theme().ink_on(theme().of(meaning)));
    painter.drawText(box, Qt::AlignCenter, text);
  }
}

void LabShareView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme().base);
  if (shares_.empty()) {
    painter.setPen(theme().secondary);
    painter.setFont(ui_font(12));
    painter.drawText(rect().adjusted(16, 0, -16, 0), Qt::AlignCenter | Qt::TextWordWrap,
                     tr("Copies and compute at the size under the cursor"));
    return;
  }
  paintLegend(painter, 2);
  const double step = std::min(kTallest, (height() - kLegend - 8) / static_cast<double>(shares_.size()));
  double y = kLegend + 4;
  for (const LabShare& share : shares_) {
    painter.setFont(ui_font(11));
    painter.setPen(lab_colour(share.way));
    painter.drawText(QRectF(12, y, kLabel - 4, step), Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(share.label, Qt::ElideRight, int(kLabel) - 4));
    const double left = 12 + kLabel, right = width() - kTime - 14;
    painter.setFont(ui_font(10.5, 500));
    if (right > left + 20) paintBar(painter, QRectF(left, y + 2, right - left, std::max(6.0, step - 5)), share);
    painter.setFont(number_font(11));
    painter.setPen(theme().text);
    painter.drawText(QRectF(width() - kTime - 8, y, kTime, step), Qt::AlignRight | Qt::AlignVCenter,
                     time_axis_text(share.seconds * 1e6));
    y += step;
  }
}

}  // namespace ws::app
