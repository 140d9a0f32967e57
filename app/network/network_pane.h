// The pane beside the loss that shows what the network learns: its decision boundary, first-layer
// filters, and wrong predictions. The boundary of the baseline stands beside it.
#pragma once
#include "app/network/at_work_view.h"
#include "app/network/learned_view.h"
#include "app/network/weights_reader.h"
#include "app/widgets/pane.h"

class QBoxLayout;
class QLabel;
class QPushButton;
class QTextBrowser;

namespace ws::app {

class NetworkPane : public Pane {
  Q_OBJECT
 public:
  explicit NetworkPane(TrainingSession* session, QWidget* parent = nullptr);
  void setRuns(const std::vector<Run*>& runs);  // shows the network of the current run, and the plane of the baseline
  bool useful() const { return useful_; }       // one of the runs has weights: the pane has its place
  const Run* run() const { return reader_.run(); }
  QPushButton* swapButton() const { return swap_; }
  const std::vector<LearnedView*>& views() const { return views_; }
  LearnedView* baselinePlane() const { return baseline_plane_; }

 signals:
  void swapWanted();  // swap with the loss

 protected:
  void showEvent(QShowEvent*) override;
  void hideEvent(QHideEvent*) override;
  void resizeEvent(QResizeEvent*) override;

 private:
  void take(const std::shared_ptr<const WeightsSnapshot>& snapshot, const std::shared_ptr<const data::Dataset>& rows);
  void showPlanes();
  void say(const QString& sentence);
  void takeLook(const std::shared_ptr<const Look>& look);

  WeightsReader reader_, baseline_;
  bool useful_ = false;
  std::vector<LearnedView*> views_;  // plane, filters, wrong predictions, confusion matrix
  LearnedView* baseline_plane_;
  QBoxLayout* planes_;
  LookReader looks_;  // of a network that reads text
  std::vector<WrittenText> written_;
  QTextBrowser* texts_;
  QLabel* empty_;
  QPushButton* swap_;
};

}  // namespace ws::app
