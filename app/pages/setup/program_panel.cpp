#include "app/pages/setup/program_panel.h"

#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "app/widgets/primary_button.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"

namespace ws::app {
namespace {

QStringList words_of(const std::string& json) {
  QStringList words;
  const auto list = parse_json_or_null(json);
  if (list.is_array())
    for (const auto& word : list)
      if (word.is_string()) words << QString::fromStdString(word.get<std::string>());
  return words;
}

constexpr std::pair<const char*, const char*> kEnvironment[] = {{"program_torch", "PyTorch"},
                                                                {"program_torch_cuda", "CUDA of PyTorch"},
                                                                {"program_python", "Python"},
                                                                {"program_threads", "threads"}};

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
  recorded.words = words_of(said(prof::kCommandKey));
  if (recorded.words.isEmpty()) return std::nullopt;
  try {
    if (const std::string level = said(prof::kTraceLevelKey); !level.empty()) recorded.options.level = prof::trace_level(level);
    if (const std::string level = said(prof::kPythonLevelKey); !level.empty())
      recorded.options.python = prof::python_level(level);
  } catch (const Failure&) {  // of a newer version: recorded again as usual
  }
  for (const auto& [key, name] : kEnvironment)
    if (const std::string value = said(key); !value.empty()) recorded.environment[name] = value;
  if (!summary.device.empty()) recorded.environment["device"] = summary.device;
  return recorded;
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
                            {{"off", tr("off"), tr("Only what the GPU does, and NVTX ranges.")},
                             {"modules", tr("modules"), tr("Modules of PyTorch, phases, steps, losses and stacks.")},
                             {"ops", tr("ops"), tr("Each op of PyTorch too.")},
                             {"lines", tr("lines"), tr("The line of the program for each of them too.")}},
                            this);
  column->addWidget(level_);
  auto* again = new QPushButton(tr("Record again"), this);
  again->setToolTip(tr("Runs the program again and records it at this level."));
  make_primary(*again);
  column->addWidget(again);
  column->addStretch();
  connect(again, &QPushButton::clicked, this, [this] {
    prof::RecordOptions options = recorded_.options;
    options.python = prof::python_level(level_->value().toStdString());
    emit recordWanted(recorded_.words, options);
  });
}

void ProgramPanel::showProgram(const RecordedCommand& recorded) {
  recorded_ = recorded;
  command_->setText(recorded.words.join(' '));
  QStringList lines;
  for (const auto& [name, value] : recorded.environment)
    lines << tr("%1: %2").arg(QString::fromStdString(name), QString::fromStdString(value));
  environment_->setText(lines.isEmpty() ? tr("not known") : lines.join('\n'));
  level_->setValue(prof::to_string(recorded.options.python));
}

}  // namespace ws::app
