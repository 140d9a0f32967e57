// The line at the bottom: state, records and drops, history; on the right, the keys that work here.
#pragma once
#include <QTimer>
#include <QWidget>
#include <vector>

namespace ws::app {

struct StatusPart {
  QString text;
  bool warn = false;  // drops above zero: warning colour and a triangle
};

class StatusLine : public QWidget {
  Q_OBJECT
 public:
  explicit StatusLine(QWidget* parent = nullptr);
  void setState(const QString& state, const QColor& dot);
  void setParts(std::vector<StatusPart> parts);
  // Text and keys: a part in brackets is drawn as a key, "[W] [S] zoom".
  void setKeys(const QString& keys);
  // A sentence about the past goes away after a while.
  void say(const QString& sentence, bool warn);  // shown until the next state
  QString text() const;

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  double paintKeys(QPainter& painter);
  QString state_, keys_;
  StatusPart note_;
  QTimer note_end_;
  QColor dot_;
  std::vector<StatusPart> parts_;
};

void draw_key(QPainter& painter, double& x, double middle, const QString& key);
double key_width(const QString& key);

}  // namespace ws::app
