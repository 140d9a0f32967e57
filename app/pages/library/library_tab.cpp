#include "app/pages/library/library_tab.h"

#include <QHBoxLayout>
#include <QItemSelection>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "app/pages/library/library_model.h"
#include "app/pages/library/library_table.h"
#include "app/pages/library/run_actions.h"
#include "app/widgets/labels.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/library_jobs.h"
#include "app/workspace/shipped_runs.h"

namespace ws::app {
LibraryTab::LibraryTab(RunLibrary* library, LibraryJobs* jobs, QWidget* parent)
    : QWidget(parent), library_(library), jobs_(jobs), filter_(new LibraryFilter(new LibraryModel(library, this), this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* row = new QSplitter(Qt::Horizontal, this);
  row->setHandleWidth(5);
  row->setChildrenCollapsible(false);
  row->addWidget(buildTable());
  row->addWidget(side_ = buildSide());
  row->setStretchFactor(0, 1);
  row->setSizes({1000, 250});
  column->addWidget(row, 1);
  column->addWidget(footer_ = buildFooter());
  connect(library_, &RunLibrary::changed, this, &LibraryTab::refresh);
  connect(library_, &RunLibrary::tickedChanged, this, &LibraryTab::followCurrent);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
    showChosen();
    if (noted_ && !following_) library_->selection().select(noted_->handle);
  });
  refresh();
}

// One selected row is the current run. Several may be selected, to tag, export or delete them.
void LibraryTab::followCurrent() {
  const RunId current = library_->selection().current();
  if (std::exchange(followed_, current) != current) select({current});
}

void LibraryTab::select(const std::vector<RunId>& runs) {
  QItemSelection rows;
  for (int row = 0; row < filter_->rowCount(); ++row)
    if (const Run* run = filter_->run(filter_->index(row, 0)); run && std::ranges::find(runs, run->handle) != runs.end())
      rows.select(filter_->index(row, 0), filter_->index(row, filter_->columnCount() - 1));
  following_ = true;
  table_->selectionModel()->select(rows, QItemSelectionModel::ClearAndSelect);
  following_ = false;
}

QWidget* LibraryTab::buildTable() {
  auto* pane = new Pane(tr("All runs"), this);
  pane->legend()->hide();
  count_ = new QLabel(pane);
  count_->setForegroundRole(QPalette::PlaceholderText);
  pane->addOption(count_);
  pane->addOption(buildBar());
  auto* table = new LibraryTable(filter_, pane);
  table_ = table;
  empty_ = put_table(*pane, table_);
  connect(table_, &QTableView::customContextMenuRequested, this, &LibraryTab::contextMenu);
  connect(table, &LibraryTable::tickClicked, this, [this](const QModelIndex& index) {
    if (Run* run = filter_->run(index)) library_->setTicked(run, run->slot < 0);
  });
  connect(table_, &QTableView::doubleClicked, this, [this](const QModelIndex& index) {
    if (Run* run = filter_->run(index)) emit opened(run);
  });
  auto* remove = new QAction(tr("Delete the selected runs"), table_);
  remove->setShortcut(QKeySequence::Delete);
  remove->setShortcutContext(Qt::WidgetShortcut);
  connect(remove, &QAction::triggered, this, &LibraryTab::removeChosen);
  table_->addAction(remove);
  return pane;
}

QWidget* LibraryTab::buildBar() {
  auto* bar = new QWidget(this);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(6);
  auto* find = new QLineEdit(bar);
  find->setPlaceholderText(tr("Search names, settings, tags"));
  find->setToolTip(tr("All words must match. tag:… status:… preset:… device:… search one column."));
  find->setAccessibleName(tr("Search the library"));
  find->setClearButtonEnabled(true);
  find->setMinimumWidth(210);
  connect(find, &QLineEdit::textChanged, this, [this](const QString& text) {
    filter_->setText(text);
    refresh();
  });
  status_ = option_button(tr("Status"), bar);
  tag_ = option_button(tr("Tag"), bar);
  for (QPushButton* button : {status_, tag_}) button->setMenu(new QMenu(button));
  connect(status_->menu(), &QMenu::aboutToShow, this, &LibraryTab::fillFilters);
  connect(tag_->menu(), &QMenu::aboutToShow, this, &LibraryTab::fillFilters);
  status_->setText(tr("Any status"));
  tag_->setText(tr("Any tag"));
  auto* import = small_button(tr("Import…"), bar);
  connect(import, &QPushButton::clicked, this, [this] { ask_import(this, *jobs_); });
  for (QWidget* each : std::initializer_list<QWidget*>{find, status_, tag_, import}) row->addWidget(each);
  return bar;
}

void LibraryTab::fillFilters() {
  const auto fill = [](QPushButton* button, const QString& any, const QStringList& values, auto chosen) {
    button->menu()->clear();
    for (const QString& value : QStringList{QString()} + values) {
      const QString text = value.isEmpty() ? any : value;
      button->menu()->addAction(text, button, [button, text, value, chosen] {
        button->setText(text);
        chosen(value);
      });
    }
  };
  QStringList states;
  for (const Run* run : library_->runs())
    if (!states.contains(status_text(*run))) states << status_text(*run);
  states.sort();
  fill(status_, tr("Any status"), states, [this](const QString& value) { filter_->setStatus(value); refresh(); });
  fill(tag_, tr("Any tag"), library_->allTags(), [this](const QString& value) { filter_->setTag(value); refresh(); });
}

QWidget* LibraryTab::buildSide() {
  auto* panel = new QWidget(this);
  style_ground(*panel, "panel");
  panel->setMinimumWidth(220);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(12, 10, 12, 10);
  column->setSpacing(6);
  title_ = label(panel, ui_font(12.5, 600));
  facts_ = label(panel, ui_font(11), {.quiet = true});
  name_ = new QLineEdit(panel);
  tags_ = new QLineEdit(panel);
  tags_->setPlaceholderText(tr("Tags, separated by commas"));
  note_ = new QPlainTextEdit(panel);
  note_->setPlaceholderText(tr("Notes"));
  name_->setAccessibleName(tr("Name of the run"));
  tags_->setAccessibleName(tr("Tags of the run"));
  note_->setAccessibleName(tr("Notes on the run"));
  again_ = new QPushButton(tr("Train again with one change"), panel);
  again_->setMenu(new QMenu(again_));
  again_->setProperty("menu", true);
  torch_ = new QPushButton(tr("Run the same in PyTorch"), panel);
  export_ = new QPushButton(tr("Export…"), panel);
  delete_ = new QPushButton(tr("Delete"), panel);
  auto* pair = new QHBoxLayout;
  pair->addWidget(export_);
  pair->addWidget(delete_);
  for (QWidget* each : std::initializer_list<QWidget*>{title_, facts_, name_, tags_}) column->addWidget(each);
  note_->setMaximumHeight(180);
  column->addWidget(note_, 1);
  column->addStretch(1);
  column->addWidget(again_);
  column->addWidget(torch_);
  column->addLayout(pair);
  connectSide();
  return panel;
}

void LibraryTab::connectSide() {
  connect(name_, &QLineEdit::editingFinished, this, [this] {
    if (noted_) library_->rename(noted_, name_->text());
  });
  connect(tags_, &QLineEdit::editingFinished, this, [this] {
    if (noted_) library_->setTags(noted_, tags_->text().split(','));
  });
  connect(note_, &QPlainTextEdit::textChanged, this, [this] { note_->setProperty("touched", true); });
  connect(again_->menu(), &QMenu::aboutToShow, this, [this] {
    again_->menu()->clear();
    if (noted_)
      fill_change_menu(*again_->menu(), *noted_,
                       [this](const RunSpec& spec, const QString& title) { emit trainWanted(spec, title); });
  });
  connect(torch_, &QPushButton::clicked, this, [this] {
    if (noted_) emit torchWanted(noted_->spec);
  });
  connect(export_, &QPushButton::clicked, this, [this] { ask_export(this, *jobs_, chosen()); });
  connect(delete_, &QPushButton::clicked, this, &LibraryTab::removeChosen);
}

QWidget* LibraryTab::buildFooter() {
  auto* footer = new QWidget(this);
  style_ground(*footer, "footer");
  auto* row = new QHBoxLayout(footer);
  row->setContentsMargins(10, 5, 10, 5);
  removed_ = new QLabel(footer);
  undo_ = small_button(tr("Undo"), footer);
  undo_->setIcon(theme_icon("undo"));
  connect(undo_, &QPushButton::clicked, this, &LibraryTab::undo);
  row->addWidget(removed_);
  row->addWidget(undo_);
  row->addStretch(1);
  return footer;
}

void LibraryTab::resizeEvent(QResizeEvent*) { side_->setVisible(width() > 1240 || !chosen().empty()); }

std::vector<Run*> LibraryTab::chosen() const {
  std::vector<Run*> runs;
  for (const QModelIndex& index : table_->selectionModel()->selectedRows())
    if (Run* run = filter_->run(index)) runs.push_back(run);
  return runs;
}

void LibraryTab::keepNote() {
  const bool touched = note_->property("touched").toBool();
  note_->setProperty("touched", false);
  if (noted_ && touched) library_->setNote(noted_, note_->toPlainText());
}

// What was typed belongs to the run that was selected then.
void LibraryTab::keepTyped(Run* run) {
  const QString name = name_->text(), tags = tags_->text();
  const bool named = name_->isModified(), tagged = tags_->isModified();
  name_->setModified(false);
  tags_->setModified(false);
  if (named) library_->rename(run, name);
  if (tagged) library_->setTags(run, tags.split(','));
}

void LibraryTab::showChosen() {
  keepNote();
  const std::vector<Run*> runs = chosen();
  const QPointer<Run> before = std::exchange(noted_, runs.size() == 1 ? runs.front() : nullptr);
  const bool another = before != noted_;
  if (before && another && library_->byHandle(before->handle)) keepTyped(before);
  chosen_.clear();
  for (const Run* run : runs) chosen_.push_back(run->handle);
  for (QWidget* each : std::initializer_list<QWidget*>{name_, tags_, note_, again_, torch_}) each->setEnabled(noted_);
  side_->setVisible(!runs.empty() || width() > 1240);  // a narrow window keeps its width for the table
  export_->setEnabled(!runs.empty());
  delete_->setEnabled(!runs.empty());
  const QString several = runs.empty() ? tr("No run selected") : tr("%1 runs selected").arg(runs.size());
  title_->setText(noted_ ? tr("One run selected") : several);
  const QSignalBlocker quiet(note_);
  // Set only changed text, so that the user's typing position stays.
  const auto show = [another](QLineEdit* edit, const QString& text) {
    if (edit->text() != text && (another || !edit->hasFocus())) edit->setText(text), edit->setCursorPosition(0);
  };
  show(name_, noted_ ? noted_->title : QString());
  show(tags_, noted_ ? noted_->tags.join(", ") : QString());
  if (const QString note = noted_ ? noted_->note : QString(); note_->toPlainText() != note) note_->setPlainText(note);
  QStringList facts;
  if (noted_) {
    if (!noted_->shipped) facts << status_text(*noted_);
    if (!noted_->device.isEmpty()) facts << (noted_->shipped ? origin_text(*noted_) : noted_->device);
    if (const QString changes = changes_text(*noted_); !changes.isEmpty()) facts << tr("Changed: %1").arg(changes);
    if (noted_->summary && !noted_->summary->message.empty()) facts << QString::fromStdString(noted_->summary->message);
    if (noted_->origin == RunOrigin::Imported) again_->setEnabled(false), torch_->setEnabled(false);
  }
  facts_->setText(runs.empty() ? tr("Select a run to rename, tag, annotate or train it again.")
                               : facts.join("\n"));
}

void LibraryTab::removeChosen() {
  keepNote();
  noted_ = nullptr;
  for (Run* run : chosen()) library_->remove(run);
}

void LibraryTab::undo() {
  if (Run* run = library_->undoRemove()) emit said(tr("Brought back: %1").arg(run->title), false);
}

void LibraryTab::refresh() {
  const auto all = static_cast<int>(library_->runs().size());
  const QString count = filter_->rowCount() < all ? tr("%1 of %2 runs").arg(filter_->rowCount()).arg(all)
                        : all == 1                ? tr("1 run")
                                                  : tr("%1 runs").arg(all);
  count_->setText(count);
  table_->setVisible(filter_->rowCount() > 0), empty_->setVisible(filter_->rowCount() == 0);
  empty_->setText(all > 0 ? tr("No run matches the filter.")
                          : tr("No runs yet: press Train, or drop a run file or another tool's trace on the window."));
  footer_->setVisible(!library_->trash().empty());
  removed_->setText(tr("Deleted “%1”.").arg(library_->trash().lastTitle()));
  if (chosen().size() != chosen_.size()) select(std::vector(chosen_));  // the table was filled again
  showChosen();
}

void LibraryTab::contextMenu(const QPoint& at) {
  Run* run = filter_->run(table_->indexAt(at));
  if (!run) return;
  QMenu menu(this);
  menu.addAction(run->slot >= 0 ? tr("Untick") : tr("Tick"), this,
                 [this, run] { library_->setTicked(run, run->slot < 0); });
  menu.addAction(tr("Tick the selected only"), this, [this] { library_->tickOnly(chosen()); });
  menu.addSeparator();
  menu.addAction(tr("Rename…"), this, [this, run] { ask_title(this, *library_, run); });
  menu.addAction(tr("Tags…"), this, [this] { ask_tags(this, *library_, chosen()); });
  menu.addAction(tr("Notes…"), this, [this, run] { ask_note(this, *library_, run); });
  auto* change = menu.addMenu(tr("Train again with one change"));
  fill_change_menu(*change, *run, [this](const RunSpec& spec, const QString& title) { emit trainWanted(spec, title); });
  menu.addSeparator();
  menu.addAction(tr("Delete"), this, &LibraryTab::removeChosen);
  menu.exec(table_->viewport()->mapToGlobal(at));
}

}  // namespace ws::app
