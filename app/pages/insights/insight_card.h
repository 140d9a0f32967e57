// One insight: the finding, the part of the step that shows it, and the expected effect of the change.
#pragma once
#include <QFrame>
#include <functional>

#include "app/core/insights/predicted_savings.h"

class QGridLayout;
class QHBoxLayout;
class QLabel;
class QPushButton;

namespace ws::app {

// The result of a change that was tried.
struct Tried {
  bool running = false;
  double measured_us = 0;  // median step; 0 if unknown
  double first_loss = 0, last_loss = 0;
  QString problem;  // why it did not run to its end
};

// Bars of the step: now, predicted and measured, on one scale. Only the part that the insight is about has full colour.
class EvidenceBars : public QWidget {
  Q_OBJECT
 public:
  explicit EvidenceBars(QWidget* parent = nullptr);
  struct Part {
    prof::PartId id;
    double us;
  };
  // `split`: the step of the run, the same on all cards; empty if the insight is about another step.
  void setContent(const RunFacts& facts, const std::vector<Part>& split, const Insight& insight, const Tried* tried);
  int rows() const { return static_cast<int>(rows_.size()); }
  std::vector<prof::PartId> colours() const;  // that the bars have
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {220, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  enum class RowKind { Now, Predicted, Measured };
  struct Row {
    RowKind kind;
    QString value;
    double us = 0;
    std::vector<Part> parts;
    QString change;  // compared with now
  };
  QString nameOf(RowKind kind) const;
  void setParts(Row& now, const RunFacts& facts, const std::vector<Part>& split);
  void paintParts(QPainter& painter, const Row& row, const QRectF& bar, double scale) const;
  bool isOneOfSeveral(const Part& part) const;
  QString shareText() const;
  QString caption() const;  // of the part that the insight is about; empty without one
  QString timeText(double us) const;  // in the unit of the step
  QString nameOfPart() const;  // that the insight is about
  void paintRow(QPainter& painter, const Row& row, const QRectF& box, double scale) const;
  std::vector<Row> rows_;
  double step_us_ = 0, meant_us_ = 0;  // meant: the part that the insight is about
  bool host_waits_ = false;            // also while the GPU works
  bool share_in_text_ = false;         // of that part: the card says it
  prof::PartId look_at_{prof::Meaning::Other};
  QString rule_;   // "waits for data"
  QString steps_;  // "steps 21–58"; empty: the time is not cut to steps
  bool of_ranks_ = false;   // the mean step of all ranks
  bool of_itself_ = false, whole_trace_ = false;
  std::vector<prof::Meaning> several_parts_;
};

class InsightCard : public QFrame {
  Q_OBJECT
 public:
  InsightCard(const RunFacts& facts, const Insight& insight, const AdviceLines& lines, QWidget* parent = nullptr);
  void setTried(const Tried* tried);    // nullptr if not tried yet
  void setBlocked(const QString& why, bool shown);  // why the change cannot be tried now; empty if it can. Not shown: the tip of the button only
  void setShowable(const std::function<bool(const Insight&)>& can);  // whether the timeline has it
  const Insight& insight() const { return insight_; }
  QPushButton* applyButton() const { return apply_; }
  QPushButton* showButton() const { return shows_.front().button; }
  QString resultText() const;
  std::vector<prof::PartId> colours() const { return bars_->colours(); }

 signals:
  void showClicked(const ws::app::Insight& shown);
  void applyClicked();

 private:
  void addShow(const Insight& shown, const QString& words, QHBoxLayout* buttons);
  QGridLayout* buildLines(const AdviceLines& lines);
  QString changeText() const;
  RunFacts facts_;
  std::vector<EvidenceBars::Part> split_;
  Insight insight_;
  EvidenceBars* bars_;
  QLabel *result_, *blocked_;
  QPushButton* apply_;
  struct Show {
    Insight insight;
    QPushButton* button;
  };
  std::vector<Show> shows_;  // of the insight, of the findings about the same part of the step, of what it includes
};

}  // namespace ws::app
