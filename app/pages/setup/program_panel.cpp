#include "app/pages/setup/program_panel.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "app/text/units.h"
#include "app/widgets/section.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/run_loader.h"
#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/recording/record_keys.h"

namespace ws::app {
namespace {

constexpr std::pair<const char*, const char*> kEnvironment[] = {
    {"program_torch", "PyTorch"},
    {"program_torch_cuda", "CUDA of PyTorch"},
    {"program_python", "Python"},
    {"program_threads", "threads"},
    {"program_lines", "lines"},
    {"program_ops", "ops"},
    {"program_memory", "memory"},
    {prof::kCollectivesInGraphs, "collectives"},
    {prof::kCollectivesUnseen, "collectives"},
    {prof::kCollectivesUntimed, "collectives"},
    {"program_memory_retries", "PyTorch cache flushes"},
    {"program_memory_errors", "out-of-memory errors"}};

QWidget* header(const QString& text, QWidget* parent) {
  auto* header = new QWidget(parent);
  style_ground(*header, "header");
  header->setFixedHeight(28);
  auto* row = new QHBoxLayout(header);
  row->setContentsMargins(10, 0, 8, 0);
  auto *title = new QLabel(text, header), *kind = new QLabel(QObject::tr("recorded"), header);
  title->setFont(ui_font(12.5, 600));
  kind->setFont(ui_font(11));
  kind->setForegroundRole(QPalette::PlaceholderText);
  row->addWidget(title);
  row->addStretch();
  row->addWidget(kind);
  return header;
}

QVBoxLayout* section(const QString& title, QVBoxLayout* column, QWidget* parent) {
  auto* section = new Section(title, parent);
  column->addWidget(section);
  return section->body();
}

QLabel* plain_text(QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

}  // namespace

std::optional<RecordedCommand> recorded_command(const prof::RunSummary& summary) {
  RecordedCommand recorded;
  recorded.words = command_of(summary);
  if (recorded.words.isEmpty()) return std::nullopt;
  try {
    if (const std::string level = summary.said(prof::kTraceLevelKey); !level.empty()) recorded.options.level = prof::record_level(level);
    if (const std::string level = summary.said(prof::kPythonLevelKey); !level.empty())
      recorded.options.python = prof::python_level(level);
  } catch (const Failure&) {  // newer version: use defaults
  }
  recorded.options.window = summary.said(prof::kTraceWindowKey);
  recorded.options.xray = summary.said(prof::kXrayTimeKey);
  recorded.options.captures = summary.said(prof::kCapturesKey) == "1";
  recorded.options.counters = summary.said(prof::kCountersKey) == "1";
  recorded.options.folder = summary.said(prof::kFolderKey);
  for (const auto& [key, name] : kEnvironment)
    if (const std::string value = summary.said(key); !value.empty()) {
      std::string& text = recorded.environment[name];
      text += (text.empty() ? "" : " ") + value;
    }
  if (!summary.device.empty()) recorded.environment["device"] = summary.device;
  return recorded;
}

std::vector<SegmentedRow::Value> python_level_values() {
  return {{"off", QObject::tr("off"), QObject::tr("Work of the GPU and NVTX ranges.")},
          {"steps", QObject::tr("steps"), QObject::tr("Optimizer steps and logged values, too.")},
          {"modules", QObject::tr("modules"), QObject::tr("Modules of PyTorch, phases, steps, losses and stacks.")},
          {"ops", QObject::tr("ops"), QObject::tr("Each PyTorch op, too.")},
          {"lines", QObject::tr("lines"), QObject::tr("The source line of each, too.")}};
}

QString level_costs_text(const std::vector<LevelCost>& costs) {
  QStringList parts;
  double first = 0;
  for (const char* level : {"off", "steps", "modules", "ops", "lines"}) {
    const auto at = std::ranges::find(costs, QString(level), &LevelCost::level);
    if (at == costs.end() || !(at->step_us > 0)) continue;
    QString part = at->level + " " + step_time_text(at->step_us);
    if (first > 0) part += QString(" (×%1)").arg(fixed_text(at->step_us / first, 2));
    if (first == 0) first = at->step_us;
    parts << part;
  }
  return parts.size() > 1 ? parts.join(QStringLiteral(" · ")) : QString();
}

ProgramPanel::ProgramPanel(QWidget* parent) : QWidget(parent) {
  style_ground(*this, "panel");
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(header(tr("Program"), this));
  section(tr("Command"), column, this)->addWidget(command_ = plain_text(this));
  command_->setFont(mono_font(12));
  environment_ = new QGridLayout;
  environment_->setHorizontalSpacing(12);
  environment_->setColumnStretch(1, 1);
  section(tr("Environment"), column, this)->addLayout(environment_);
  QVBoxLayout* levels = section(tr("Record level"), column, this);
  level_ = new SegmentedRow(tr("Record level"), python_level_values(), this);
  levels->addWidget(level_);
  levels->addWidget(costs_ = plain_text(this));
  costs_->setFont(ui_font(11));
  costs_->setForegroundRole(QPalette::PlaceholderText);
  auto* again = new QPushButton(tr("Record again"), this);
  again->setToolTip(tr("Runs the program again and records it at this level."));
  levels->addWidget(again);
  column->addSpacing(8);
  auto* hint = new QHBoxLayout;
  hint->setContentsMargins(10, 0, 8, 0);
  hint->addWidget(loss_hint_ = plain_text(this));
  loss_hint_->setText(tr("No loss was seen: the program neither logged one nor read it with loss.item(). To see one, use warpsight.log(loss=…), after "
                         "pip install %1.")
                          .arg(QString::fromStdString(python_folder().string())));
  loss_hint_->setFont(ui_font(11));
  loss_hint_->setForegroundRole(QPalette::PlaceholderText);
  loss_hint_->hide();
  column->addLayout(hint);
  column->addStretch();
  connect(again, &QPushButton::clicked, this, &ProgramPanel::recordAgain);
}

void ProgramPanel::recordAgain() {
  prof::RecordOptions options = recorded_.options;
  options.python = prof::python_level(level_->value().toStdString());
  emit recordWanted(recorded_.words, options);
}

void ProgramPanel::showProgram(const RecordedCommand& recorded, const std::vector<LevelCost>& costs) {
  const QString measured = level_costs_text(costs);
  costs_->setText(measured.isEmpty() ? tr("Record the program at two levels to see what a level costs.")
                                     : tr("Step time at each level: %1").arg(measured));
  recorded_ = recorded;
  command_->setText(recorded.words.join(' '));
  showEnvironment();
  level_->setValue(prof::to_string(recorded.options.python));
}

void ProgramPanel::watch(const Run* run) {
  if (run_ != run) {
    if (run_) disconnect(run_, nullptr, this, nullptr);
    run_ = run;
    if (run) connect(run, &Run::changed, this, &ProgramPanel::showLossHint);
  }
  showLossHint();
}

void ProgramPanel::showLossHint() { loss_hint_->setVisible(run_ && run_->loaded && !run_->recording && !run_->hasLoss()); }

void ProgramPanel::showEnvironment() {
  while (QLayoutItem* item = environment_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  int line = 0;
  for (const auto& [name, value] : recorded_.environment) {
    auto *left = plain_text(this), *right = plain_text(this);
    left->setText(QString::fromStdString(name)), right->setText(QString::fromStdString(value));
    left->setWordWrap(false);
    left->setForegroundRole(QPalette::PlaceholderText);
    right->setAlignment(Qt::AlignRight | Qt::AlignTop);
    environment_->addWidget(left, line, 0, Qt::AlignTop);
    environment_->addWidget(right, line++, 1);
  }
  if (line > 0) return;
  auto* unknown = plain_text(this);
  unknown->setText(tr("not known"));
  environment_->addWidget(unknown, 0, 0);
}

}  // namespace ws::app
