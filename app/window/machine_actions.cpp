#include "app/window/machine_actions.h"

#include "app/window/connect_dialog.h"
#include "app/window/notice_bar.h"
#include "app/window/remote_runs_dialog.h"

namespace ws::app {

MachineActions::MachineActions(QWidget* window, Workspace& workspace, NoticeBar* notice)
    : QObject(window), window_(window), workspace_(workspace), notice_(notice) {
  connect(workspace.session(), &TrainingSession::arrived, this, &MachineActions::arrived);
}

void MachineActions::askForMachine() {
  ConnectDialog dialog(machine_ ? machine_->address() : QString(), window_);
  if (dialog.exec() == QDialog::Accepted) connectTo(dialog.address());
}

RemoteRunsDialog* MachineActions::showRunsThere() {
  if (!machine_) return workspace_.say(tr("Connect to a machine first (File › Connect…)."), true), nullptr;
  auto* dialog = new RemoteRunsDialog(machine_, workspace_.library()->folder(), window_);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &RemoteRunsDialog::copied, &workspace_, &Workspace::open);
  dialog->open();
  return dialog;
}

void MachineActions::connectTo(const QString& address) {
  if (workspace_.session()->remote()) return workspace_.say(tr("Stop the training there first (Run › Stop), or quit and leave it running."), true);
  machine_.reset();
  workspace_.session()->setMachine(nullptr);
  workspace_.choices()->setCuda(workspace_.device()->info() && workspace_.device()->info()->cuda);
  emit changed();
  if (address.isEmpty()) return;
  try {
    machine_ = std::make_shared<RemoteMachine>(address);
  } catch (const std::exception& problem) {
    return workspace_.say(QString::fromUtf8(problem.what()), true);
  }
  connect(machine_.get(), &RemoteMachine::changed, this, &MachineActions::changed);
  connect(machine_.get(), &RemoteMachine::ready, this, &MachineActions::ready);
  connect(machine_.get(), &RemoteMachine::refused, this, &MachineActions::refused, Qt::QueuedConnection);
  emit changed();
}

// From here on runs start there. One that runs there already is shown at once.
void MachineActions::ready() {
  ConnectDialog::remember(machine_->address());
  workspace_.session()->setMachine(machine_);
  workspace_.choices()->setCuda(true);  // what it cannot run, it says itself
  const auto& running = machine_->running();
  workspace_.say(running.empty() ? tr("Runs start on %1 now.").arg(machine_->place())
                                 : tr("%1 trains %n run(s).", nullptr, static_cast<int>(running.size())).arg(machine_->place()),
                 false);
  if (!running.empty() && !workspace_.session()->busy()) workspace_.session()->attach(running.back());
}

void MachineActions::refused(const QString& sentence) {
  machine_.reset();
  workspace_.session()->setMachine(nullptr);
  emit changed();
  notice_->tell(sentence);
}

// The file knows more than what came live.
void MachineActions::arrived(Run* run, const QString& path) {
  const bool shown = run && run->slot >= 0;
  if (run) workspace_.library()->remove(run);
  Run* kept = workspace_.library()->open(path);
  if (!kept || !shown) return;
  workspace_.library()->setTicked(kept, true);
  workspace_.pick(kept);
}

}  // namespace ws::app
