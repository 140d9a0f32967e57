// What the network has learned: weights per layer now and at the init, its first layer as pictures, its predictions.
#pragma once
#include <QElapsedTimer>
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <functional>
#include <memory>

#include "app/pages/weights/learned_view.h"
#include "app/widgets/histogram.h"
#include "app/workspace/job.h"
#include "app/workspace/run.h"

class QGridLayout;
class QLabel;

namespace ws::app {

// Gives the function to the training thread of `run`; false when that run does not train now.
using AskTrainer = std::function<bool(const Run& run, std::function<void(Executor&)>)>;

class WeightsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit WeightsPanel(AskTrainer ask, QWidget* parent = nullptr);
  void setRun(Run* run);
  void setSnapshot(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> data);
  std::shared_ptr<const WeightsSnapshot> snapshot() const { return snapshot_; }
  bool reading() const;  // weights will come

 protected:
  void showEvent(QShowEvent*) override;

 private:
  bool keptWeights() const;  // whether the run left some beside its file
  void load();
  void ask();
  void readKept();
  void showProblem(const QString& problem);
  QString whyNothing() const;
  void showHistograms();
  void showTitle(const QString& text);

  AskTrainer ask_;
  QPointer<Run> run_;
  std::shared_ptr<const WeightsSnapshot> snapshot_;
  std::shared_ptr<const data::Dataset> data_;
  std::vector<HistogramView*> histograms_;
  QGridLayout* grid_;
  std::vector<LearnedView*> views_;
  QLabel* title_;
  QTimer timer_;
  QElapsedTimer since_;  // the last question
  bool asked_ = false;   // the training thread, which has not answered yet
  bool kept_ = false;    // weights were read from beside the file, or are being read
  QString problem_;
  Job reading_;
};

}  // namespace ws::app
