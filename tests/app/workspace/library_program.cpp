// Does what a person does with the runs in runs/: looks at them, renames, tags and annotates kept.wsrun, deletes killed.wsrun
// and takes that back, imports other.wsrun and saves copy.wsrun. Ends with 1 where something could not be done.
#include <QCoreApplication>
#include <QElapsedTimer>
#include <cstdio>

#include "app/workspace/library_jobs.h"
#include "app/workspace/run_library.h"

using namespace ws::app;

namespace {

bool failed = false;

void say(const QString& sentence) {
  failed = true;
  std::fprintf(stderr, "warpsight: %s\n", qPrintable(sentence));
}

template <class Busy>
void wait_while(const Busy& busy) {
  QElapsedTimer since;
  since.start();
  while (busy() && since.elapsed() < 50'000) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents, 20);
  if (busy()) std::_Exit(3);
}

void change(RunLibrary& library, LibraryJobs& jobs) {
  Run* kept = library.byPath("runs/kept.wsrun");
  if (!kept) return say("kept.wsrun is not listed.");
  library.setTicked(kept, true);
  wait_while([&] { return library.loading(); });
  library.rename(kept, "A new name");
  library.setTags(kept, {"one", "two"});
  library.setNote(kept, "A note.");
  if (Run* killed = library.byPath("runs/killed.wsrun"); killed && library.remove(killed)) library.undoRemove();
  jobs.import("other.wsrun");
  jobs.exportRun(*kept, "copy.wsrun");
  wait_while([&] { return jobs.busy(); });
}

}  // namespace

int main(int argc, char** argv) {
  const QCoreApplication app(argc, argv);
  RunLibrary library("runs");
  LibraryJobs jobs(library);
  QObject::connect(&library, &RunLibrary::failed, say);
  QObject::connect(&jobs, &LibraryJobs::failed, say);
  library.refresh();
  change(library, jobs);
  return failed ? 1 : 0;
}
