// A foldable group: a title line that describes its content when folded, and a body.
#pragma once
#include <QAbstractButton>
#include <QWidget>

class QToolButton;
class QVBoxLayout;

namespace ws::app {

class SectionTitle : public QAbstractButton {
  Q_OBJECT
 public:
  SectionTitle(const QString& title, QWidget* parent);
  void setNote(const QString& note);
  QToolButton* addHelp();  // adds a "?" after the title that switches explanations on and off
  QSize sizeHint() const override { return {200, 24}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  double noteLeft() const;
  QString note_;
  QToolButton* help_ = nullptr;
};

class Section : public QWidget {
  Q_OBJECT
 public:
  Section(const QString& title, QWidget* parent = nullptr);
  QVBoxLayout* body() const { return body_; }
  void addHelp();
  bool isOpen() const;
  void setOpen(bool open);
  void setNotes(const QString& open, const QString& folded);

 signals:
  void toggled(bool open);
  void helpToggled(bool on);

 private:
  void showNote();
  SectionTitle* title_;
  QWidget* content_;
  QVBoxLayout* body_;
  QString open_note_, folded_note_;
};

}  // namespace ws::app
