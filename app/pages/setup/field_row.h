// One choice: its label and its editor. On request it explains the chosen value and why others are blocked.
#pragma once
#include <QWidget>

#include "engine/plan/run_spec.h"

class QCheckBox;
class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QToolButton;

namespace ws::app {

class LayerEditor;
class SegmentedRow;

QString value_label(std::string_view value);  // "stream-ordered" → "stream"
// Formats an explanation: what a choice does, and in stronger ink what to look at.
QString explained(std::string_view sentence);

class FieldRow : public QWidget {
  Q_OBJECT
 public:
  FieldRow(const Field& field, QWidget* parent = nullptr);
  const Field& field() const { return field_; }
  bool number() const { return number_; }
  bool half() const;  // True for a number that is short enough to share its line with another
  void setLabelWidth(int width);
  int leastWidth() const;  // also correct before it was first shown, when layouts count nothing
  void setExplained(bool on);                // shows the explanations under the control
  // Marks the control and its label; the sentence stands in the tip and in the footer of Setup. Empty for none.
  void setProblem(const QString& sentence);
  QString problem() const { return problem_; }
  void setOffered(const QStringList& values);  // of a text field: the menu beside it
  struct Other {
    const RunSpec& spec;
    QString name;  // "Run A"
  };
  // Shows the value of `spec`, and marks it if `other` has another one. `cuda`: True if a GPU can be used.
  void refresh(const RunSpec& spec, const Other& other, bool cuda, bool locked);

 signals:
  void edited(const QString& key, const QString& value);
  void browse(const QString& key);
  void focused(const QString& key);  // a number field: its explanation is elsewhere

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  void build();
  QWidget* buildChoice();
  QWidget* buildText();
  QWidget* withLayers();
  QWidget* withOffered();
  void addNotes();
  QString explanation() const;
  QString tip(const QString& difference, bool locked) const;
  void commitText();
  void refreshValue(const QString& value);
  void refreshBlocked(const RunSpec& spec, bool cuda);
  void explain(const QString& value);

  const Field& field_;
  bool number_ = false;
  QString value_;
  QGridLayout* grid_ = nullptr;
  QLabel* label_ = nullptr;
  QLabel* explain_ = nullptr;
  QLabel* blocked_ = nullptr;
  QString problem_;
  bool explained_ = false;
  SegmentedRow* segments_ = nullptr;
  QComboBox* combo_ = nullptr;
  QCheckBox* check_ = nullptr;
  QLineEdit* edit_ = nullptr;
  LayerEditor* layers_ = nullptr;
  QToolButton *each_layer_ = nullptr, *offered_ = nullptr;
};

}  // namespace ws::app
