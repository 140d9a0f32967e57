#include "app/workspace/job.h"

#include <algorithm>
#include <exception>
#include <set>
#include <system_error>
#include <utility>

namespace ws::app {

namespace {

// Used on the window's thread. Never freed: a job may end after all other statics.
std::set<const Job*>& all_jobs() {
  static auto* const jobs = new std::set<const Job*>;
  return *jobs;
}

}  // namespace

Job::Side::Side(Job* job, std::shared_ptr<Task> task)
    : job_(job), task_(std::move(task)), cancelled_(task_, &task_->cancelled) {}

void Job::Side::post(std::function<void()> news) const {
  const auto deliver = [task = task_, news = std::move(news)] {
    if (!task->dropped) news();
  };
  QMetaObject::invokeMethod(job_, deliver, Qt::QueuedConnection);
}

Job::Job(QObject* parent) : QObject(parent) { all_jobs().insert(this); }

Job::~Job() {
  all_jobs().erase(this);
  drop();
  thread_ = {};
}

bool Job::anyRunning() {
  return std::ranges::any_of(all_jobs(), [](const Job* job) { return job->running(); });
}

void Job::start(std::function<void(const Side&)> work, std::function<void(const QString& problem)> done) {
  auto task = std::make_shared<Task>();
  task->work = std::move(work), task->done = std::move(done);
  tasks_.push_back(std::move(task));
  if (tasks_.size() == 1) begin();
}

void Job::begin() {
  const auto end_later = [this](const QString& problem) {
    QMetaObject::invokeMethod(this, [this, problem] { ended(problem); }, Qt::QueuedConnection);
  };
  const auto work = [this, end_later, task = tasks_.front()] {
    QString problem;
    try {
      task->work(Side(this, task));
    } catch (const std::exception& failure) {
      problem = QString::fromUtf8(failure.what());
    }
    end_later(problem);
  };
  try {
    thread_ = std::jthread(work);
  } catch (const std::system_error& failure) {
    end_later(QObject::tr("No further thread could be started: %1").arg(failure.what()));
  }
}

void Job::ended(const QString& problem) {
  thread_ = {};
  const std::shared_ptr<Task> task = tasks_.front();
  tasks_.pop_front();
  while (!tasks_.empty() && tasks_.front()->dropped) tasks_.pop_front();
  if (!tasks_.empty()) begin();
  if (!task->dropped && task->done) task->done(problem);
}

void Job::cancel() {
  for (const auto& task : tasks_) task->cancelled = true;
}

void Job::drop() {
  for (const auto& task : tasks_) task->cancelled = task->dropped = true;
}

}  // namespace ws::app
