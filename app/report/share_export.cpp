#include "app/report/share_export.h"

#include <QFileDialog>
#include <QFileInfo>
#include <utility>

#include "app/core/page/share_page.h"
#include "app/workspace/job.h"
#include "app/workspace/run.h"
#include "profiling/base/whole_file.h"

namespace ws::app {

void share_runs(const std::vector<const Run*>& runs, const QString& path, Job& job, SayOutcome say) {
  std::vector<std::string> files;
  for (const Run* run : runs) {
    if (run->path.isEmpty()) return say(QObject::tr("%1 has no file yet. Share it when it has ended.").arg(run->title), true);
    files.push_back(run->path.toStdString());
  }
  if (files.empty()) return say(QObject::tr("Tick the runs of the page first."), true);
  job.start([files, to = path.toStdString()](const Job::Side&) { prof::write_whole(to, share_page(files).html); },
            [say = std::move(say), name = QFileInfo(path).fileName()](const QString& problem) {
              say(problem.isEmpty() ? QObject::tr("Page written: %1. Open it in a browser.").arg(name) : problem, !problem.isEmpty());
            });
}

void ask_and_share_runs(QWidget* parent, const std::vector<const Run*>& runs, Job& job, SayOutcome say) {
  const QString path = QFileDialog::getSaveFileName(parent, QObject::tr("Page to share"), "page.html", QObject::tr("Page (*.html)"));
  if (!path.isEmpty()) share_runs(runs, path, job, std::move(say));
}

}  // namespace ws::app
