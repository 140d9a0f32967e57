// The page of a first launch: lessons of a few real runs each, what works on this machine, and other starting points.
#pragma once
#include <QFrame>
#include <QWidget>
#include <vector>

#include "app/workspace/device_probe.h"
#include "app/workspace/lessons.h"

class QGridLayout;
class QHBoxLayout;
class QLayout;
class QPushButton;
class QRadioButton;

namespace ws::app {

class WordLabel;

struct LessonPicture {
  QString name;  // of the lesson
  size_t runs;
  bool recorded;
  bool answered;  // False: it must not show the answer to the lesson's question
};
void paint_lesson(QPainter& painter, const QRectF& box, const LessonPicture& picture);

// A card with a picture, a title, a text, a question with its answers, and a button that trains its runs or opens recorded
// ones. An answer may be chosen before.
class StartCard : public QFrame {
  Q_OBJECT
 public:
  StartCard(const Lesson& lesson, bool cuda, bool primary, QWidget* parent);
  QPushButton* button() const { return button_; }
  const std::vector<QRadioButton*>& answers() const { return answers_; }
  int expected() const;  // the answer that is chosen; −1: none

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  const Lesson& lesson_;
  bool primary_, recorded_ = false;
  size_t runs_ = 0;
  QPushButton* button_;
  std::vector<QRadioButton*> answers_;
};

class StartPage : public QWidget {
  Q_OBJECT
 public:
  explicit StartPage(QWidget* parent = nullptr);
  void setDevice(const DeviceInfo* device);  // nullptr while looking
  const std::vector<StartCard*>& cards() const { return cards_; }

 signals:
  void start(int index, int expected);
  void openFile();
  void ownData();
  void recordWanted();   // another program
  void connectWanted();  // to another machine

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  QLayout* buildOwn(QWidget* inside);
  void showLessons(bool cuda);
  void addFact(QGridLayout* grid, int line, bool good, const QString& what, const QString& state);

  std::vector<StartCard*> cards_;
  QHBoxLayout* row_;
  WordLabel* sentence_;
  QGridLayout* facts_ = nullptr;
};

}  // namespace ws::app
