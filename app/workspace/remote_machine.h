// Another machine that the window trains on: its line, its GPU, and whether it can be reached now.
#pragma once
#include <QObject>
#include <QStringList>
#include <QTimer>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "app/core/remote/remote_link.h"
#include "app/workspace/job.h"
#include "engine/plan/run_spec.h"

namespace ws::app {

// A job that runs there, from its start request.
struct RemoteJobInfo {
  QString name, title, kind;  // "train", "record", "experiment", "lab" or "torch"
  RunSpec spec;               // only for a training, by this program or PyTorch
  std::string text;           // the whole job as JSON
};
std::vector<RemoteJobInfo> jobs_there(RemoteLink& link);  // waits; throws Failure

// Path in the folder for the copy of a run file from there. It never names an existing file: names from there are data.
QString path_for_copy(const QString& folder, const std::string& run_file);

class RemoteMachine : public QObject {
  Q_OBJECT
 public:
  explicit RemoteMachine(const QString& address);  // throws Failure for a wrong address
  RemoteLink& link() { return *link_; }
  QString place() const;
  QString address() const;
  bool hasGpu() const { return gpu_; }
  QString device() const { return device_; }  // "NVIDIA H200"; empty if not known yet
  bool up() const { return up_; }
  QString text() const;                       // "gpu7 · NVIDIA H200", or why the line is down
  const std::vector<RemoteJobInfo>& running() const { return running_; }  // state when the line came up

 signals:
  void ready();                           // it has reported its device and its jobs
  void refused(const QString& sentence);  // no connection is possible
  void changed();                         // text() changed
  void said(const QString& sentence, bool problem);  // the line was cut, or is up again

 private:
  void look();
  void sayWhatChanged(LineState now);

  std::shared_ptr<RemoteLink> link_;
  QString device_, text_;
  bool up_ = false, asked_ = false, gpu_ = false;
  LineState state_ = LineState::Connecting;
  std::vector<RemoteJobInfo> running_;
  QTimer timer_;
  Job asking_;
};

QStringList known_hosts();  // from ~/.ssh/config, in its order

}  // namespace ws::app
