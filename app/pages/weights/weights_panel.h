// What the network has learned. "At work": what it makes of a picture or a text, while it trains. "Weights": weights per layer
// now and at initialisation, the first layer as pictures, predictions.
#pragma once
#include <QWidget>

#include "app/network/at_work_view.h"
#include "app/network/learned_view.h"
#include "app/network/weights_reader.h"
#include "app/widgets/histogram.h"
#include "app/widgets/segmented_row.h"

class QGridLayout;
class QScrollArea;
class QLabel;

namespace ws::app {

class Pane;

class WeightsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit WeightsPanel(AskTrainer ask, QWidget* parent = nullptr);
  void setRun(Run* run);
  const Run* run() const { return reader_.run(); }
  void setSnapshot(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> data);
  std::shared_ptr<const WeightsSnapshot> snapshot() const { return snapshot_; }
  bool reading() const { return reader_.reading() || (showsWork() && !work_->hasContent()); }  // weights or a look will come
  AtWorkView* work() const { return work_; }
  bool showsWork() const { return snapshot_ && work_->isVisibleTo(this); }

 protected:
  void showEvent(QShowEvent*) override;
  void hideEvent(QHideEvent*) override;

 private:
  void showHistograms();
  void showReason(const QString& text);
  void showPart();

  WeightsReader reader_;
  std::shared_ptr<const WeightsSnapshot> snapshot_;
  std::shared_ptr<const data::Dataset> rows_;
  std::vector<HistogramView*> histograms_;
  QGridLayout* grid_;
  std::vector<LearnedView*> views_;
  Pane* pane_;
  QLabel* reason_;  // why there is nothing, and how to get it
  SegmentedRow* parts_;
  AtWorkView* work_;
  QScrollArea* scroll_ = nullptr;
};

}  // namespace ws::app
