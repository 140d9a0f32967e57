#include "app/window/machine_actions.h"

#include <QTimer>
#include <utility>

#include "app/core/remote/server_copy.h"
#include "app/window/connect_dialog.h"
#include "app/window/notice_bar.h"
#include "app/window/program_actions.h"
#include "app/window/remote_runs_dialog.h"
#include "profiling/base/paths.h"

namespace ws::app {

MachineActions::MachineActions(QWidget* window, Workspace& workspace, NoticeBar* notice)
    : QObject(window), window_(window), workspace_(workspace), notice_(notice) {
  connect(workspace.session(), &TrainingSession::arrived, this, &MachineActions::arrived);
}

void MachineActions::askForMachine(std::function<void()> then) {
  ConnectDialog dialog(machine_ ? machine_->address() : QString(), window_);
  if (dialog.exec() != QDialog::Accepted) return;
  then_ = std::move(then);
  connectTo(dialog.address());
  if (dialog.address().isEmpty()) goOn();
}

void MachineActions::goOn() {
  if (auto then = std::exchange(then_, {})) QTimer::singleShot(0, this, then);
}

RemoteRunsDialog* MachineActions::showRunsThere() {
  if (!machine_) {
    workspace_.say(tr("Connect to a machine first (File › Connect…)."), true);
    return nullptr;
  }
  auto* dialog = new RemoteRunsDialog(machine_, workspace_.library()->folder(), window_);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &RemoteRunsDialog::copied, &workspace_, &Workspace::open);
  connect(dialog, &RemoteRunsDialog::watchWanted, this, &MachineActions::watch);
  dialog->open();
  return dialog;
}

void MachineActions::connectTo(const QString& address) {
  workspace_.session()->putBeside();  // a training there continues and stays visible
  if (machine_) disconnect(machine_.get(), nullptr, this, nullptr);
  use(nullptr);
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
  connect(machine_.get(), &RemoteMachine::said, &workspace_, &Workspace::said);
  emit changed();
}

// New runs and recordings start there; null: here.
void MachineActions::use(const std::shared_ptr<RemoteMachine>& machine) {
  workspace_.session()->setMachine(machine);
  workspace_.recording()->setMachine(machine);
  workspace_.choices()->setFilesHere(!machine);
  if (!machine) machine_.reset();
}

// From now on runs start there. A run that already runs there is shown at once.
void MachineActions::ready() {
  ConnectDialog::remember(machine_->address());
  use(machine_);
  workspace_.choices()->setCuda(true);  // that machine reports itself what it cannot run
  const auto& running = machine_->running();
  const QString place = machine_->place();
  const QString state = running.empty()       ? tr("New runs start on %1.").arg(place)
                        : running.size() == 1 ? tr("1 job runs on %1.").arg(place)
                                              : tr("%2 jobs run on %1.").arg(place, QString::number(running.size()));
  workspace_.say(state, false);
  workspace_.session()->bringForward(machine_->address());
  for (auto job = running.rbegin(); job != running.rend(); ++job) watch(*job);
  goOn();
}

// Shows a job there as if it had been started here.
void MachineActions::watch(const RemoteJobInfo& job) {
  TrainingSession* session = workspace_.session();
  if (!session->machine())
    return workspace_.say(tr("The connection to the machine is lost. Connect again (File › Connect…)."), true);
  if (session->busy() || workspace_.recording()->busy() || !session->held().isEmpty()) return;
  if (job.kind == "train") session->attach(job);
  if (job.kind != "train" && job.kind != "record") return workspace_.follow(job);
  if (job.kind != "record") return;
  if (Run* run = workspace_.recording()->attach(job)) show_recording(workspace_, run);
}

void MachineActions::refused(const QString& sentence) {
  const bool copy_helps = machine_->link().status().copy_helps;
  const QString address = machine_->address();
  use(nullptr);
  emit changed();
  std::vector<NoticeAction> actions;
  if (copy_helps) actions.push_back({tr("Copy Warpsight there…"), [this, address] { askToCopy(address); }});
  notice_->showText(sentence, std::move(actions));
}

// Looks at the machine first, so that the question can say how much is copied where.
void MachineActions::askToCopy(const QString& address) {
  workspace_.say(tr("Checking the machine…"), false);
  auto copy = std::make_shared<std::unique_ptr<ServerCopy>>();
  copying_.start(
      [copy, address](const Job::Side&) {
        *copy = std::make_unique<ServerCopy>(parse_remote(address.toStdString()),
                                             (program_file().parent_path() / "warpsight").string());
      },
      [this, copy, address](const QString& problem) {
        if (!problem.isEmpty()) return notice_->showText(problem);
        notice_->showText(QString::fromStdString((*copy)->question()),
                      {{tr("Copy"), [this, copy, address] { copyAndConnect(*copy->get(), address); }}});
      });
}

void MachineActions::copyAndConnect(const ServerCopy& copy, const QString& address) {
  notice_->dismiss();
  workspace_.say(tr("Copying Warpsight there…"), false);
  copying_.start([copy](const Job::Side&) { copy.copy(); },
                 [this, address](const QString& problem) {
                   if (!problem.isEmpty()) return notice_->showText(problem);
                   workspace_.say(tr("Copied."), false);
                   connectTo(address);
                 });
}

// The file has more data than what arrived live.
void MachineActions::arrived(Run* run, const QString& path) {
  run ? workspace_.library()->replace(run, path) : workspace_.library()->open(path);
}

}  // namespace ws::app
