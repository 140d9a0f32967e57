// The box that a closing window shows while it waits: what it waits for, for how long, and how to leave.
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
  std::function<QString(qint64 seconds)> what;  // what is running after so many seconds
  std::function<bool()> busy;
  int patience_ms = 5000;       // after this time the user can leave
  bool attended = true;         // false: nobody is there, so leave automatically
  QString leave, what_is_left;  // text of the leave button, and what it means
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
  void over();            // it is no longer busy
  void leftUnfinished();  // the user does not wait any longer
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
