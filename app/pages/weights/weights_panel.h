// What the network has learned: weights per layer now and at initialisation, the first layer as pictures, predictions.
#pragma once
#include <QWidget>

#include "app/network/learned_view.h"
#include "app/network/weights_reader.h"
#include "app/widgets/histogram.h"

class QGridLayout;
class QLabel;

namespace ws::app {

class WeightsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit WeightsPanel(AskTrainer ask, QWidget* parent = nullptr);
  void setRun(Run* run);
  void setSnapshot(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> data);
  std::shared_ptr<const WeightsSnapshot> snapshot() const { return snapshot_; }
  bool reading() const { return reader_.reading(); }  // weights will come

 protected:
  void showEvent(QShowEvent*) override;
  void hideEvent(QHideEvent*) override;

 private:
  void showHistograms();
  void showTitle(const QString& text);

  WeightsReader reader_;
  std::shared_ptr<const WeightsSnapshot> snapshot_;
  std::vector<HistogramView*> histograms_;
  QGridLayout* grid_;
  std::vector<LearnedView*> views_;
  QLabel* title_;
  QScrollArea* scroll_ = nullptr;
};

}  // namespace ws::app
