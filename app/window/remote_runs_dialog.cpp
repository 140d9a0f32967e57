#include "app/window/remote_runs_dialog.h"

#include <QDialogButtonBox>
#include <QDir>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/core/remote/fetch_file.h"
#include "app/core/remote/job_folder.h"
#include "app/core/remote/remote_run.h"
#include "app/text/units.h"
#include "app/widgets/primary_button.h"
#include "app/widgets/theme.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/safe_text.h"

namespace ws::app {
namespace {

constexpr int kFile = Qt::UserRole, kJob = Qt::UserRole + 1;

QString text_of(const RemoteJobInfo& job) {
  const QString title = QString::fromStdString(printable((job.title.isEmpty() ? job.name : job.title).toStdString()));
  if (job.kind == "record") return QObject::tr("▶ %1 · is recorded now").arg(title);
  if (job.kind == "experiment") return QObject::tr("▶ %1 · experiment runs now").arg(title);
  if (job.kind == "lab") return QObject::tr("▶ %1 · sweep runs now").arg(title);
  if (job.kind == "torch") return QObject::tr("▶ %1 · PyTorch trains now").arg(title);
  return QObject::tr("▶ %1 · trains now").arg(title);
}

QString text_of(const JsonInput& row) {
  QString text = QString::fromStdString(printable(row.at("name").text(row.at("file").text())));
  if (row.at("problem").there()) return text + " · " + QString::fromStdString(printable(row.at("problem").text()));
  text += " · " + QString::fromStdString(printable(row.at("status").text())) + " · " +
          count_text(static_cast<int64_t>(row.at("steps").number(0))) + QObject::tr(" steps");
  if (const std::string device = row.at("device").text(); !device.empty()) text += " · " + QString::fromStdString(printable(device));
  return text + " · " + bytes_text(row.at("bytes").number(0)) + " · " + QString::fromStdString(printable(row.at("created").text()));
}

}  // namespace

RemoteRunsDialog::RemoteRunsDialog(std::shared_ptr<RemoteMachine> machine, const QString& folder, QWidget* parent)
    : QDialog(parent), machine_(std::move(machine)), folder_(folder), list_(new QListWidget(this)), verdict_(new QLabel(this)) {
  setWindowTitle(tr("Runs on %1").arg(machine_->place()));
  resize(760, 420);
  auto* column = new QVBoxLayout(this);
  list_->setAccessibleName(tr("Runs there"));
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);  // long names are elided in the middle
  list_->setTextElideMode(Qt::ElideMiddle);
  list_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  column->addWidget(list_, 1);
  verdict_->setWordWrap(true);
  verdict_->setFont(ui_font(12));
  column->addWidget(verdict_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  open_ = buttons->addButton(tr("Copy here and open"), QDialogButtonBox::ActionRole);
  make_primary(*open_);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(open_, &QPushButton::clicked, this, &RemoteRunsDialog::copyChosen);
  connect(list_, &QListWidget::itemSelectionChanged, this, &RemoteRunsDialog::check);
  connect(list_, &QListWidget::itemDoubleClicked, this, &RemoteRunsDialog::copyChosen);
  ask();
}

RemoteRunsDialog::~RemoteRunsDialog() = default;

void RemoteRunsDialog::ask() {
  verdict_->setText(tr("Looking…"));
  auto answer = std::make_shared<nlohmann::json>();
  auto running = std::make_shared<std::vector<RemoteJobInfo>>();
  job_.start(
      [machine = machine_, answer, running](const Job::Side&) {
        *running = jobs_there(machine->link());
        *answer = machine->link().ask({{"do", "list"}}, 600);
      },
      [this, answer, running](const QString& problem) {
        verdict_->setText(problem);
        running_ = std::move(*running);
        if (problem.isEmpty()) fill(*answer);
        check();
      });
  check();
}

// Lists the newest runs first.
void RemoteRunsDialog::fill(const nlohmann::json& rows) {
  try {
    const JsonInput in(rows, "");
    for (const JsonInput& row : in.at("runs").items()) {
      const std::string file = row.at("file").text();
      if (!is_plain_name(file) || row.at("job").flag(false)) continue;
      auto* item = new QListWidgetItem(text_of(row));
      item->setData(kFile, QString::fromStdString(file));
      list_->insertItem(0, item);
    }
    fillRunning();
    if (list_->count() == 0) verdict_->setText(tr("There are no runs on %1 yet.").arg(machine_->place()));
  } catch (const std::exception& problem) {
    verdict_->setText(QString::fromUtf8(problem.what()));
  }
}

void RemoteRunsDialog::fillRunning() {
  for (size_t i = 0; i < running_.size(); ++i) {
    auto* item = new QListWidgetItem(text_of(running_[i]));
    item->setData(kJob, static_cast<int>(i) + 1);
    list_->insertItem(0, item);
  }
}

const RemoteJobInfo* RemoteRunsDialog::chosenJob() const {
  const QList<QListWidgetItem*> chosen = list_->selectedItems();
  const int number = chosen.size() == 1 ? chosen.front()->data(kJob).toInt() : 0;
  return number > 0 ? &running_[static_cast<size_t>(number) - 1] : nullptr;
}

void RemoteRunsDialog::check() {
  const RemoteJobInfo* job = chosenJob();
  open_->setText(job ? tr("Watch it") : tr("Copy here and open"));
  open_->setEnabled(!job_.running() && !list_->selectedItems().isEmpty());
}

void RemoteRunsDialog::copyChosen() {
  if (const RemoteJobInfo* job = chosenJob()) {
    emit watchWanted(*job);
    return accept();
  }
  for (const QListWidgetItem* item : list_->selectedItems()) {
    const QString file = item->data(kFile).toString();
    if (file.isEmpty()) continue;
    // Do not trust the remote name: the local name is made from it.
    const QString path = QDir(folder_).filePath(QString::fromStdString(file_name_of(file.toStdString())));
    if (QFile::exists(path)) {  // it was copied before
      emit copied(path);
      continue;
    }
    verdict_->setText(tr("Copying…"));
    job_.start(
        [machine = machine_, file, path](const Job::Side& side) {
          fetch_file(machine->link(), {{"file", file.toStdString()}}, path.toStdString(),
                     [&side](uint64_t) { return !side.cancelled()->load(); });
        },
        [this, path](const QString& problem) {
          verdict_->setText(problem);
          if (problem.isEmpty()) emit copied(path);
          check();
        });
  }
  check();
}

}  // namespace ws::app
