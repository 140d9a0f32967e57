// Shows advice for the displayed run as cards. A change that was tried shows its measured
// time beside the predicted time.
#pragma once
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <functional>
#include <vector>

#include "app/pages/insights/insight_card.h"
#include "app/pages/insights/run_advice.h"

class QLabel;
class QVBoxLayout;

namespace ws::app {

class MeaningLegend;
class SectionTitle;

class TrainingSession;

class InsightsTab : public QWidget {
  Q_OBJECT
 public:
  explicit InsightsTab(TrainingSession* session, QWidget* parent = nullptr);
  void setRuns(const std::vector<Run*>& runs);  // the ticked runs; the shown run stays if it is still among them
  void showRun(Run* run);
  Run* run() const { return run_; }
  const std::vector<InsightCard*>& cards() const { return cards_; }
  QString emptyText() const;
  SectionTitle* smallRow() const { return small_; }
  const MeaningLegend* colours() const { return colours_; }
  Run* tryChange(size_t card);  // the run that began, or nullptr
  void refresh();
  // How the page trains: the window adds its trace level and shows the choices in Setup.
  void setTrainer(std::function<Run*(const RunSpec&, const QString& title)> train) { train_ = std::move(train); }

 signals:
  void counted(int insights);
  void showWanted(ws::app::Run* run, const ws::app::Insight& insight);

 private:
  struct Attempt {
    QPointer<Run> base, run;
    std::string rule;
  };
  void fill(const RunFacts& facts, const std::vector<Insight>& found);
  void showAttempts();
  void sessionEnded(Run* run);
  const Attempt* attemptOf(const std::string& rule) const;
  QString blockedBecause(const Insight& insight) const;
  bool needsGpu(const Insight& insight) const;  // to try it, and this machine has none

  TrainingSession* session_;
  QPointer<Run> run_;
  std::vector<Attempt> attempts_;
  std::function<Run*(const RunSpec&, const QString&)> train_;
  void showSmall();
  QLabel *empty_, *note_;
  SectionTitle* small_;  // opens and closes the cards that change little
  MeaningLegend* colours_;
  QString noted_;  // about the predictions
  QVBoxLayout* column_;
  std::vector<InsightCard*> cards_;
  std::vector<std::string> shown_;  // headlines and savings of the cards: cards are rebuilt only if these change
  QTimer due_;
  bool trying_ = false;  // the run that starts now is an attempt
  RunAdvice advice_;
};

}  // namespace ws::app
