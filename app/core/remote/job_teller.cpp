#include "app/core/remote/job_teller.h"

namespace ws::app {
namespace {

constexpr uint64_t kTraceKept = 64u << 20;  // bytes

}  // namespace

JobTeller::JobTeller(const JobFolder& job)
    : job_(job), news_(job.file("news")), curves_(job), trace_(job.path(), kTracePieces, kTraceKept) {}

void JobTeller::tell(const RemoteUpdate& update) {
  if (const std::string now = UpdateWriter::now(update); !now.empty()) say_now(job_, "now", now);
  news_.add(writer_.news(update));  // before the trace, which uses these ops
  curves_.add({update.run.steps, update.run.epochs});
  for (const prof::TraceBatch& batch : update.run.traces) trace_.add(UpdateWriter::trace(batch));
}

void JobTeller::say(const std::string& text, bool problem) {
  RemoteUpdate update;
  update.run.messages.push_back({text, problem});
  tell(update);
}

}  // namespace ws::app
