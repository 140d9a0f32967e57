#include "app/window/record_dialog.h"

#include <QCheckBox>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QSettings>
#include <QVBoxLayout>

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

RecordDialog::RecordDialog(QWidget* parent)
    : QDialog(parent),
      command_(new QLineEdit(this)),
      window_(new QLineEdit(this)),
      counters_(new QCheckBox(tr("Sample hardware counters too"), this)),
      form_(new QFormLayout),
      verdict_(new QLabel(this)) {
  setWindowTitle(tr("Record a program"));
  setMinimumWidth(620);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(10);
  form_->setLabelAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  form_->setHorizontalSpacing(16);
  form_->setVerticalSpacing(4);
  command_->setFont(mono_font(12));
  command_->setAccessibleName(tr("Program"));
  command_->setPlaceholderText("python3 train.py --epochs 1");
  form_->addRow(tr("Program"), command_);
  form_->addRow(QString(), hint(tr("Any program that uses CUDA, with its arguments: words and quotes as in a shell.")));
  buildLevels();
  window_->setAccessibleName(tr("Trace windows"));
  window_->setPlaceholderText(tr("all the time; or some of it, such as 200ms/5s"));
  form_->addRow(tr("Trace windows"), window_);
  form_->addRow(QString(), hint(tr("For programs that run long: 200ms/5s traces 200 ms of every 5 s by the clock, from "
                                   "the first work on the GPU on. Between the windows only allocator calls and NVTX "
                                   "ranges are recorded, so the file of a long run stays small. The program is slowed "
                                   "as much.")));
  form_->addRow(tr("Counters"), counters_);
  form_->addRow(QString(), hint(tr("Busy multiprocessors, tensor pipe and DRAM over time. If the driver refuses them, "
                                   "the status line says so.")));
  column->addLayout(form_);
  column->addStretch(1);
  verdict_->setWordWrap(true);
  verdict_->setFont(ui_font(12.5));
  QPalette ink = verdict_->palette();
  ink.setColor(QPalette::WindowText, theme().worse);
  verdict_->setPalette(ink);
  column->addWidget(verdict_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  record_ = buttons->addButton(tr("Record"), QDialogButtonBox::AcceptRole);
  make_primary(*record_);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  recall();
  connect(command_, &QLineEdit::textChanged, this, &RecordDialog::check);
  connect(window_, &QLineEdit::textChanged, this, &RecordDialog::check);
  connect(level_, &SegmentedRow::picked, this, &RecordDialog::check);
  check();
}

QLabel* RecordDialog::hint(const QString& sentence) {
  auto* label = new QLabel(sentence, this);
  label->setWordWrap(true);
  label->setFont(ui_font(11));
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setMargin(4);
  return label;
}

void RecordDialog::buildLevels() {
  level_ = new SegmentedRow(
      tr("Trace level"),
      {{"steps", tr("Steps only"), tr("Steps, NVTX ranges and allocator calls. No work of the GPU.")},
       {"collectives", tr("Collectives"),
        tr("Steps and the collectives of NCCL, for programs with several ranks. Costs least of all levels that see the GPU.")},
       {"graph", tr("Graphs"), tr("CUDA graph launches as a whole; other kernels, copies and memsets one by one.")},
       {"kernels", tr("Kernels"), tr("Every kernel, also inside CUDA graphs.")},
       {"full", tr("Kernels + API"), tr("Every kernel, the CUDA calls that launch and wait, and memory pools.")}},
      this);
  form_->addRow(tr("Trace level"), level_);
  form_->addRow(QString(), level_hint_ = hint({}));
}

// Restores the choices of the last recording.
void RecordDialog::recall() {
  const QSettings kept;
  command_->setText(kept.value("record/command").toString());
  window_->setText(kept.value("record/window").toString());
  counters_->setChecked(kept.value("record/counters", false).toBool());
  level_->setValue("full");
  level_->setValue(kept.value("record/level").toString());
}

QStringList RecordDialog::command() const { return QProcess::splitCommand(command_->text()); }

prof::RecordOptions RecordDialog::options() const {
  prof::RecordOptions options;
  options.level = prof::record_level(level_->value().toStdString());
  options.python = prof::usual_python_level(options.level);
  options.counters = counters_->isChecked();
  options.window = window_->text().simplified().remove(' ').toStdString();
  return options;
}

void RecordDialog::check() {
  QString problem;
  try {
    prof::check_window(options());
  } catch (const std::exception& failure) {
    problem = tr("Trace windows: %1").arg(sentence_of(failure.what()));
  }
  for (const Segment* segment : level_->segments())
    if (segment->isChecked()) level_hint_->setText(segment->explanation());
  verdict_->setText(problem.isEmpty() ? problem : QStringLiteral("▲ ") + problem);
  verdict_->setVisible(!problem.isEmpty());
  record_->setEnabled(problem.isEmpty() && !command().isEmpty());
}

void RecordDialog::accept() {
  QSettings kept;
  kept.setValue("record/command", command_->text());
  kept.setValue("record/window", window_->text());
  kept.setValue("record/counters", counters_->isChecked());
  kept.setValue("record/level", level_->value());
  QDialog::accept();
}

}  // namespace ws::app
