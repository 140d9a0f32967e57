// Lists the jobs and the kept runs of another machine. Jobs can be watched. Kept runs are
// copied completely and opened here.
#pragma once
#include <QDialog>
#include <memory>

#include "app/workspace/job.h"
#include "app/workspace/remote_machine.h"

class QLabel;
class QListWidget;
class QPushButton;

namespace ws::app {

class RemoteRunsDialog : public QDialog {
  Q_OBJECT
 public:
  // Copies go to `folder`.
  RemoteRunsDialog(std::shared_ptr<RemoteMachine> machine, const QString& folder, QWidget* parent = nullptr);
  ~RemoteRunsDialog() override;
  void copyChosen();
  QListWidget* list() const { return list_; }

 signals:
  void copied(const QString& path);
  void watchWanted(const ws::app::RemoteJobInfo& job);

 private:
  void ask();
  void fill(const nlohmann::json& rows);
  void fillRunning();
  const RemoteJobInfo* chosenJob() const;  // a running job
  void check();

  std::shared_ptr<RemoteMachine> machine_;
  QString folder_;
  QListWidget* list_;
  QLabel* verdict_;
  QPushButton* open_;
  std::vector<RemoteJobInfo> running_;
  Job job_;
};

}  // namespace ws::app
