#include "app/core/remote/job_sender.h"

namespace ws::app {
namespace {

constexpr uint64_t kTraceKept = 64u << 20;  // bytes

}  // namespace

JobSender::JobSender(const JobFolder& job)
    : job_(job), news_(job.file("news")), curves_(job), trace_(job.path(), kTracePieces, kTraceKept) {}

void JobSender::send(const RemoteUpdate& update) {
  if (const std::string now = UpdateWriter::now(update); !now.empty()) say_now(job_, "now", now);
  news_.add(writer_.news(update));  // before the trace, which uses these ops
  curves_.add({update.run.steps, update.run.epochs});
  for (const prof::TraceBatch& batch : update.run.traces) trace_.add(UpdateWriter::trace(batch));
}

void JobSender::say(const std::string& text, bool problem) {
  RemoteUpdate update;
  update.run.messages.push_back({text, problem});
  send(update);
}

}  // namespace ws::app
