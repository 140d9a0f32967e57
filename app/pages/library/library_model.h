// The run library as a table, and the filter over it.
#pragma once
#include <QAbstractTableModel>
#include <QHash>
#include <QPointer>
#include <QSortFilterProxyModel>
#include <vector>

#include "app/workspace/run.h"

namespace ws::app {

class RunLibrary;

QString status_text(const Run& run);   // "training", "finished", "unfinished", "imported", …
QString changes_text(const Run& run);  // what differs from its preset: "caching, unfused"

class LibraryModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column {
    Tick,
    Name,
    Preset,
    Changes,
    Status,
    TestLoss,
    TrainingLoss,
    Accuracy,
    StepTime,
    Peak,
    Calls,
    Tags,
    Device,
    Date,
    kColumns
  };
  enum Role { SortRole = Qt::UserRole + 31, SlotRole, LetterRole };
  explicit LibraryModel(RunLibrary* library, QObject* parent = nullptr);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : kColumns; }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Run* run(int row) const;

 private:
  void reload();
  QString text(const Run& run, int column) const;
  QVariant number(const Run& run, int column) const;
  const QString& changes(const Run& run) const;

  RunLibrary* library_;
  std::vector<QPointer<Run>> rows_;
  mutable QHash<const Run*, QString> changes_;
};

// All words must occur somewhere. tag:x, status:x, device:x and preset:x search one column.
class LibraryFilter : public QSortFilterProxyModel {
  Q_OBJECT
 public:
  explicit LibraryFilter(LibraryModel* model, QObject* parent = nullptr);
  void setText(const QString& text);
  void setStatus(const QString& status);
  void setTag(const QString& tag);
  Run* run(const QModelIndex& index) const;

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& a, const QModelIndex& b) const override;

 private:
  bool holds(const Run& run, const QString& word) const;
  LibraryModel* model_;
  QStringList words_;
  QString status_, tag_;
};

}  // namespace ws::app
