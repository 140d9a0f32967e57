// Reads what a run has learned: repeatedly during training, or once from the weights stored beside its file.
#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <functional>
#include <memory>

#include "app/network/weights_probe.h"
#include "app/workspace/job.h"
#include "app/workspace/training_session.h"

namespace ws::app {

// Passes the function to the training thread of `run`. Returns false if that run does not train now.
using AskTrainer = std::function<bool(const Run& run, std::function<void(Executor&)>)>;
AskTrainer trainer_of(TrainingSession* session);

class WeightsReader : public QObject {
  Q_OBJECT
 public:
  explicit WeightsReader(AskTrainer ask, QObject* parent = nullptr);
  void setRun(Run* run);  // nullptr for no run
  Run* run() const { return run_; }
  void setWatched(bool watched);  // it reads only while it is visible
  bool has() const { return snapshot_ != nullptr; }
  bool reading() const;        // a snapshot will come
  QString whyNothing() const;  // one sentence while there is no snapshot

 signals:
  void read(std::shared_ptr<const ws::app::WeightsSnapshot> snapshot, std::shared_ptr<const ws::data::Dataset> rows);
  void failed(const QString& sentence);

 private:
  void loadRows();
  void ask();
  void askKept();
  void take(std::shared_ptr<const WeightsSnapshot> snapshot);
  void fail(const QString& problem);

  AskTrainer ask_;
  QPointer<Run> run_;
  std::shared_ptr<const WeightsSnapshot> snapshot_;
  std::shared_ptr<const data::Dataset> rows_;
  QTimer timer_;
  QElapsedTimer since_;      // since the last request
  qint64 took_ms_ = 0;       // how long the last answer took
  bool watched_ = false;
  bool asked_ = false;       // a request to the training thread is open
  bool asked_kept_ = false;  // the weights beside the file were read, or are being read
  bool failed_ = false;
  Job reading_;
};

}  // namespace ws::app
