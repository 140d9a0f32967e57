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
  ~WeightsPanel() override;
  void setRun(Run* run);
  void setSnapshot(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> data);
  std::shared_ptr<const WeightsSnapshot> snapshot() const { return snapshot_; }

 protected:
  void showEvent(QShowEvent*) override;

 private:
  struct Loading;
  void ask();
  void readKept();
  QString whyNothing() const;
  void collect();
  void showHistograms();
  void showTitle(const QString& text);

  AskTrainer ask_;
  QPointer<Run> run_;
  QString data_key_;
  std::shared_ptr<const WeightsSnapshot> snapshot_;
  std::shared_ptr<const data::Dataset> data_;
  std::shared_ptr<Loading> loading_;
  std::vector<HistogramView*> histograms_;
  QGridLayout* grid_;
  std::vector<LearnedView*> views_;
  QLabel* title_;
  QTimer timer_;
  QElapsedTimer since_;  // the last question
};

}  // namespace ws::app
