// The Setup dock: every choice of a run, in groups. Explanations appear on hover or with the "?" of a section.
#pragma once
#include <QWidget>
#include <map>
#include <optional>
#include <vector>

#include "engine/plan/run_spec.h"

class QGridLayout;
class QLabel;
class QMenu;
class QPushButton;
class QScrollArea;

namespace ws::app {

class Choices;
class FieldRow;
class LayerTable;
class Section;

class SetupPanel : public QWidget {
  Q_OBJECT
 public:
  explicit SetupPanel(Choices* choices, QWidget* parent = nullptr);

  QSize minimumSizeHint() const override;  // wide enough for every row, shown or not: the dock keeps its width
  // While a run trains, choices that cannot change apply to the next run. Other choices wait for Apply.
  void setLive(std::optional<RunSpec> running);
  void setOther(std::optional<RunSpec> other, const QString& letter);  // the run whose choices Setup compares with its own
  void setCompact(bool compact);                              // folds Training and Data
  void editJson();
  FieldRow* row(std::string_view key) const;
  QString message() const;

 signals:
  void anewWanted();  // stop the run and start one with the current choices
  void apply(const QString& key, const QString& value);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void build();
  QWidget* buildHeader();
  QWidget* buildDifference();
  QWidget* buildFooter();
  void buildSection(const QString& group);
  void addRow(const Field& field, Section* section);
  QLabel* addNote(Section* section);
  FieldRow* rowOf(const QString& sentence) const;
  void showHint(const QString& group);
  void fillPresets();
  void applyPending();
  void refresh();
  void refreshRows();
  void relayout(const QString& group);
  void refreshNotes();
  void refreshDifference();
  std::vector<FieldChange> differences() const;  // from the shown run, in choices that these choices use
  void fillDifferences();
  void showRow(const std::string& key);
  QString noted(const QString& group, const QString& note) const;
  QString executionNote() const;
  void refreshFooter();
  void refreshVerdict();
  void say(const QString& message, bool problem);
  std::vector<FieldChange> pending() const;
  std::optional<FieldChange> fixedChange() const;

  Choices* choices_;
  std::optional<RunSpec> running_, other_;
  QString other_letter_;
  std::map<QString, Section*> sections_;
  std::map<QString, QGridLayout*> grids_;
  std::map<QString, QPushButton*> more_;
  std::map<QString, bool> show_more_, explained_;
  std::map<QString, QLabel*> hints_;  // explain the number field that was focused last
  std::map<QString, QString> hint_keys_;
  std::vector<FieldRow*> rows_;
  QLabel* title_ = nullptr;
  QWidget* difference_ = nullptr;  // shows in what the shown run differs, and offers its choices
  QLabel* differs_ = nullptr;
  bool stops_ = false;  // "New run" was clicked once: the next click stops the run in training
  QPushButton *take_ = nullptr, *list_ = nullptr;  // list_: the choices that differ
  QMenu* differences_menu_ = nullptr;
  QScrollArea* scroll_ = nullptr;
  LayerTable* layers_ = nullptr;
  QLabel* chain_ = nullptr;
  QLabel* budget_ = nullptr;  // where a persistent kernel would keep the network
  QLabel* estimate_ = nullptr;
  QLabel* footer_ = nullptr;
  QPushButton* apply_ = nullptr;
  QPushButton* preset_button_ = nullptr;
};

}  // namespace ws::app
