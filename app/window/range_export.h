// A range of a timeline for other viewers and for paper.
#pragma once
#include <QString>

#include "app/widgets/chart_file.h"
#include "app/timeline/time_scale.h"

namespace ws::app {

class MainWindow;
class TimelinePane;

// Chrome/Perfetto JSON of what the run did in the range (its own time); spans that are only in its file are read.
// Throws Failure.
void write_range_json(Run& run, TimeRange range, const QString& path);
// The lanes as the timeline shows them now, as vectors.
ChartPicture timeline_picture(TimelinePane& pane);
// Entries in the Timeline menu that write the selected range, or the visible one.
void add_range_export(MainWindow& window);

}  // namespace ws::app
