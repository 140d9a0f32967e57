// Exports a range of a timeline for other viewers and for paper.
#pragma once
#include <QString>
#include <vector>

#include "app/timeline/time_scale.h"
#include "app/widgets/chart_file.h"
#include "app/workspace/focus.h"

namespace ws::app {

class TimelineModel;
class TimelinePane;

// Writes what the run did in the range (its own time) as Chrome/Perfetto JSON. Reads spans that are only
// in the run file. Throws Failure.
void write_range_json(Run& run, TimeRange range, const QString& path);
// One file for each range, with the letter of its run in the name if there are several. Returns the names.
// Throws Failure.
QStringList write_ranges_json(const std::vector<RunRange>& ranges, const QString& path);
// The selected range in each run's own time, or the visible range if nothing is selected.
std::vector<RunRange> selected_or_visible(const Focus& focus, const TimelineModel& model);
// The lanes as the timeline shows them now, as vector graphics.
ChartPicture timeline_picture(TimelinePane& pane);

}  // namespace ws::app
