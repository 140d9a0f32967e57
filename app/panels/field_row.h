// One choice: its label, its editor, one sentence for the chosen value, and why others are blocked.
#pragma once
#include <QWidget>

#include "engine/run_spec.h"

class QCheckBox;
class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;

namespace ws::app {

class SegmentedRow;

QString value_label(std::string_view value);  // "stream-ordered" → "stream"

class FieldRow : public QWidget {
  Q_OBJECT
 public:
  FieldRow(const Field& field, QWidget* parent = nullptr);
  const Field& field() const { return field_; }
  bool half() const { return half_; }  // two of them share a line
  void setLabelWidth(int width);
  // Shows the value of `spec`; `preset` is what it is compared with, `cuda` whether a GPU can be used.
  void refresh(const RunSpec& spec, const RunSpec& preset, bool cuda, bool locked);

 signals:
  void edited(const QString& key, const QString& value);
  void browse(const QString& key);

 private:
  void build();
  QWidget* buildChoice();
  QWidget* buildText();
  QWidget* buildLayers();
  void commitText();
  void refreshValue(const QString& value);
  void refreshBlocked(const RunSpec& spec, bool cuda);
  void explain(const QString& value);

  const Field& field_;
  bool half_ = false;
  QString value_;
  QGridLayout* grid_ = nullptr;
  QLabel* label_ = nullptr;
  QLabel* explain_ = nullptr;
  QLabel* blocked_ = nullptr;
  SegmentedRow* segments_ = nullptr;
  QComboBox* combo_ = nullptr;
  QCheckBox* check_ = nullptr;
  QLineEdit* edit_ = nullptr;
};

}  // namespace ws::app
