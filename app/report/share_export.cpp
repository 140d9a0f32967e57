#include "app/report/share_export.h"

#include <QFileDialog>
#include <utility>

#include "app/core/page/share_page.h"
#include "app/workspace/job.h"
#include "app/workspace/run.h"
#include "profiling/base/whole_file.h"

namespace ws::app {

void share_runs(const std::vector<const Run*>& runs, const QString& path, Job& job, ShareEnd end) {
  std::vector<std::string> files;
  PageOptions options;
  for (const Run* run : runs) {
    if (run->path.isEmpty()) return end(path, QObject::tr("%1 has no file yet. Share it when it has ended.").arg(run->title));
    files.push_back(run->path.toStdString());
    options.letters.push_back(run->letter);
  }
  if (files.empty()) return end(path, QObject::tr("Tick the runs of the page first."));
  job.start([files, options, to = path.toStdString()](const Job::Side&) { prof::write_whole(to, share_page(files, options).html); },
            [end = std::move(end), path](const QString& problem) { end(path, problem); });
}

void ask_and_share_runs(QWidget* parent, const std::vector<const Run*>& runs, Job& job, ShareEnd end) {
  const QString path = QFileDialog::getSaveFileName(parent, QObject::tr("Page to share"), "page.html", QObject::tr("Page (*.html)"));
  if (!path.isEmpty()) share_runs(runs, path, job, std::move(end));
}

}  // namespace ws::app
