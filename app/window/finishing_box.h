// While a closing window waits for its run: what is waited for, for how long, and the ways out.
#pragma once
#include <QDialog>
#include <QElapsedTimer>
#include <QTimer>

class QLabel;
class QPushButton;

namespace ws::app {

class Run;
class Session;

class FinishingBox : public QDialog {
  Q_OBJECT
 public:
  FinishingBox(Session* session, QWidget* parent);
  QString text() const;
  QPushButton* leave() const { return leave_; }
  QPushButton* keepOpen() const { return keep_open_; }

 signals:
  void leftUnfinished();  // the person does not wait any longer
  void stayOpen();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void reject() override;

 private:
  void refresh();

  Session* session_;
  QElapsedTimer since_;
  QTimer tick_;
  QLabel *title_, *what_;
  QPushButton *leave_, *keep_open_;
};

}  // namespace ws::app
