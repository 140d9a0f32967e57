#include "app/pages/setup/program_panel.h"

#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "app/text/units.h"
#include "app/widgets/primary_button.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/run_loader.h"
#include "profiling/base/failure.h"

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
    {"program_memory_retries", "PyTorch cache flushes"},
    {"program_memory_errors", "out-of-memory errors"}};

QLabel* heading(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setFont(ui_font(12.5, 600));
  return label;
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
  const auto said = [&summary](const char* key) {
    const auto at = summary.extra.find(key);
    return at == summary.extra.end() ? std::string() : at->second;
  };
  RecordedCommand recorded;
  recorded.words = command_of(summary);
  if (recorded.words.isEmpty()) return std::nullopt;
  try {
    if (const std::string level = said(prof::kTraceLevelKey); !level.empty()) recorded.options.level = prof::record_level(level);
    if (const std::string level = said(prof::kPythonLevelKey); !level.empty())
      recorded.options.python = prof::python_level(level);
  } catch (const Failure&) {  // newer version: use defaults
  }
  for (const auto& [key, name] : kEnvironment)
    if (const std::string value = said(key); !value.empty()) recorded.environment[name] = value;
  if (!summary.device.empty()) recorded.environment["device"] = summary.device;
  return recorded;
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
  column->addWidget(heading(tr("Program"), this));
  column->addWidget(command_ = plain_text(this));
  column->addWidget(heading(tr("Environment"), this));
  column->addWidget(environment_ = plain_text(this));
  column->addWidget(heading(tr("Record level"), this));
  level_ = new SegmentedRow(tr("Record level"),
                            {{"off", tr("off"), tr("Work of the GPU and NVTX ranges.")},
                             {"steps", tr("steps"), tr("Optimizer steps and logged values, too.")},
                             {"modules", tr("modules"), tr("Modules of PyTorch, phases, steps, losses and stacks.")},
                             {"ops", tr("ops"), tr("Each PyTorch op, too.")},
                             {"lines", tr("lines"), tr("The source line of each, too.")}},
                            this);
  column->addWidget(level_);
  column->addWidget(costs_ = plain_text(this));
  costs_->setForegroundRole(QPalette::PlaceholderText);
  auto* again = new QPushButton(tr("Record again"), this);
  again->setToolTip(tr("Runs the program again and records it at this level."));
  make_primary(*again);
  column->addWidget(again);
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
  QStringList lines;
  for (const auto& [name, value] : recorded.environment)
    lines << tr("%1: %2").arg(QString::fromStdString(name), QString::fromStdString(value));
  environment_->setText(lines.isEmpty() ? tr("not known") : lines.join('\n'));
  level_->setValue(prof::to_string(recorded.options.python));
}

}  // namespace ws::app
