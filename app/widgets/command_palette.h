// Finds every command by name: type some letters, Enter runs it.
#pragma once
#include <QAbstractListModel>
#include <QAction>
#include <QDialog>
#include <QPointer>
#include <vector>

class QLineEdit;
class QListView;
class QMenuBar;

namespace ws::app {

// Score of `typed` in `text`: letters in order, better at the start of words. 0: no match.
int match_score(const QString& text, const QString& typed);

class CommandModel : public QAbstractListModel {
  Q_OBJECT
 public:
  using QAbstractListModel::QAbstractListModel;
  void setCommands(std::vector<QAction*> commands, const std::vector<QString>& paths);
  void filter(const QString& typed);
  QAction* at(int row) const;
  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;

 private:
  struct Command {
    QPointer<QAction> action;
    QString path;
  };
  std::vector<Command> all_;
  std::vector<size_t> shown_;
};

class CommandPalette : public QDialog {
  Q_OBJECT
 public:
  CommandPalette(QMenuBar* menus, QWidget* parent);
  CommandModel* model() { return &model_; }
  QLineEdit* line() const { return line_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void run();
  CommandModel model_;
  QLineEdit* line_;
  QListView* list_;
};

}  // namespace ws::app
