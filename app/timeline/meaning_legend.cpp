#include "app/timeline/meaning_legend.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/widgets/theme.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

using prof::Meaning, prof::PartKind;

constexpr int kLine = 20;

struct Entry {
  prof::PartId id;
  // A timeline has launch calls, and hatches whatever time a GPU does nothing.
  QString name() const {
    const QString part = QString::fromUtf8(prof::part_name(id));
    if (id == prof::PartId{Meaning::Launch}) return QString::fromUtf8(prof::path_cause_name({prof::PathCause::LaunchCalls}));
    return id == prof::PartId{Meaning::Idle} ? part + ", " + QString::fromUtf8(prof::part_name({Meaning::Launch})) : part;
  }
};
constexpr Entry kEntries[] = {{{Meaning::Matrix}},
                              {{Meaning::Pointwise}},
                              {{Meaning::Reduction}},
                              {{Meaning::Loss}},
                              {{Meaning::Optimizer}},
                              {{Meaning::Copy}},
                              {{Meaning::Communication}},
                              {{Meaning::Communication, PartKind::RankWait}},
                              {{Meaning::Idle, PartKind::HostData}},
                              {{Meaning::Allocation}},
                              {{Meaning::Sync}},
                              {{Meaning::Sync, PartKind::InnerWait}},
                              {{Meaning::Launch}},
                              {{Meaning::Idle}},
                              {{Meaning::Other}}};

QBrush brush_of(const prof::PartId& id) { return id.kind == PartKind::OfMeaning ? meaning_brush(id.meaning) : QBrush(part_colour(id)); }

bool shows(const Run& run, const prof::PartId& id) {
  const prof::Trace& trace = run.trace;
  if (id.meaning == Meaning::Other) return false;  // a timeline colours such work by its name
  const bool inside = id.kind == PartKind::InnerWait;
  const auto has = [&](const prof::Track& track) {
    const bool sync_row = id.meaning != Meaning::Sync || inside == (track.kind == prof::TrackKind::Inner);
    return track.kind != prof::TrackKind::Steps && sync_row && track.time_of(id.meaning) > 0;
  };
  if (id.kind == PartKind::HostData) return std::ranges::find(run.split.parts, PartKind::HostData, &SplitPart::kind) != run.split.parts.end();
  if (id.kind == PartKind::RankWait) return several_ranks(trace) && std::ranges::any_of(trace.tracks(), has);
  if (id.meaning == Meaning::Idle) return prof::used_gpu(trace);
  return std::ranges::any_of(trace.tracks(), has);
}

}  // namespace

MeaningLegend::MeaningLegend(QWidget* parent) : QWidget(parent) {
  QSizePolicy policy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void MeaningLegend::setRuns(const std::vector<const Run*>& runs) {
  std::vector<size_t> now;
  for (size_t i = 0; i < std::size(kEntries); ++i)
    if (std::ranges::any_of(runs, [i](const Run* run) { return run && shows(*run, kEntries[i].id); })) now.push_back(i);
  show(std::move(now));
}

void MeaningLegend::setMeanings(const std::set<prof::Meaning>& meanings) {
  std::vector<size_t> now;
  for (size_t i = 0; i < std::size(kEntries); ++i)
    if (kEntries[i].id.kind == PartKind::OfMeaning && meanings.contains(kEntries[i].id.meaning)) now.push_back(i);
  show(std::move(now));
}

void MeaningLegend::setParts(const std::vector<prof::PartId>& parts) {
  const auto drawn = [](prof::PartId part) { return part == prof::PartId{Meaning::Launch} ? prof::PartId{Meaning::Idle} : part; };
  std::vector<size_t> now;
  for (size_t i = 0; i < std::size(kEntries); ++i)
    if (std::ranges::find(parts, kEntries[i].id, drawn) != parts.end()) now.push_back(i);
  show(std::move(now));
}

void MeaningLegend::show(std::vector<size_t> entries) {
  if (entries == shown_) return;
  shown_ = std::move(entries);
  setAccessibleName(tr("Colours: %1").arg(names().join(", ")));
  updateGeometry();
  update();
}

QStringList MeaningLegend::names() const {
  QStringList names;
  for (const size_t i : shown_) names << kEntries[i].name();
  return names;
}

std::vector<QPoint> MeaningLegend::places(int width) const {
  constexpr int kLeft = 8, kSquare = 14, kBetween = 11;
  const QFontMetricsF metrics(ui_font(11.5));
  std::vector<QPoint> all;
  QPoint at(kLeft, 0);
  for (const size_t i : shown_) {
    const int entry = kSquare + static_cast<int>(std::ceil(metrics.horizontalAdvance(kEntries[i].name())));
    if (at.x() > kLeft && at.x() + entry > width) at = {kLeft, at.y() + kLine};
    all.push_back(at);
    at.rx() += entry + kBetween;
  }
  return all;
}

int MeaningLegend::heightForWidth(int width) const {
  const std::vector<QPoint> all = places(width);
  return kLine + (all.empty() ? 0 : all.back().y());
}

void MeaningLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme().base);
  painter.setFont(ui_font(11.5));
  const std::vector<QPoint> all = places(width());
  for (size_t i = 0; i < all.size(); ++i) {
    const Entry& entry = kEntries[shown_[i]];
    draw_fill(painter, QRectF(all[i].x(), all[i].y() + 6, 9, 9), brush_of(entry.id));
    painter.setPen(theme().secondary);
    painter.drawText(QRectF(all[i].x() + 14, all[i].y(), 200, kLine), Qt::AlignVCenter, entry.name());
  }
}

}  // namespace ws::app
