// Runs work on its own thread, one piece after the other. Its updates and its end arrive on the window's thread. The
// destructor cancels the remaining work and waits for it.
#pragma once
#include <QObject>
#include <QString>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

namespace ws::app {

class Job : public QObject {
  struct Task;

 public:
  // The view of its job that a piece of work has.
  class Side {
   public:
    Side(Job* job, std::shared_ptr<Task> task);
    const std::shared_ptr<std::atomic<bool>>& cancelled() const { return cancelled_; }
    void post(std::function<void()> news) const;  // on the window's thread, unless the work was dropped

   private:
    Job* job_;
    std::shared_ptr<Task> task_;
    std::shared_ptr<std::atomic<bool>> cancelled_;
  };

  explicit Job(QObject* parent = nullptr);
  ~Job() override;

  // `done` gets a sentence if the work threw an exception; it may call deleteLater() on the job.
  void start(std::function<void(const Side&)> work, std::function<void(const QString& problem)> done);
  void cancel();  // asks everything to stop; its end is reported as usual
  void drop();    // cancels and reports nothing more
  bool running() const { return !tasks_.empty() && !tasks_.back()->dropped; }
  static bool anyRunning();  // of all jobs of the window; a picture of it waits for them

 private:
  struct Task {
    std::function<void(const Side&)> work;
    std::function<void(const QString&)> done;
    std::atomic<bool> cancelled{false};
    bool dropped = false;  // used only on the window's thread
  };
  void begin();
  void ended(const QString& problem);

  std::deque<std::shared_ptr<Task>> tasks_;
  std::jthread thread_;
};

}  // namespace ws::app
