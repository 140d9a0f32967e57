// What a first launch shows: three starts that each train real runs, what works on this machine, other ways in.
#pragma once
#include <QFrame>
#include <QWidget>
#include <functional>
#include <vector>

#include "app/workspace/device_probe.h"
#include "app/workspace/training_session.h"

class QGridLayout;
class QLabel;
class QPushButton;

namespace ws::app {

struct Start {
  QString title, text, length;
  std::function<void(QPainter&, const QRectF&)> picture;
  std::vector<StartRequest> (*requests)(bool cuda);
};
const std::vector<Start>& starts();

// A card with a picture, a title, a text and a Train button.
class StartCard : public QFrame {
  Q_OBJECT
 public:
  StartCard(const Start& start, bool primary, QWidget* parent);
  QPushButton* button() const { return button_; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  const Start& start_;
  bool primary_;
  QPushButton* button_;
};

class StartPage : public QWidget {
  Q_OBJECT
 public:
  explicit StartPage(QWidget* parent = nullptr);
  void setDevice(const DeviceInfo* device);  // nullptr: still looking
  const std::vector<StartCard*>& cards() const { return cards_; }

 signals:
  void start(int index);
  void openFile();
  void ownData();
  void commands();

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  QWidget* buildMachine();
  QWidget* buildElsewhere();
  void addFact(QGridLayout* grid, int line, bool good, const QString& what, const QString& state);

  std::vector<StartCard*> cards_;
  QLabel* sentence_;
  QGridLayout* facts_ = nullptr;
};

}  // namespace ws::app
