// A foldable group: a title line that says its content when folded, and a body.
#pragma once
#include <QAbstractButton>
#include <QWidget>

class QVBoxLayout;

namespace ws::app {

class SectionTitle : public QAbstractButton {
  Q_OBJECT
 public:
  SectionTitle(const QString& title, QWidget* parent);
  void setNote(const QString& note);
  QSize sizeHint() const override { return {200, 24}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  QString note_;
};

class Section : public QWidget {
  Q_OBJECT
 public:
  Section(const QString& title, QWidget* parent = nullptr);
  QVBoxLayout* body() const { return body_; }
  bool isOpen() const;
  void setOpen(bool open);
  void setNotes(const QString& open, const QString& folded);

 signals:
  void toggled(bool open);

 private:
  void showNote();
  SectionTitle* title_;
  QWidget* content_;
  QVBoxLayout* body_;
  QString open_note_, folded_note_;
};

}  // namespace ws::app
