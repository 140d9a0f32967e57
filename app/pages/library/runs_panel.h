// The Runs dock: every kept run; ticked ones lie over each other in every pane.
#pragma once
#include <QAbstractListModel>
#include <QPointer>
#include <QStyledItemDelegate>
#include <QWidget>
#include <vector>

#include "app/workspace/run.h"

class QLabel;
class QLineEdit;
class QListView;
class QMenu;
class QPushButton;
class QStackedWidget;

namespace ws::app {

class RunLibrary;

enum class RunOrder { Newest, Fastest, Name };

// Runs with a heading before each day.
class RunsModel : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role { RunRole = Qt::UserRole, HeadingRole };
  explicit RunsModel(RunLibrary* library, QObject* parent = nullptr);
  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  Run* run(const QModelIndex& index) const;
  QModelIndex indexOf(const Run* run) const;
  void setFilter(const QString& filter);
  void setOrder(RunOrder order);
  void reload();
  void repaintLive();

 private:
  struct Row {
    QPointer<Run> run;
    QString heading;
  };
  RunLibrary* library_;
  QString filter_;
  RunOrder order_ = RunOrder::Newest;
  std::vector<Row> rows_;
};

class RunsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit RunsPanel(RunLibrary* library, QWidget* parent = nullptr);
  QListView* view() const { return view_; }
  RunsModel* model() const { return model_; }
  Run* current() const;

 signals:
  void openFile();
  void picked(ws::app::Run* run);
  void useChoices(ws::app::Run* run);
  void trainWanted(const ws::RunSpec& spec, const QString& title);
  void torchWanted(const ws::RunSpec& spec);

 private:
  QWidget* buildHeader();
  QWidget* buildFilter();
  QWidget* buildEmpty();
  QWidget* buildUndo();
  void fillMenu(QMenu& menu, Run* run);
  void showMenu(const QPoint& at);
  void refresh();

  RunLibrary* library_;
  RunsModel* model_;
  QListView* view_;
  QLabel* count_;
  QWidget* filter_;
  QStackedWidget* pages_;
  QWidget *footer_, *undo_;
  QLabel* removed_;
};

}  // namespace ws::app
