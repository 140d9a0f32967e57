#include "app/timeline/range_export.h"

#include <QDir>
#include <QFileInfo>
#include <QPainter>

#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/timeline/timeline_painter.h"
#include "app/timeline/timeline_pane.h"
#include "app/timeline/time_scale.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/formats/convert.h"

namespace ws::app {
namespace {

void add_curves(const Run& run, TimeRange range, prof::RunData& data) {
  for (const StepPoint& p : run.steps) {
    if (range.contains(run.timeOfStep(p.step)))
      data.metrics.push_back(
          {static_cast<int64_t>(p.step), p.wall_s, static_cast<double>(p.loss), static_cast<double>(p.accuracy)});
  }
}

void paint_ruler(QPainter& painter, const TimelineGeometry& geometry, const QRectF& area) {
  painter.fillRect(QRectF(area.left(), area.top(), area.width(), geometry.top()), theme().base);
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  const Ruler marks = ruler(geometry.scale(), 90);
  painter.drawText(QRectF(8, geometry.top() - 22, geometry.gutter - 12, 22), Qt::AlignVCenter, marks.base_text);
  for (const Ruler::Tick& tick : marks.ticks)
    painter.drawText(QPointF(geometry.scale().x(tick.time) + 4, geometry.top() - 7), tick.text);
}

}  // namespace

void write_range_json(Run& run, TimeRange range, const QString& path) {
  for (int rounds = 0; rounds < 10'000 && run.fetch(range.begin, range.end, SIZE_MAX); ++rounds) {
  }
  prof::RunData data;
  copy_trace(run.trace, range, data.trace);
  data.summary.name = run.title.toStdString();
  data.summary.device = run.device.toStdString();
  data.summary.step_time = run.step_time;
  add_curves(run, range, data);
  write_in_place(path, [&](const QString& file) {
    prof::export_run(data, file.toStdString());
    return QFileInfo::exists(file);
  });
}

ChartPicture timeline_picture(TimelinePane& pane) {
  TimelineModel* model = pane.model();
  TimelineGeometry geometry = pane.view()->timelineGeometry();
  geometry.range = model->range();
  QStringList captions;
  for (int i = 0; i < static_cast<int>(model->runCount()); ++i) captions << run_caption(*model->run(i));
  const auto paint = [model, geometry](QPainter& painter, const QRectF& area) mutable {
    geometry.size = area.size().toSize();
    TimelinePainter lanes(*model);
    painter.fillRect(area, theme().base);
    lanes.paint(painter, geometry);
    paint_ruler(painter, geometry, area);
  };
  return {"timeline", captions.join('\n'), pane.view()->size(), paint, {}};
}

std::vector<RunRange> selected_or_visible(const Focus& focus, const TimelineModel& model) {
  std::vector<RunRange> ranges = focus.ranges();
  std::erase_if(ranges, [](const RunRange& r) { return !r.run; });
  for (int i = 0; ranges.empty() && i < static_cast<int>(model.runCount()); ++i)
    ranges.push_back({model.run(i), model.runRange(i, model.range())});
  return ranges;
}

QStringList write_ranges_json(const std::vector<RunRange>& ranges, const QString& path) {
  const QString ending = path.endsWith(".json.gz") ? ".json.gz" : ".json";
  QStringList written;
  for (const RunRange& each : ranges) {
    const QString letter = ranges.size() > 1 ? QString("-") + run_letter(each.run->slot) : QString();
    const QString name = QFileInfo(path).baseName() + letter + ending;
    write_range_json(*each.run, each.range, QFileInfo(path).dir().filePath(name));
    written << name;
  }
  return written;
}

}  // namespace ws::app
