// Work beside the window: on a thread of its own, one piece after the other. Its news and its end come to the window's
// thread. The destructor cancels what is left and waits for it.
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
  // What a piece of work sees of its job.
  class Side {
   public:
    Side(Job* job, std::shared_ptr<Task> task);
    const std::shared_ptr<std::atomic<bool>>& cancelled() const { return cancelled_; }
    void tell(std::function<void()> news) const;  // on the window's thread, unless the work was dropped

   private:
    Job* job_;
    std::shared_ptr<Task> task_;
    std::shared_ptr<std::atomic<bool>> cancelled_;
  };

  explicit Job(QObject* parent = nullptr) : QObject(parent) {}
  ~Job() override;

  // `done` gets a sentence if the work threw an exception; it may call deleteLater() on the job.
  void start(std::function<void(const Side&)> work, std::function<void(const QString& problem)> done);
  void cancel();  // asks everything to stop; its end is told as usual
  void drop();    // cancels, and nothing more is told
  bool running() const { return !tasks_.empty() && !tasks_.back()->dropped; }

 private:
  struct Task {
    std::function<void(const Side&)> work;
    std::function<void(const QString&)> done;
    std::atomic<bool> cancelled{false};
    bool dropped = false;  // read and written by the window's thread
  };
  void begin();
  void ended(const QString& problem);

  std::deque<std::shared_ptr<Task>> tasks_;
  std::jthread thread_;
};

}  // namespace ws::app
