// While a closing window waits for something: what is waited for, for how long, and the ways out.
#pragma once
#include <QDialog>
#include <QElapsedTimer>
#include <QTimer>
#include <functional>

class QLabel;
class QPushButton;

namespace ws::app {

class TrainingSession;

struct Waiting {
  QString title;                                // "Finishing “MNIST”…"
  std::function<QString(qint64 seconds)> what;  // what goes on after so long
  std::function<bool()> busy;
  int patience_ms = 5000;       // after which there is a way out
  bool attended = true;         // false: nobody is there to take it, so it is taken by itself
  QString leave, what_is_left;  // its button, and what it means
};
Waiting waiting_for(const TrainingSession& session);

class FinishingBox : public QDialog {
  Q_OBJECT
 public:
  FinishingBox(Waiting waiting, QWidget* parent);
  QString text() const;
  QPushButton* leave() const { return leave_; }
  QPushButton* keepOpen() const { return keep_open_; }
  void setUnattended() { waiting_.attended = false; }

 signals:
  void over();            // it is busy no longer
  void leftUnfinished();  // the person does not wait any longer
  void stayOpen();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void reject() override;

 private:
  void refresh();

  Waiting waiting_;
  QElapsedTimer since_;
  QTimer tick_;
  QLabel *title_, *what_;
  QPushButton *leave_, *keep_open_;
};

}  // namespace ws::app
