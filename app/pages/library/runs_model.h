// The kept runs as a list, with a heading before each data set or each day.
#pragma once
#include <QAbstractListModel>
#include <QPointer>
#include <vector>

#include "app/workspace/run.h"

namespace ws::app {

class RunLibrary;

enum class ShownAs { Nothing, Current, Baseline, Compared };
enum class RunOrder { DataSet, Newest, Fastest, Accuracy, Name };

class RunsModel : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role { RunRole = Qt::UserRole, HeadingRole, RoleRole, ShortNameRole };  // ShortNameRole: without what the heading says
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
  void sort(std::vector<Run*>& runs) const;
  QString headingOf(const Run& run) const;
  QString shortNameOf(const Run& run) const;
  QString nameOf(const Run& run) const;
  ShownAs shownAs(const Run& run) const;

  RunLibrary* library_;
  QString filter_;
  RunOrder order_ = RunOrder::DataSet;
  std::vector<Row> rows_;
};

}  // namespace ws::app
