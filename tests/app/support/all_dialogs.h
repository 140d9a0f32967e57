// Every dialog of the program, filled where it can be.
#pragma once
#include <QFileDialog>
#include <QLineEdit>
#include <memory>
#include <vector>

#include "app/pages/experiments/experiment_dialog.h"
#include "app/pages/setup/spec_json_dialog.h"
#include "app/widgets/command_palette.h"
#include "app/window/connect_dialog.h"
#include "app/window/finishing_box.h"
#include "app/window/key_list.h"
#include "app/window/main_window.h"
#include "app/window/password_dialog.h"
#include "app/window/record_dialog.h"
#include "app/window/remote_runs_dialog.h"

namespace ws::test {

inline std::vector<std::unique_ptr<QDialog>> all_dialogs(app::MainWindow& window) {
  using namespace app;
  Workspace& workspace = *window.workspace();
  auto record = std::make_unique<RecordDialog>(QString(), &window), refused = std::make_unique<RecordDialog>(QString(), &window);
  const auto fill = [](const RecordDialog& dialog, const QString& windows) {
    for (QLineEdit* edit : dialog.findChildren<QLineEdit*>())
      if (edit->accessibleName() != "Folder") edit->setText(edit->accessibleName() == "Program" ? "python3 train.py --epochs 1" : windows);
  };
  fill(*record, "200ms/5s"), fill(*refused, "5s/200ms");
  refused->setObjectName("refused");
  const auto unreachable = std::make_shared<RemoteMachine>("ssh://127.0.0.1:1");  // no server listens there
  std::vector<std::unique_ptr<QDialog>> all;
  all.push_back(std::make_unique<KeyList>(window.menuBar(), &window));
  all.push_back(std::make_unique<CommandPalette>(window.menuBar(), &window));
  all.push_back(std::make_unique<SpecJsonDialog>(workspace.choices()->spec(), &window));
  const Waiting nothing{"Finishing", [](qint64) { return QString("The CPU finishes its current step."); }, [] { return true; }};
  all.push_back(std::make_unique<FinishingBox>(workspace.session()->run() ? waiting_for(*workspace.session()) : nothing, &window));
  all.push_back(std::move(record));
  all.push_back(std::move(refused));
  all.push_back(std::make_unique<ConnectDialog>("ssh://me@a-machine-with-a-long-name.example", &window));
  all.push_back(std::make_unique<ExperimentDialog>(workspace.choices()->spec(), &window));
  all.push_back(std::make_unique<PasswordDialog>("me@gpu7's password: ", &window));
  all.push_back(std::make_unique<RemoteRunsDialog>(unreachable, workspace.library()->folder(), &window));
  for (const auto& dialog : all) dialog->setModal(false);
  return all;
}

// The dialog that Qt draws where the desktop has none of its own.
inline std::unique_ptr<QFileDialog> file_dialog(QWidget* parent) {
  auto dialog = std::make_unique<QFileDialog>(parent, "Open", QString(), "Runs (*.wsrun);;All files (*)");
  dialog->setOption(QFileDialog::DontUseNativeDialog);
  return dialog;
}

}  // namespace ws::test
