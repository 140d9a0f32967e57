#include "app/widgets/stall_bar.h"

#include <QCoreApplication>
#include <QPainter>
#include <algorithm>

#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

// Darker than every meaning, and at least 0.136 apart in OKLab. In the dark theme no five free colours exist.
constexpr QRgb kColours[prof::kStallGroups] = {0xffb43c78, 0xff2440f0, 0xff6e300e, 0xff14146a, 0xff0a0c10};

QString tr(const char* words) { return QCoreApplication::translate("StallBar", words); }

}  // namespace

QColor stall_colour(prof::StallGroup group) { return QColor::fromRgb(kColours[static_cast<size_t>(group)]); }
QColor stall_ground() { return theme().dark() ? QColor(0xd6, 0xda, 0xe1) : theme().header; }
QColor stall_ink() { return theme().dark() ? QColor(0x20, 0x24, 0x2b) : theme().secondary; }

void draw_stall_bar(QPainter& painter, const QRectF& box, const prof::StallRow& row, uint64_t most) {
  if (row.samples == 0 || most == 0) return;
  const double length = std::max(1.0, std::round(box.width() * static_cast<double>(row.samples) / static_cast<double>(most)));
  const prof::StallGroupCounts groups = prof::by_group(row.counts);
  double x = box.left();
  for (size_t g = 0; g < prof::kStallGroups; ++g) {
    const double part = length * static_cast<double>(groups[g]) / static_cast<double>(row.samples);
    painter.fillRect(QRectF(x, box.top(), part, box.height()), stall_colour(static_cast<prof::StallGroup>(g)));
    x += part;
  }
}

void draw_stall_cell(QPainter& painter, const QRect& cell, const prof::StallRow* row, uint64_t most) {
  constexpr int kNumber = 52;
  painter.fillRect(cell, stall_ground());
  if (!row) return;
  painter.setFont(number_font(11)), painter.setPen(stall_ink());
  painter.drawText(cell.adjusted(0, 0, kNumber - cell.width(), 0), Qt::AlignRight | Qt::AlignVCenter, count_text(static_cast<int64_t>(row->samples)));
  draw_stall_bar(painter, QRectF(cell).adjusted(kNumber + 6, 5, -6, -5), *row, most);
}

QString stall_share_text(uint64_t part, uint64_t whole) {
  return fixed_text(100.0 * static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(whole, 1)), 1) + QStringLiteral(" %");
}

QString stall_tip(const prof::StallRow& row) {
  const QString place = row.instruction.empty() ? tr("line %1").arg(row.line) : QString::fromStdString(row.instruction);
  QStringList parts{tr("%1: %2 samples").arg(place, count_text(static_cast<int64_t>(row.samples)))};
  const prof::StallGroupCounts groups = prof::by_group(row.counts);
  for (size_t g = 0; g < prof::kStallGroups; ++g)
    parts << QStringLiteral("%1: %2 · %3").arg(QString::fromUtf8(prof::stall_group_name(static_cast<prof::StallGroup>(g))), count_text(static_cast<int64_t>(groups[g])), stall_share_text(groups[g], row.samples));
  if (const auto reason = prof::main_reason(row))
    parts << tr("most: %1. %2").arg(QString::fromUtf8(prof::stall_name(reason->reason)), QString::fromUtf8(prof::stall_meaning(reason->reason)));
  return parts.join('\n');
}

}  // namespace ws::app
