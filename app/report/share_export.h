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

using SayOutcome = std::function<void(const QString& sentence, bool problem)>;
void share_runs(const std::vector<const Run*>& runs, const QString& path, Job& job, SayOutcome say);
// Asks for the file first.
void ask_and_share_runs(QWidget* parent, const std::vector<const Run*>& runs, Job& job, SayOutcome say);

}  // namespace ws::app
