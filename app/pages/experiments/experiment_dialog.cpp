#include "app/pages/experiments/experiment_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QVBoxLayout>
#include <algorithm>
#include <memory>

#include "app/text/qt_text.h"
#include "app/widgets/labels.h"
#include "app/widgets/primary_button.h"
#include "app/widgets/theme.h"
#include "engine/devices/devices.h"

namespace ws::app {
namespace {

constexpr int kValuesWidth = 390;  // buttons of one line

// False for fields that nobody varies: the source of the rows, and what ends a run.
bool varied(const Field& f) {
  constexpr std::string_view kLeftOut[] = {"data.path", "data.label_column", "train.target_accuracy",
                                           "train.time_limit_s", "train.eval_every"};
  return f.kind != FieldKind::Text && std::ranges::find(kLeftOut, f.key) == std::end(kLeftOut);
}

}  // namespace

ExperimentDialog::ExperimentDialog(const RunSpec& base, QWidget* parent) : QDialog(parent), base_(base) {
  setWindowTitle(tr("New experiment"));
  resize(620, 640);
  auto* column = new QVBoxLayout(this);
  auto* form = new QFormLayout;
  name_ = new QLineEdit(this);
  name_->setPlaceholderText(tr("The question, in a few words"));
  repeats_ = new QSpinBox(this);
  repeats_->setRange(1, 1000);
  repeats_->setValue(3);
  repeats_->setButtonSymbols(QAbstractSpinBox::NoButtons);
  form->addRow(tr("Name"), name_);
  form->addRow(tr("Repeats"), repeats_);
  column->addLayout(form);
  auto* hint = new QLabel(
      tr("Choose the values to try. Every combination is trained. All other settings stay as in Setup."), this);
  hint->setWordWrap(true);
  hint->setForegroundRole(QPalette::PlaceholderText);
  column->addWidget(hint);
  column->addWidget(buildAxes(), 1);
  count_ = new QLabel(this);
  count_->setWordWrap(true);
  column->addWidget(count_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  make_ = buttons->addButton(tr("Create"), QDialogButtonBox::AcceptRole);
  make_primary(*make_);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(repeats_, &QSpinBox::valueChanged, this, &ExperimentDialog::refresh);
  column->addWidget(buttons);
  refresh();
}

QWidget* ExperimentDialog::buildAxes() {
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* page = new QWidget(scroll);
  auto* column = new QVBoxLayout(page);
  column->setSpacing(4);
  std::string_view group;
  for (const std::string_view wanted : {"Execution", "Model", "Training", "Data"})
    for (const Field& f : fields()) {
      if (f.group != wanted || !varied(f)) continue;
      if (f.group != group) {
        column->addWidget(label(page, ui_font(12.5, 600), {.wraps = false}, text(group = f.group)));
      }
      addAxis(f, *column);
    }
  column->addStretch(1);
  scroll->setWidget(page);
  return scroll;
}

void ExperimentDialog::addAxis(const Field& f, QVBoxLayout& column) {
  auto* row = new QHBoxLayout;
  row->setSpacing(4);
  auto* label = new QLabel(text(f.label), this);
  label->setFixedWidth(150);
  label->setToolTip(text(f.explain));
  row->addWidget(label, 0, Qt::AlignTop);
  Axis axis{std::string(f.key), {}, nullptr};
  std::vector<std::string> values;
  for (const FieldValue& value : f.values) values.emplace_back(value.name);
  if (f.kind == FieldKind::Flag) values = {"true", "false"};
  auto lines = std::make_unique<QVBoxLayout>();
  lines->setSpacing(row->spacing());
  QHBoxLayout* line = nullptr;
  for (int space = 0; const std::string& value : values) {
    auto* button = new QPushButton(QString::fromStdString(value), this);
    button->setProperty("small", true);
    button->setCheckable(true);
    button->setAccessibleName(text(f.label) + " " + QString::fromStdString(value));
    connect(button, &QPushButton::toggled, this, &ExperimentDialog::refresh);
    button->ensurePolished();
    space -= button->sizeHint().width() + row->spacing();
    if (space < 0 || !line) {
      if (line) line->addStretch(1);
      lines->addLayout(line = new QHBoxLayout);
      line->setSpacing(row->spacing());
      space = kValuesWidth - button->sizeHint().width();
    }
    line->addWidget(button);
    axis.buttons.push_back(button);
  }
  if (values.empty()) {
    axis.text = new QLineEdit(this);
    axis.text->setAccessibleName(text(f.label));
    const QString now = QString::fromStdString(field_text(base_, f.key));
    axis.text->setPlaceholderText(f.kind == FieldKind::IntegerList ? tr("values, e.g. 64,64; 128,128 (now %1)").arg(now)
                                                                   : tr("values, e.g. 1; 2; 4 (now %1)").arg(now));
    connect(axis.text, &QLineEdit::textChanged, this, &ExperimentDialog::refresh);
    row->addWidget(axis.text, 1);
  } else {
    line->addStretch(1);
    row->addLayout(lines.release(), 1);
  }
  // The label stands beside the first line of values.
  const QWidget* first = axis.text ? static_cast<QWidget*>(axis.text) : axis.buttons.front();
  label->setFixedHeight(first->sizeHint().height());
  column.addLayout(row);
  axes_.push_back(std::move(axis));
}

std::vector<std::string> ExperimentDialog::valuesOf(const Axis& axis) const {
  std::vector<std::string> values;
  for (const QPushButton* button : axis.buttons)
    if (button->isChecked()) values.push_back(button->text().toStdString());
  if (axis.text)
    for (const QString& part : axis.text->text().split(';', Qt::SkipEmptyParts))
      if (!part.trimmed().isEmpty()) values.push_back(part.trimmed().toStdString());
  return values;
}

ExperimentSpec ExperimentDialog::spec() const {
  ExperimentSpec spec;
  spec.title = name_->text().simplified().toStdString();
  spec.base = base_;
  spec.repeats = repeats_->value();
  RunSpec checked = base_;
  for (const Axis& axis : axes_) {
    const std::vector<std::string> values = valuesOf(axis);
    for (const std::string& value : values) set_field(checked, axis.key, value);
    if (!values.empty()) spec.axes.push_back({axis.key, values});
  }
  return spec;
}

void ExperimentDialog::refresh() {
  QString said;
  bool good = false;
  try {
    const ExperimentSpec now = spec();
    const std::vector<Trial> trials = now.axes.empty() ? std::vector<Trial>{} : trials_of(now, device_info().cuda);
    const auto blocked = std::ranges::count_if(trials, [](const Trial& t) { return !t.skipped.empty(); });
    good = trials.size() > 1 && blocked < static_cast<std::ptrdiff_t>(trials.size());
    said = trials.size() < 2
               ? tr("Choose at least two values.")
               : tr("%1 combinations, %2 trainings")
                     .arg(trials.size())
                     .arg((trials.size() - static_cast<size_t>(blocked)) * static_cast<size_t>(now.repeats));
    if (blocked > 0) said += tr("; %1 cannot run here").arg(blocked);
  } catch (const std::exception& problem) {
    said = QString::fromUtf8(problem.what());
  }
  count_->setText(said);
  make_->setEnabled(good);
}

bool ExperimentDialog::ready() const { return make_->isEnabled(); }

void ExperimentDialog::setName(const QString& name) { name_->setText(name); }

void ExperimentDialog::choose(const std::string& key, const std::vector<std::string>& values) {
  for (const Axis& axis : axes_) {
    if (axis.key != key) continue;
    QStringList written;
    for (const std::string& value : values) written << QString::fromStdString(value);
    for (QPushButton* button : axis.buttons) button->setChecked(written.contains(button->text()));
    if (axis.text) axis.text->setText(written.join("; "));
  }
}

}  // namespace ws::app
