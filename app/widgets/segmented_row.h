// All values of a choice side by side. One is selected. Blocked values stay readable.
#pragma once
#include <QAbstractButton>
#include <QWidget>
#include <vector>

class QButtonGroup;

namespace ws::app {

class Segment : public QAbstractButton {
  Q_OBJECT
 public:
  Segment(const QString& value, const QString& label, QWidget* parent);
  const QString& value() const { return value_; }
  void setExplanation(const QString& sentence) {
    explain_ = sentence, setToolTip(sentence), setAccessibleDescription(sentence);
  }
  const QString& explanation() const { return explain_; }
  bool blocked() const { return blocked_; }
  void setBlocked(bool blocked);
  void setOther(bool other);  // dashed: another run has this value
  void setEnds(bool first, bool last) { first_ = first; last_ = last; }
  QSize sizeHint() const override { return {wanted_width_, 23}; }
  QSize minimumSizeHint() const override { return {least_width_, 23}; }

 signals:
  void hovered(const QString& value);
  void left();

 protected:
  void paintEvent(QPaintEvent*) override;
  void enterEvent(QEnterEvent*) override;
  void leaveEvent(QEvent*) override;
  void focusInEvent(QFocusEvent*) override;
  void focusOutEvent(QFocusEvent*) override;
  void nextCheckState() override;

 private:
  QString value_, explain_;
  int wanted_width_, least_width_;  // measured once: layouts ask for them all the time
  bool blocked_ = false, other_ = false, first_ = false, last_ = false;
};

class SegmentedRow : public QWidget {
  Q_OBJECT
 public:
  struct Value {
    QString name, label, explain;
  };
  SegmentedRow(const QString& name, const std::vector<Value>& values, QWidget* parent = nullptr);
  QString value() const;
  void setValue(const QString& value);
  void setBlocked(const QString& value, const QString& reason);  // empty reason: allowed
  void setOther(const QString& value);                           // of another run; the chosen one needs no mark
  const std::vector<Segment*>& segments() const { return segments_; }

 signals:
  void picked(const QString& value);
  void hovered(const QString& value);  // empty: no longer hovered

 protected:
  void paintEvent(QPaintEvent*) override;
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  QString name_;
  QButtonGroup* group_;
  std::vector<Segment*> segments_;
};

}  // namespace ws::app
