#include "app/window/record_dialog.h"

#include <QCheckBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QSettings>
#include <QVBoxLayout>
#include <utility>

#include "app/pages/setup/program_panel.h"
#include "app/widgets/labels.h"
#include "app/widgets/primary_button.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/theme.h"
#include "profiling/base/failure.h"

namespace ws::app {
namespace {

QString sentence_of(const char* words) {
  const QString said = QString::fromUtf8(words);
  return said.left(1).toUpper() + said.mid(1) + (said.endsWith('.') ? "" : ".");
}

}  // namespace

RecordDialog::RecordDialog(const QString& machine, QWidget* parent)
    : QDialog(parent),
      machine_(machine),
      command_(new QLineEdit(this)),
      folder_(new QLineEdit(this)),
      window_(new QLineEdit(this)),
      captures_(new QCheckBox(tr("Record only what the program asks for"), this)),
      counters_(new QCheckBox(tr("Hardware counters"), this)),
      xray_(new QCheckBox(tr("Where kernels wait, 200 ms each 30 s (X-ray)"), this)),
      form_(new QFormLayout),
      verdict_(new QLabel(this)) {
  setWindowTitle(machine.isEmpty() ? tr("Record a program") : tr("Record a program on %1").arg(machine));
  setMinimumWidth(740);
  form_->setLabelAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  form_->setHorizontalSpacing(16);
  form_->setVerticalSpacing(4);
  buildProgram();
  buildMachine();
  buildFolder();
  buildLevels();
  buildPython();
  buildParts();
  auto* column = new QVBoxLayout(this);
  column->setSpacing(10);
  column->addLayout(form_);
  column->addStretch(1);
  buildEnd(*column);
  recall();
  for (const QLineEdit* line : {command_, window_, folder_}) connect(line, &QLineEdit::textChanged, this, &RecordDialog::check);
  connect(level_, &SegmentedRow::picked, this, &RecordDialog::followTraceLevel);
  connect(python_, &SegmentedRow::picked, this, &RecordDialog::check);
  for (const QCheckBox* box : {captures_, counters_, xray_}) connect(box, &QCheckBox::toggled, this, &RecordDialog::check);
  check();
}

void RecordDialog::buildProgram() {
  command_->setFont(mono_font(12));
  command_->setAccessibleName(tr("Program"));
  command_->setPlaceholderText(tr("python3 train.py --epochs 1; or torchrun --nproc_per_node 8 train.py"));
  form_->addRow(tr("Program"), command_);
  form_->addRow(QString(), hint(tr("A program that uses CUDA or Python, with its arguments: words and quotes as in a shell. "
                                   "A program on several GPUs begins with torchrun, mpirun or srun; all its ranks become one run.")));
}

// Which parts of the program's time are recorded, with counters and samples.
void RecordDialog::buildParts() {
  window_->setAccessibleName(tr("Trace windows"));
  window_->setPlaceholderText(tr("all the time; or some of it, such as 200ms/5s"));
  form_->addRow(tr("Trace windows"), window_);
  form_->addRow(QString(), hint(tr("200ms/5s traces 200 ms of every 5 s, from the first work on the GPU on. Between the windows only allocator calls and "
                                   "NVTX ranges are recorded: the file of a long run stays small, and the program is slowed as much.")));
  form_->addRow(tr("Capture ranges"), captures_);
  form_->addRow(QString(), hint(tr("Between cudaProfilerStart and cudaProfilerStop, torch.cuda.profiler.start and stop, or inside of "
                                   "with warpsight.capture(), as often as the program does so.")));
  auto* samples = new QHBoxLayout;
  for (QCheckBox* box : {counters_, xray_}) samples->addWidget(box);
  samples->addStretch(1);
  form_->addRow(tr("Samples"), samples);
  form_->addRow(QString(), hint(tr("Counters: busy multiprocessors, tensor pipe and DRAM over time. Where kernels wait: the line, and for what, on the "
                                   "page Kernel times; kernel records pause meanwhile. If the driver refuses, the status line says so.")));
}

void RecordDialog::buildEnd(QVBoxLayout& column) {
  verdict_->setWordWrap(true);
  verdict_->setFont(ui_font(12.5));
  QPalette ink = verdict_->palette();
  ink.setColor(QPalette::WindowText, theme().worse);
  verdict_->setPalette(ink);
  column.addWidget(verdict_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  record_ = buttons->addButton(tr("Record"), QDialogButtonBox::AcceptRole);
  make_primary(*record_);
  column.addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
}

QLabel* RecordDialog::hint(const QString& sentence) {
  auto* hint = label(this, ui_font(11), {.quiet = true}, sentence);
  hint->setMargin(4);
  return hint;
}

// The program runs on one machine. The dialog of the menu changes it, and then this one comes again.
void RecordDialog::buildMachine() {
  auto* row = new QHBoxLayout;
  row->addWidget(new QLabel(machine_.isEmpty() ? tr("this machine") : machine_, this));
  auto* other = new QPushButton(tr("Another machine, over ssh…"), this);
  other->setProperty("link", true);
  other->setAutoDefault(false);
  connect(other, &QPushButton::clicked, this, [this] {
    keep();  // what was typed is there again
    done(kOtherMachine);
  });
  row->addSpacing(12);
  row->addWidget(other);
  row->addStretch(1);
  form_->addRow(tr("Machine"), row);
}

void RecordDialog::buildFolder() {
  folder_->setFont(mono_font(12));
  folder_->setAccessibleName(tr("Folder"));
  auto* row = new QHBoxLayout;
  row->addWidget(folder_);
  if (machine_.isEmpty()) {
    auto* choose = new QPushButton(tr("Choose…"), this);
    choose->setAutoDefault(false);
    row->addWidget(choose);
    connect(choose, &QPushButton::clicked, this, [this] {
      const QString chosen = QFileDialog::getExistingDirectory(this, tr("Folder in which the program starts"), folder_->text());
      if (!chosen.isEmpty()) folder_->setText(chosen);
    });
  } else {
    folder_->setPlaceholderText(tr("the home folder there"));
  }
  form_->addRow(tr("Folder"), row);
  form_->addRow(QString(), hint(machine_.isEmpty() ? tr("The program starts in this folder.") : tr("A folder on %1 in which the program starts.").arg(machine_)));
}

void RecordDialog::buildPython() {
  python_ = new SegmentedRow(tr("Python level"), python_level_values(), this);
  form_->addRow(tr("Python level"), python_);
  form_->addRow(QString(), python_hint_ = hint({}));
}

// Until one is chosen, the level of Python is the usual one beside this trace level.
void RecordDialog::followTraceLevel() {
  const auto usual = [](prof::TraceLevel level) { return QString(prof::to_string(prof::usual_python_level(level))); };
  const prof::TraceLevel now = prof::record_level(level_->value().toStdString());
  if (python_->value() == usual(before_)) python_->setValue(usual(now));
  before_ = now;
  check();
}

void RecordDialog::buildLevels() {
  level_ = new SegmentedRow(
      tr("Trace level"),
      {{"steps", tr("Steps only"), tr("Steps, NVTX ranges and allocator calls. No work of the GPU.")},
       {"collectives", tr("Collectives"),
        tr("Steps and the collectives of NCCL, for programs with several ranks. Costs least of all levels that see the GPU.")},
       {"graph", tr("Graphs"), tr("CUDA graph launches as a whole; other kernels, copies and memsets one by one.")},
       {"kernels", tr("Kernels"), tr("Every kernel, also inside CUDA graphs.")},
       {"full", tr("Kernels + API"), tr("Every kernel, the CUDA calls that launch and sync, and memory pools.")}},
      this);
  form_->addRow(tr("Trace level"), level_);
  form_->addRow(QString(), level_hint_ = hint({}));
}

// Restores the choices of the last recording.
void RecordDialog::recall() {
  const QSettings kept;
  command_->setText(kept.value("record/command").toString());
  window_->setText(kept.value("record/window").toString());
  captures_->setChecked(kept.value("record/captures", false).toBool());
  counters_->setChecked(kept.value("record/counters", false).toBool());
  xray_->setChecked(kept.value("record/xray", false).toBool());
  level_->setValue("full");
  level_->setValue(kept.value("record/level").toString());
  before_ = prof::record_level(level_->value().toStdString());
  python_->setValue(prof::to_string(prof::usual_python_level(before_)));
  python_->setValue(kept.value("record/python").toString());
  folder_->setText(kept.value(folderKey()).toString());
  if (machine_.isEmpty() && !QFileInfo(folder_->text()).isDir()) folder_->setText(QDir::currentPath());
}

QString RecordDialog::folderKey() const { return machine_.isEmpty() ? "record/folder" : "record/folder on " + machine_; }

QStringList RecordDialog::command() const { return QProcess::splitCommand(command_->text()); }

prof::RecordOptions RecordDialog::options() const {
  prof::RecordOptions options;
  options.level = prof::record_level(level_->value().toStdString());
  options.python = prof::python_level(python_->value().toStdString());
  options.folder = folder_->text().trimmed().toStdString();
  options.captures = captures_->isChecked();
  options.counters = counters_->isChecked();
  if (xray_->isChecked()) options.xray = prof::RecordOptions::kUsualXray;
  options.window = window_->text().simplified().remove(' ').toStdString();
  return options;
}

void RecordDialog::check() {
  QString problem;
  try {
    prof::check_options(options());
  } catch (const std::exception& failure) {
    problem = sentence_of(failure.what());
  }
  if (problem.isEmpty() && machine_.isEmpty() && !QFileInfo(QString::fromStdString(options().folder)).isDir())
    problem = tr("There is no such folder.");
  for (const auto& [row, hint] : {std::pair{level_, level_hint_}, {python_, python_hint_}})
    for (const Segment* segment : row->segments())
      if (segment->isChecked()) hint->setText(segment->explanation());
  verdict_->setText(problem.isEmpty() ? problem : QStringLiteral("▲ ") + problem);
  verdict_->setVisible(!problem.isEmpty());
  record_->setEnabled(problem.isEmpty() && !command().isEmpty());
}

void RecordDialog::accept() {
  keep();
  QDialog::accept();
}

void RecordDialog::keep() const {
  QSettings kept;
  kept.setValue("record/command", command_->text());
  kept.setValue("record/window", window_->text());
  kept.setValue("record/captures", captures_->isChecked());
  kept.setValue("record/counters", counters_->isChecked());
  kept.setValue("record/xray", xray_->isChecked());
  kept.setValue("record/level", level_->value());
  kept.setValue("record/python", python_->value());
  kept.setValue(folderKey(), folder_->text());
}

}  // namespace ws::app
