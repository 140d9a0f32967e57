#include "app/pages/setup/setup_panel.h"

#include <QEvent>
#include <QFileDialog>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QStyle>
#include <QVBoxLayout>

#include "app/core/runs/data_shape.h"
#include "app/pages/setup/field_row.h"
#include "app/pages/setup/layer_table.h"
#include "app/pages/setup/setup_estimate.h"
#include "app/pages/setup/spec_json_dialog.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/section.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/choices.h"
#include "app/workspace/run.h"

namespace ws::app {
namespace {

const char* const kGroups[] = {"Execution", "Model", "Training", "Data"};

// The order of the field table. In Execution the most instructive fields come first.
std::vector<const Field*> fields_of(const QString& group) {
  std::vector<const Field*> found;
  for (const Field& f : fields())
    if (text(f.group) == group) found.push_back(&f);
  if (group != "Execution") return found;
  static const char* const last[] = {"exec.matmul", "exec.device"};
  for (const char* key : last) {
    const auto at = std::find_if(found.begin(), found.end(), [key](const Field* f) { return f->key == key; });
    if (at != found.end()) std::rotate(at, at + 1, found.end());
  }
  return found;
}

}  // namespace

SetupPanel::SetupPanel(Choices* choices, QWidget* parent) : QWidget(parent), choices_(choices) {
  style_ground(*this, "panel");
  build();
  connect(choices_, &Choices::changed, this, &SetupPanel::refresh);
  connect(choices_, &Choices::said, this, [this](const QString& sentence, bool problem) {
    if (problem) refresh();  // a field may show a rejected value
    FieldRow* wrong = problem ? rowOf(sentence) : nullptr;
    if (!wrong) return say(sentence, problem);
    const QString words = text(wrong->field().label) + sentence.mid(text(wrong->field().key).size());
    wrong->setProblem(words);
    say(words, true);
  });
  refresh();
}

void SetupPanel::build() {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(buildHeader());
  column->addWidget(buildDifference());
  auto* scroll = scroll_ = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  auto* inside = new QWidget(scroll);
  style_ground(*inside, "panel");
  auto* list = new QVBoxLayout(inside);
  list->setContentsMargins(0, 0, 0, 0);
  list->setSpacing(0);
  scroll->setWidget(inside);
  column->addWidget(scroll, 1);
  for (const char* group : kGroups) {
    buildSection(group);
    list->addWidget(sections_[group]);
  }
  list->addStretch(1);
  column->addWidget(buildFooter());
}

QSize SetupPanel::minimumSizeHint() const {
  constexpr int kLeast = 284, kBeside = 26;  // margins and scroll bar
  int widest = 0;
  for (const FieldRow* row : rows_)
    if (!row->number()) widest = std::max(widest, row->leastWidth());
  return {std::max(kLeast, widest + kBeside), 200};
}

QWidget* SetupPanel::buildHeader() {
  auto* header = new QWidget(this);
  style_ground(*header, "header");
  header->setFixedHeight(28);
  auto* row = new QHBoxLayout(header);
  row->setContentsMargins(10, 0, 8, 0);
  title_ = new QLabel(header);
  title_->setFont(ui_font(12.5, 600));
  preset_button_ = new QPushButton(tr("No preset"), header);
  preset_button_->setProperty("small", true);
  preset_button_->setProperty("menu", true);
  preset_button_->setFont(ui_font(12));
  preset_button_->setAccessibleName(tr("Preset"));
  preset_button_->setMenu(new QMenu(preset_button_));
  connect(preset_button_->menu(), &QMenu::aboutToShow, this, &SetupPanel::fillPresets);
  row->addWidget(title_);
  row->addStretch(1);
  row->addWidget(preset_button_);
  return header;
}

QWidget* SetupPanel::buildDifference() {
  difference_ = new QWidget(this);
  style_ground(*difference_, "panel");
  difference_->setFixedHeight(24);  // it is there with every state: nothing below it moves
  auto* row = new QHBoxLayout(difference_);
  row->setContentsMargins(10, 0, 8, 0);
  differs_ = new QLabel(difference_);
  differs_->setObjectName("differs");
  differs_->setFont(ui_font(11));
  differs_->setMinimumWidth(10);
  take_ = new QPushButton(difference_);
  take_->setProperty("link", true);
  take_->setFont(ui_font(11));
  connect(take_, &QPushButton::clicked, this, [this] {
    if (choices_->replaced()) return choices_->bringBack();
    if (other_) choices_->setSpec(*other_);
  });
  list_ = new QPushButton(tr("Show"), difference_);
  list_->setObjectName("differences");
  list_->setProperty("link", true);
  list_->setFont(ui_font(11));
  list_->setToolTip(tr("Lists the settings that differ"));
  differences_menu_ = new QMenu(list_);
  connect(list_, &QPushButton::clicked, this, [this] {
    fillDifferences();
    differences_menu_->popup(difference_->mapToGlobal(QPoint(0, difference_->height())));
  });
  QSizePolicy keeps = list_->sizePolicy();  // its place: nothing beside it moves
  keeps.setRetainSizeWhenHidden(true);
  list_->setSizePolicy(keeps);
  row->addWidget(differs_, 1);
  row->addWidget(take_);
  row->addWidget(list_);
  return difference_;
}

QWidget* SetupPanel::buildFooter() {
  auto* footer = new QWidget(this);
  style_ground(*footer, "footer");
  footer->setFixedHeight(48);  // two lines: an error has its place
  auto* row = new QHBoxLayout(footer);
  row->setContentsMargins(10, 0, 8, 0);
  footer_ = new QLabel(footer);
  footer_->setFont(ui_font(11.5));
  footer_->setWordWrap(true);
  apply_ = new QPushButton(tr("Apply"), footer);
  apply_->setProperty("small", true);
  connect(apply_, &QPushButton::clicked, this, &SetupPanel::applyPending);
  row->addWidget(footer_, 1);
  row->addWidget(apply_);
  return footer;
}

void SetupPanel::buildSection(const QString& group) {
  auto* section = new Section(group, this);
  section->addHelp();
  connect(section, &Section::helpToggled, this, [this, group](bool on) {
    explained_[group] = on;
    relayout(group);
    refreshNotes();
  });
  sections_[group] = section;
  auto* grid = grids_[group] = new QGridLayout;
  grid->setHorizontalSpacing(8);
  grid->setVerticalSpacing(6);
  grid->setColumnStretch(0, 1);
  grid->setColumnStretch(1, 1);
  section->body()->addLayout(grid);
  bool any_advanced = false;
  for (const Field* field : fields_of(group)) {
    addRow(*field, section);
    any_advanced = any_advanced || advanced(field->key);
  }
  hints_[group] = addNote(section);
  hints_[group]->setObjectName("explain");
  if (group == "Model") {
    section->body()->addWidget(layers_ = new LayerTable(section));
    connect(layers_, &LayerTable::edited, this, [this](const QString& line) { choices_->set("model.layers", line); });
    chain_ = addNote(section), estimate_ = addNote(section);
  }
  if (group == "Execution") budget_ = addNote(section), budget_->setObjectName("budget");
  if (!any_advanced) return;
  auto* more = more_[group] = new QPushButton(section);
  more->setProperty("link", true);
  more->setFont(ui_font(11));
  connect(more, &QPushButton::clicked, this, [this, group] {
    show_more_[group] = !show_more_[group];
    relayout(group);
  });
  section->body()->addWidget(more, 0, Qt::AlignLeft);
}

void SetupPanel::addRow(const Field& field, Section* section) {
  auto* row = new FieldRow(field, section);
  connect(row, &FieldRow::edited, choices_, &Choices::set);
  connect(row, &FieldRow::focused, this, [this, group = text(field.group)](const QString& key) {
    hint_keys_[group] = key;
    showHint(group);
  });
  connect(row, &FieldRow::browse, this, [this](const QString& key) {
    const std::string& name = choices_->spec().data.name;
    const bool folder = data::source_of(name) == data::Source::Folder;
    const QString path = folder ? QFileDialog::getExistingDirectory(this, tr("Folder of pictures"))
                         : name == "text"
                             ? QFileDialog::getOpenFileName(this, tr("Text to learn from"), {}, tr("Texts (*.txt *.txt.gz);;All files (*)"))
                             : QFileDialog::getOpenFileName(this, tr("Table to learn from"), {},
                                                            tr("Tables (*.csv *.csv.gz *.txt);;All files (*)"));
    if (path.isEmpty()) return;
    folder || name == "text" ? choices_->set(key, path) : choices_->useFile(path);
  });
  rows_.push_back(row);
}

QLabel* SetupPanel::addNote(Section* section) {
  auto* label = new QLabel(section);
  label->setFont(ui_font(11));
  label->setWordWrap(true);
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setMinimumWidth(10);
  section->body()->addWidget(label);
  return label;
}

// Number fields are two per line, without space for a sentence each. The last focused one is explained below them.
void SetupPanel::showHint(const QString& group) {
  const FieldRow* shown = nullptr;
  for (const FieldRow* row : rows_) {
    if (text(row->field().group) != group || !row->number() || row->isHidden()) continue;
    if (!shown || text(row->field().key) == hint_keys_[group]) shown = row;
  }
  QLabel* hint = hints_[group];
  hint->setVisible(shown != nullptr && explained_[group]);
  if (shown)
    hint->setText(
        QString("<b>%1</b> %2").arg(text(shown->field().label).toHtmlEscaped(), explained(shown->field().explain)));
}

// Puts the relevant rows into the grid: numbers two per line, everything else one per line.
void SetupPanel::relayout(const QString& group) {
  QGridLayout* grid = grids_[group];
  while (QLayoutItem* item = grid->takeAt(0)) delete item;
  int line = 0, column = 0;
  for (FieldRow* row : rows_) {
    if (text(row->field().group) != group) continue;
    const std::string key(row->field().key);
    const bool shown =
        relevant(choices_->spec(), key) &&
        (show_more_[group] || !advanced(key) || field_text(choices_->spec(), key) != field_text(RunSpec{}, key) ||
         (other_ && field_text(choices_->spec(), key) != field_text(*other_, key)));
    row->setVisible(shown);
    row->setExplained(explained_[group]);
    if (!shown) continue;
    if (!row->half() && column == 1) ++line, column = 0;
    row->setLabelWidth(row->half() && column == 1 ? 0 : 66);
    grid->addWidget(row, line, column, 1, row->half() ? 1 : 2);
    if (row->half() && column == 0)
      column = 1;
    else
      ++line, column = 0;
  }
  showHint(group);
  if (more_.count(group)) more_[group]->setText(show_more_[group] ? tr("Fewer settings") : tr("More settings"));
}

// The row whose key begins the sentence; nullptr if none does.
FieldRow* SetupPanel::rowOf(const QString& sentence) const {
  for (FieldRow* row : rows_)
    if (sentence.startsWith(text(row->field().key) + ":")) return row;
  return nullptr;
}

FieldRow* SetupPanel::row(std::string_view key) const {
  for (FieldRow* row : rows_)
    if (row->field().key == key) return row;
  return nullptr;
}

void SetupPanel::setLive(std::optional<RunSpec> running) {
  if (running.has_value() == running_.has_value() && running == running_) return;
  running_ = std::move(running);
  refresh();
}

void SetupPanel::setOther(std::optional<RunSpec> other, const QString& letter) {
  if (other == other_ && letter == other_letter_) return;
  other_ = std::move(other), other_letter_ = letter;
  refreshRows();
  for (const char* group : kGroups) relayout(group);
  refreshNotes();
}

void SetupPanel::setCompact(bool compact) {
  for (const char* group : {"Training", "Data"}) sections_[group]->setOpen(!compact);
}

void SetupPanel::fillPresets() {
  QMenu* menu = preset_button_->menu();
  menu->clear();
  for (const Preset& preset : presets_by_title()) {
    QAction* action = menu->addAction(QString::fromStdString(preset.title));
    action->setToolTip(QString::fromStdString(preset.text));
    connect(action, &QAction::triggered, choices_,
            [this, name = preset.name] { choices_->usePreset(QString::fromStdString(name)); });
  }
  menu->setToolTipsVisible(true);
  menu->addSeparator();
  connect(menu->addAction(tr("Undo all changes")), &QAction::triggered, choices_,
          [this] { choices_->setSpec(choices_->preset()); });
  connect(menu->addAction(tr("Defaults")), &QAction::triggered, choices_, &Choices::useDefaults);
  connect(menu->addAction(tr("Edit as JSON…")), &QAction::triggered, this, &SetupPanel::editJson);
}

// Sentences contain theme colours.
void SetupPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && apply_) refresh();
}

void SetupPanel::editJson() {
  SpecJsonDialog dialog(choices_->spec(), this);
  if (dialog.exec() == QDialog::Accepted) choices_->edit(dialog.spec());
}

// Marks what differs from the run in training, else from the shown run, else from the preset.
void SetupPanel::refreshRows() {
  const FieldRow::Other other = running_ ? FieldRow::Other{*running_, tr("The run in training")}
                                : other_ ? FieldRow::Other{*other_, tr("Run %1").arg(other_letter_)}
                                         : FieldRow::Other{choices_->preset(), tr("The preset")};
  for (FieldRow* row : rows_) row->refresh(choices_->spec(), other, choices_->cuda(), running_ && !row->field().live);
}

void SetupPanel::refresh() {
  refreshRows();
  QStringList columns;
  for (const std::string& column : choices_->columns()) columns << QString::fromStdString(column);
  row("data.label_column")->setOffered(columns);
  for (const char* group : kGroups) relayout(group);
  const bool named = !choices_->preset().name.empty();
  QString title = tr("No preset");
  if (named) {
    title = QString::fromStdString(choices_->preset().name);
    for (const Preset& preset : presets())
      if (preset.name == choices_->preset().name) title = QString::fromStdString(preset.title);
    const bool changed = !diff(choices_->plainPreset(), choices_->spec()).empty();
    title = (changed ? tr("%1, changed") : tr("Preset: %1")).arg(title);
  }
  const QFontMetrics metrics(ui_font(12));
  preset_button_->setText(metrics.elidedText(title, Qt::ElideRight, 140));
  preset_button_->setToolTip(title);
  refreshNotes();
  refreshFooter();
}

void SetupPanel::refreshNotes() {
  const SetupEstimate e(choices_->spec());
  sections_["Data"]->setNotes(noted("Data", e.rows), noted("Data", e.data));
  chain_->setText(e.chain);
  layers_->setSpec(choices_->spec());
  estimate_->setText(e.cost);
  chain_->setVisible(explained_["Model"]), estimate_->setVisible(explained_["Model"] && !e.cost.isEmpty());
  sections_["Model"]->setNotes(noted("Model", e.parameters), noted("Model", e.short_chain));
  sections_["Training"]->setNotes(noted("Training", e.steps), noted("Training", e.training));
  sections_["Execution"]->setNotes(executionNote(), executionNote());
  refreshDifference();
  const bool shows = explained_["Execution"] && choices_->cuda();
  budget_->setText(shows ? QString::fromStdString(plan_budget(choices_->spec())).trimmed() : QString());
  budget_->setVisible(!budget_->text().isEmpty());
}

std::vector<FieldChange> SetupPanel::differences() const {
  return other_ ? choices_between(*other_, choices_->spec()) : std::vector<FieldChange>();
}

// The number of choices in a section that differ from the shown run, else its note: both do not fit.
QString SetupPanel::noted(const QString& group, const QString& note) const {
  const auto changes = running_ ? std::vector<FieldChange>() : differences();
  const auto count = std::ranges::count_if(changes, [&](const FieldChange& change) { return text(field(change.key).group) == group; });
  if (count == 0) return note;
  return count == 1 ? tr("1 differs from %1").arg(other_letter_) : tr("%1 differ from %2").arg(count).arg(other_letter_);
}

void SetupPanel::fillDifferences() {
  QMenu* menu = differences_menu_;
  menu->clear();
  for (const FieldChange& change : differences()) {
    const Field& of = field(change.key);
    connect(menu->addAction(tr("%1 · %2: %3").arg(text(of.group), text(of.label), QString::fromStdString(change.from + " → " + change.to))), &QAction::triggered, this,
            [this, key = std::string(change.key)] { showRow(key); });
    menu->actions().back()->setEnabled(relevant(choices_->spec(), change.key));  // else it has no row
  }
}

// Opens its section and scrolls to it.
void SetupPanel::showRow(const std::string& key) {
  FieldRow* shown = row(key);
  if (!shown) return;
  sections_[text(shown->field().group)]->setOpen(true);
  scroll_->widget()->layout()->activate();
  scroll_->ensureWidgetVisible(shown);
  if (QWidget* input = shown->nextInFocusChain(); shown->isAncestorOf(input)) input->setFocus(Qt::OtherFocusReason);
}

// Setup holds the choices of the next training. The shown run may have had others.
void SetupPanel::refreshDifference() {
  const auto changes = differences();
  const auto count = changes.size();
  const bool mine = choices_->replaced();
  list_->setVisible(!running_ && count > 0);
  take_->setVisible(!running_ && (mine || count > 0));
  if (mine) {
    take_->setText(tr("Bring back mine"));
    take_->setToolTip(tr("Your settings before these were set by a training that you did not set up here"));
  } else if (count > 0) {
    take_->setText(tr("Reset to %1").arg(other_letter_));
    take_->setToolTip(tr("Sets all settings as in run %1").arg(other_letter_));
  }
  const bool differs = count > 0 && !running_;
  difference_->setProperty("differs", differs);
  difference_->style()->polish(difference_);
  title_->setText(running_ ? tr("This training") : tr("Next training"));
  differs_->setForegroundRole(differs ? QPalette::WindowText : QPalette::PlaceholderText);
  differs_->setToolTip({});
  if (running_) return differs_->setText(tr("the settings of the run in training"));
  if (!other_) return differs_->setText(tr("Train makes a run of these settings"));
  if (count == 0) return differs_->setText(tr("same settings as %1").arg(other_letter_));
  differs_->setText(count == 1 ? tr("differs from %1: %2").arg(other_letter_, text(field(changes[0].key).label))
                               : tr("differs from %2 in %1 settings").arg(count).arg(other_letter_));
  differs_->setToolTip(tr("Against %1, the shown run: %2. Dashed: the value of %1.")
                           .arg(other_letter_, changes_between(*other_, choices_->spec(), kAllChanges)));
}

QString SetupPanel::executionNote() const {
  const auto in_execution = [](const std::vector<FieldChange>& changes) {
    return std::count_if(changes.begin(), changes.end(),
                         [](const FieldChange& c) { return field(c.key).group == "Execution"; });
  };
  if (other_) {
    const auto count = in_execution(differences());
    return count == 0   ? tr("same as %1").arg(other_letter_)
           : count == 1 ? tr("1 differs from %1").arg(other_letter_)
                        : tr("%1 differ from %2").arg(count).arg(other_letter_);
  }
  if (const auto count = in_execution(diff(choices_->preset(), choices_->spec())); count > 0)
    return tr("%1 changed").arg(count);
  return choices_->preset().name.empty() ? tr("defaults") : tr("as the preset");
}

void SetupPanel::refreshFooter() {
  const auto waiting = pending();
  const auto fixed = fixedChange();
  apply_->setEnabled(!waiting.empty() || fixed);
  stops_ = stops_ && fixed;
  const QString anew = stops_ ? tr("Stop it, train anew") : tr("Train anew…");
  apply_->setText(fixed ? anew : tr("Apply"));
  for (FieldRow* row : rows_) row->setProblem({});
  if (!running_) return refreshVerdict();
  if (stops_)
    say(tr("This stops the run in training, which is kept as far as it came."), false);
  else if (fixed)
    say(tr("%1 cannot change while a run trains. Train anew stops this run and starts one with all settings here.")
            .arg(QString::fromUtf8(field(fixed->key).label.data())),
        false);
  else if (!waiting.empty())
    say(tr("Changes apply at the next step"), false);
  else
    say(tr("Same as the training run"), false);
}

// The field shows the problem in words. The footer says that something is wrong, or what the run needs.
void SetupPanel::refreshVerdict() {
  const Choices::Verdict verdict = choices_->verdict();
  if (!verdict.problem.empty()) {
    FieldRow* at = row(verdict.key);
    at->setProblem(QString::fromStdString(verdict.problem));
    sections_[text(at->field().group)]->setOpen(true);
    return say(tr("Cannot train: %1: %2").arg(text(at->field().label), QString::fromStdString(verdict.problem)), true);
  }
  if (verdict.needed_bytes == 0) return say(tr("Ready to train"), false);
  say((verdict.with_data ? tr("Needs %1 with data and weights; %2 are free") : tr("Needs %1 plus the data; %2 are free"))
          .arg(bytes_text(static_cast<double>(verdict.needed_bytes)), bytes_text(static_cast<double>(verdict.free_bytes))),
      false);
}

std::vector<FieldChange> SetupPanel::pending() const {
  std::vector<FieldChange> waiting;
  if (!running_) return waiting;
  for (const FieldChange& change : diff(*running_, choices_->spec()))
    if (ws::field(change.key).live) waiting.push_back(change);
  return waiting;
}

// Returns the first change that cannot be made during a run.
std::optional<FieldChange> SetupPanel::fixedChange() const {
  if (!running_) return std::nullopt;
  for (const FieldChange& change : diff(*running_, choices_->spec()))
    if (!ws::field(change.key).live) return change;
  return std::nullopt;
}

void SetupPanel::applyPending() {
  if (fixedChange()) {
    if (std::exchange(stops_, !stops_)) return emit anewWanted();
    return refreshFooter();  // the second click stops the run
  }
  for (const FieldChange& change : pending())
    emit apply(QString::fromStdString(change.key), QString::fromStdString(change.to));
}

void SetupPanel::say(const QString& message, bool problem) {
  footer_->setText(message);
  QPalette palette = footer_->palette();
  palette.setColor(QPalette::WindowText, problem ? theme().worse : theme().secondary);
  footer_->setPalette(palette);
  footer_->setToolTip(message);
}

QString SetupPanel::message() const { return footer_->text(); }

}  // namespace ws::app
