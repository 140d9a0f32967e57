// The frame of a chart: a title line with the values of the ticked runs, and a body.
#pragma once
#include <QWidget>
#include <vector>

class QHBoxLayout;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace ws::app {

struct LegendItem {
  int slot;
  QString value;
};

// Badges with the value at the cursor. With more than three runs, only the badges.
class Legend : public QWidget {
  Q_OBJECT
 public:
  explicit Legend(QWidget* parent = nullptr);
  void setItems(std::vector<LegendItem> items);
  const std::vector<LegendItem>& items() const { return items_; }
  bool showsValues() const;
  void setQuiet(bool quiet);  // the values stand elsewhere, with their badges
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {0, 20}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  double badgePitch() const;
  bool badgesOnly() const { return items_.size() > 3; }
  std::vector<LegendItem> items_;
  bool quiet_ = false;
};

class NoteLabel;

class Pane : public QWidget {
  Q_OBJECT
 public:
  explicit Pane(const QString& title, QWidget* parent = nullptr);
  // `brief` is shown if the whole note does not fit.
  void setTitle(const QString& title, const QString& note, const QString& brief = {});
  bool noteFits() const;
  void setTitleButton(QPushButton* button);  // replaces the title
  QString title() const;
  Legend* legend() const { return legend_; }
  void addOption(QWidget* option);  // to the right of the title
  void setBody(QWidget* body);

 signals:
  void noteResized();  // noteFits() may have another answer

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  QWidget* bar_;
  QHBoxLayout* row_;
  QVBoxLayout* column_;
  QLabel* title_;
  NoteLabel* note_;
  Legend* legend_;
};

// A small button that shows the current one of several values and opens a menu of them.
QPushButton* option_button(const QString& name, QWidget* parent);

}  // namespace ws::app
