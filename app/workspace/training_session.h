// Trains one run at a time on a worker thread and moves what happened into the Run that the window shows. Runs on other
// machines may go on beside it.
#pragma once
#include <QObject>
#include <QTimer>
#include <deque>
#include <memory>
#include <optional>

#include "app/core/runs/traced_training.h"
#include "app/workspace/remote_machine.h"
#include "app/workspace/run.h"
#include "app/workspace/training_worker.h"

namespace ws::app {

struct StartRequest {
  RunSpec spec;
  QString title;
  prof::TraceLevel trace = prof::TraceLevel::Kernels;
  bool paused = false;  // begin with a pause, for single steps
};

// Of every run that starts from here on, beside its level.
struct TraceExtras {
  bool counters = false;                    // sample hardware counters
  int64_t node_window = 0, node_every = 0;  // as prof::CollectorOptions has them
};

class TrainingSession : public QObject {
  Q_OBJECT
 public:
  explicit TrainingSession(const QString& folder, QObject* parent = nullptr);
  ~TrainingSession() override;

  // The new run, or nullptr when the spec cannot run: problem() says why.
  Run* start(const StartRequest& request);
  // Several runs, one after the other; the first starts now.
  void startAll(std::vector<StartRequest> requests);
  Run* run() const { return run_; }  // the last one started
  bool busy() const { return worker_ != nullptr; }
  bool paused() const { return paused_; }
  size_t waiting() const { return queue_.size(); }
  QString problem() const { return problem_; }

  void pause();
  void resume();
  void stepOnce();
  void stop();  // the running one and those that wait
  bool stopAndWait(int milliseconds);
  // Waits no longer for a run that does not come to its end: its thread and its file are left as they are, the file
  // says unfinished. Only the end of the process ends that thread; see leftBehind().
  void leave();
  static bool leftBehind();
  void change(const QString& key, const QString& value);
  void setTraceLevel(prof::TraceLevel level);
  void setTraceExtras(const TraceExtras& extras) { extras_ = extras; }
  TrainControl* control();  // of one that runs on this machine, else nullptr
  // From now on runs start there; null: here. The run file comes here when one has ended: arrived().
  void setMachine(std::shared_ptr<RemoteMachine> machine) { machine_ = std::move(machine); }
  RemoteMachine* machine() const { return machine_.get(); }
  bool remote() const { return trains_on_ != nullptr; }  // the running one runs on another machine
  Run* attach(const RemoteJobInfo& training);            // one that runs there already
  void detach();                                         // it runs on there; nothing more is heard of it
  // The one on another machine goes on and is shown, but another may be begun beside it, here or there.
  void putBeside();
  void bringForward(const QString& address);  // the newest one beside of that machine, if nothing trains in front
  std::vector<Run*> beside() const;
  QStringList placesThere() const;  // the other machines that train for this window
  bool anyBusy() const { return busy() || !beside_.empty(); }
  void stopAll();
  void detachAll();
  // While something else trains on this machine no run starts: `why` is what is said. Empty: free again.
  void hold(const QString& why) { held_ = why; }
  // Whether there is a GPU, once that is known. Before, the training thread waits for the answer, not the caller.
  void setCuda(bool cuda);

 signals:
  void started(ws::app::Run* run);
  void ended(ws::app::Run* run);
  void arrived(ws::app::Run* run, const QString& path);  // the file of a run of another machine
  void stateChanged();
  void failed(const QString& sentence);

 private:
  Run* begin(const StartRequest& request, QString name);
  Run* makeRun(const StartRequest& request);
  bool mayStart(const RunSpec& spec);
  // A run on another machine that goes on beside the one in front.
  struct Beside {
    std::unique_ptr<TrainingWorker> worker;
    std::shared_ptr<RemoteMachine> machine;
    Run* run;
    bool paused;
  };
  void fetch(const std::string& file, const std::shared_ptr<RemoteMachine>& machine, Run* run);
  static std::string applyEnd(Run& run, TrainingWorker& worker);  // the file that it left on another machine
  static void markLeft(Run& run, const char* why);
  void pollBeside();
  void poll();
  void finish();
  void readTraceStatus();
  void nameDevice();
  void fail(const QString& sentence);

  QString folder_, problem_, held_;
  std::unique_ptr<TrainingWorker> worker_;
  std::shared_ptr<RemoteMachine> machine_, trains_on_;
  std::vector<Beside> beside_;
  Job fetching_;
  Run* run_ = nullptr;
  std::optional<RunSpec> last_;  // what the last run began with
  std::deque<StartRequest> queue_;
  QTimer timer_;
  std::optional<bool> cuda_;
  bool paused_ = false;
  TraceExtras extras_;
};

}  // namespace ws::app
