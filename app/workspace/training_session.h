// Trains one run at a time on a worker thread and copies its results into the Run that the window shows. Runs on
// other machines can continue beside it.
#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <deque>
#include <map>
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
  bool paused = false;  // start paused, for single steps
  int slow_rate = 20;   // steps per second at slow speed
};

// Trace options for every run started from now on, beside its level.
struct TraceExtras {
  bool counters = false;                    // sample hardware counters
  bool xray = false;                        // sample where kernels wait, in a few steps
  int64_t node_window = 0, node_every = 0;  // as in prof::CollectorOptions
};

// How fast a training on this machine goes. Slow: some steps per second, to be watched. Step: one step at each stepOnce(). The
// steps and their losses are the same at each speed.
enum class TrainSpeed { Full, Slow, Step };

class TrainingSession : public QObject {
  Q_OBJECT
 public:
  explicit TrainingSession(const QString& folder, QObject* parent = nullptr);
  ~TrainingSession() override;

  // Returns the new run, or nullptr if the spec cannot run: problem() says why.
  Run* start(const StartRequest& request);
  // Trains several runs in order. The first starts now.
  void startAll(std::vector<StartRequest> requests);
  Run* run() const { return run_; }  // the last one started
  bool busy() const { return worker_ != nullptr; }
  bool paused() const { return paused_; }
  size_t waiting() const { return queue_.size(); }
  bool inSeries() const { return in_series_; }  // in started(): the run follows another one of startAll()
  QString problem() const { return problem_; }

  void pause();
  void resume();
  void stepOnce();
  void setSpeed(TrainSpeed speed);  // also of the run in training
  TrainSpeed speed() const { return speed_; }
  int slowRate() const { return slow_rate_; }  // steps per second, of the run in training
  void stop();  // the running one and the waiting ones
  bool stopAndWait(int milliseconds);
  // Stops waiting for a run that does not end. Its thread and its file are left as they are, and the file says
  // unfinished. The thread ends only with the process; see leftBehind().
  void leave();
  static bool leftBehind();
  void change(const QString& key, const QString& value);
  void setTraceLevel(prof::TraceLevel level);
  void setTraceExtras(const TraceExtras& extras) { extras_ = extras; }
  TrainControl* control();  // nullptr unless the run is on this machine
  // From now on runs start on that machine; null: here. The run file is copied here when a run has ended: arrived().
  void setMachine(std::shared_ptr<RemoteMachine> machine);
  const std::shared_ptr<RemoteMachine>& machine() const { return machine_; }
  bool remote() const { return trains_on_ != nullptr; }  // True if the run is on another machine
  Run* attach(const RemoteJobInfo& training);            // a training that already runs there
  void detach();                                         // it continues there; its updates are no longer received
  // The run on another machine continues and is shown. A new run can then start, here or there.
  void putBeside();
  void bringForward(const QString& address);  // the newest one beside on that machine, if nothing trains in front
  std::vector<Run*> beside() const;
  QStringList placesThere() const;  // the other machines that train for this window
  bool anyBusy() const { return busy() || !beside_.empty(); }
  void stopAll();
  void detachAll();
  // While `owner` measures on the chosen machine, no run starts there, and `why` is shown. Empty: free again.
  void hold(const QObject* owner, const QString& why);
  QString held() const;  // why no run may start on the chosen machine; empty if one may
  // Sets whether there is a GPU, once that is known. Until then the training thread waits for it, not the caller.
  void setCuda(bool cuda);

 signals:
  void started(ws::app::Run* run);
  void ended(ws::app::Run* run);
  void arrived(ws::app::Run* run, const QString& path);  // the file of a remote run
  void stateChanged();
  void machineChanged();
  void failed(const QString& sentence);

 private:
  Run* begin(const StartRequest& request, QString name);
  Run* makeRun(const StartRequest& request);
  bool mayStart(const RunSpec& spec);
  // A run on another machine that continues beside the one in front.
  struct Beside {
    std::unique_ptr<TrainingWorker> worker;
    std::shared_ptr<RemoteMachine> machine;
    Run* run;
    bool paused;
  };
  void fetch(const std::string& file, const std::shared_ptr<RemoteMachine>& machine, Run* run);
  std::string applyEnd(Run& run, TrainingWorker& worker);  // returns its file on the other machine
  void markLeft(Run& run, const char* why);
  void pollBeside();
  void poll();
  void finish();
  void readTraceStatus();
  void pace();
  void giveSlowSteps();
  bool slow() const;
  void nameDevice();
  void fail(const QString& sentence);

  struct Hold {
    QString why;
    const RemoteMachine* machine;  // null: this machine
  };
  QString folder_, problem_;
  std::map<const QObject*, Hold> holds_;
  std::unique_ptr<TrainingWorker> worker_;
  std::shared_ptr<RemoteMachine> machine_, trains_on_;
  std::vector<Beside> beside_;
  Job fetching_;
  QPointer<Run> run_;  // it may be deleted from the library
  std::deque<StartRequest> queue_;
  QTimer timer_, slow_steps_;
  TrainSpeed speed_ = TrainSpeed::Full;
  int slow_rate_ = StartRequest().slow_rate;
  QElapsedTimer slow_clock_;
  qint64 slow_given_ = 0;  // steps since the clock began
  std::optional<bool> cuda_;
  bool paused_ = false, in_series_ = false;
  TraceExtras extras_;
};

}  // namespace ws::app
