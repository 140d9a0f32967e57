// The body of a pane that says its result in one line above a picture, or why there is none.
#pragma once
#include <QWidget>

class QLabel;

namespace ws::app {

class WordLabel;

class Headlined : public QWidget {
  Q_OBJECT
 public:
  explicit Headlined(QWidget* parent = nullptr);
  void setPicture(QWidget* picture);
  QString headline() const;
  QString notes() const;
  void showResult(const QString& headline, const QString& notes, const QString& tip = {});  // notes: words in brackets are underlined
  void showReason(const QString& why_empty);  // hides the rest

 private:
  QLabel* headline_;
  WordLabel* notes_;
  QLabel* empty_;
  QWidget* picture_ = nullptr;
};

}  // namespace ws::app
