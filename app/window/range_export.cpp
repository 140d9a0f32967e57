#include "app/window/range_export.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QPainter>

#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/timeline/timeline_painter.h"
#include "app/timeline/timeline_pane.h"
#include "app/timeline/time_scale.h"
#include "profiling/analysis/trace_queries.h"
#include "app/window/main_window.h"
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

// The selected range in each run's own time; without one, what is visible.
std::vector<RunRange> chosen_ranges(MainWindow& window, const TimelineModel& model) {
  std::vector<RunRange> ranges = window.selection()->ranges();
  std::erase_if(ranges, [](const RunRange& r) { return !r.run; });
  for (int i = 0; ranges.empty() && i < static_cast<int>(model.runCount()); ++i)
    ranges.push_back({model.run(i), model.runRange(i, model.range())});
  return ranges;
}

void choose_json(MainWindow& window, TimelineModel& model) {
  const QString path = QFileDialog::getSaveFileName(&window, QObject::tr("Range as Chrome JSON"), "timeline.json",
                                                    QObject::tr("Chrome trace (*.json *.json.gz)"));
  if (path.isEmpty()) return;
  const std::vector<RunRange> ranges = chosen_ranges(window, model);
  QStringList written;
  try {
    for (const RunRange& each : ranges) {
      const QString ending = path.endsWith(".json.gz") ? ".json.gz" : ".json", letter = run_letter(each.run->slot);
      const QString name = QFileInfo(path).baseName() + (ranges.size() > 1 ? "-" + letter : "") + ending;
      write_range_json(*each.run, each.range, QFileInfo(path).dir().filePath(name));
      written << name;
    }
    window.say(QObject::tr("Written: %1").arg(written.join(", ")), false);
  } catch (const std::exception& problem) {
    window.say(QString::fromUtf8(problem.what()), true);
  }
}

}  // namespace

void write_range_json(Run& run, TimeRange range, const QString& path) {
  for (int rounds = 0; rounds < 10'000 && run.fetch(range.begin, range.end, SIZE_MAX); ++rounds) {
  }
  prof::RunData data;
  copy_trace(run.trace, range, data.trace);
  data.summary.name = run.title.toStdString();
  data.summary.device = run.device.toStdString();
  data.summary.us_per_step = run.usPerStep();
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

void add_range_export(MainWindow& window) {
  auto* pane = window.findChild<TimelinePane*>();
  if (!pane) return;
  QMenu* menu = window.menu(QObject::tr("Timeline"));
  menu->addSeparator();
  menu->addAction(QObject::tr("Export the picture…"), &window, [&window, pane] {
    try {
      if (const QString done = ask_and_write(&window, timeline_picture(*pane)); !done.isEmpty())
        window.say(done, false);
    } catch (const std::exception& problem) {
      window.say(QString::fromUtf8(problem.what()), true);
    }
  });
  menu->addAction(QObject::tr("Export the range as Chrome JSON…"), &window,
                  [&window, pane] { choose_json(window, *pane->model()); });
}

}  // namespace ws::app
