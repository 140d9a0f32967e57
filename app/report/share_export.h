// Writes runs as a page to share. It is made in the background, from the run files: they have all spans, and the window
// has only some.
#pragma once
#include <QString>
#include <functional>
#include <vector>

class QWidget;

namespace ws::app {

class Job;
class Run;

using ShareEnd = std::function<void(const QString& path, const QString& problem)>;  // problem: empty if the page is written
void share_runs(const std::vector<const Run*>& runs, const QString& path, Job& job, ShareEnd end);
// Asks for the file first.
void ask_and_share_runs(QWidget* parent, const std::vector<const Run*>& runs, Job& job, ShareEnd end);

}  // namespace ws::app
