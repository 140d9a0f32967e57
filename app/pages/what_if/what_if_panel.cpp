#include "app/pages/what_if/what_if_panel.h"

#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/core/insights/predicted_savings.h"
#include "app/pages/what_if/proofs_pane.h"
#include "app/pages/what_if/step_path_view.h"
#include "app/pages/what_if/step_pictures.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/empty_words.h"
#include "app/widgets/headlined.h"
#include "app/widgets/pane.h"
#include "app/widgets/theme.h"
#include "app/workspace/compared_live_run.h"
#include "datasets/dataset.h"
#include "engine/devices/devices.h"
#include "profiling/base/failure.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

QString less_text(double us) { return us < 0 ? QObject::tr("%1 more").arg(step_time_text(-us)) : QObject::tr("%1 less").arg(step_time_text(us)); }

QLabel* label(QWidget* parent, int px, int weight = 400) {
  auto* made = new QLabel(parent);
  made->setFont(ui_font(px, weight));
  made->setWordWrap(true);
  made->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return made;
}

// The module of this run that would help most, else its op; empty without one.
QString named_work(const std::optional<prof::WhatIf>& result) {
  for (const prof::GroupKind kind : {prof::GroupKind::Module, prof::GroupKind::Op}) {
    if (!result) break;
    const auto found = std::ranges::find_if(result->rows, [&](const prof::HelpRow& row) { return row.kind == kind && !row.name.starts_with("cuda"); });
    if (found != result->rows.end()) return text(found->name);
  }
  return {};
}

// Rows of one kind do not contain each other. Rows of two kinds do: a module has launch calls. A row that saves under a thousandth
// of the step helps nobody.
std::vector<prof::HelpRow> rows_of(const std::optional<prof::WhatIf>& result, prof::GroupKind kind) {
  constexpr double kLeast = 1e-3;
  if (!result) return {};
  std::vector<prof::HelpRow> rows = result->edits.empty() ? result->rows : result->rows_after;
  std::erase_if(rows, [&](const prof::HelpRow& row) { return row.kind != kind || row.gain_us < kLeast * result->measured_us.value; });
  return rows;
}

QString list_name(prof::GroupKind kind) {
  switch (kind) {
    case prof::GroupKind::Cause:
      return QObject::tr("By cause");
    case prof::GroupKind::Module:
      return QObject::tr("By module");
    case prof::GroupKind::Line:
      return QObject::tr("By line");
    case prof::GroupKind::Op:
      break;
  }
  return QObject::tr("By op");
}

// `step_us`: chooses the unit. `remedies`: one may say what the allocator's calls do.
Table parts_table(const std::vector<prof::HelpRow>& rows, double step_us, const std::vector<Insight>& remedies) {
  Table table;
  using Kind = Table::Kind;
  const StepUnit unit(step_us);
  table.columns = {{.key = "name", .name = "what", .kind = Kind::Text, .tip = "what the step does"},
                   {.key = "now_us", .name = "own time", .unit = unit.name(), .kind = Kind::Time, .tip = std::string("its work in the median one of the replayed steps, without waits; threads together. The split counts other steps, and only what no other work hides. ") + prof::kOnlyWaits},
                   {.key = "one_us_less_saves", .name = "1 µs less saves", .decimals = 2, .tip = "what a step saves for each µs that this takes less: 1 on the critical path, 0 beside it"},
                   {.key = "saved_if_free_us", .name = "a step saves", .unit = unit.name(), .kind = Kind::Time, .tip = std::string(prof::kUpperLimit) + " " + prof::kSavesMore}};
  const bool ranks = std::ranges::any_of(rows, [](const prof::HelpRow& row) { return row.rank >= 0; });
  const auto calls = std::ranges::find_if(remedies, [](const Insight& one) { return one.calls_us > 0; });
  if (ranks) table.columns.push_back({.key = "rank", .name = "rank", .kind = Kind::Count, .tip = "the rank that has most of it: the own time is of this rank"});
  for (const prof::HelpRow& row : rows) {
    Table::Row cells{{row.name, row.only_waits() ? Table::Cell() : unit.cell(row.now_us), row.slope(), unit.cell(row.gain_us)}};
    if (ranks) cells.cells.push_back(row.only_waits() ? Table::Cell() : Table::Cell(row.rank));
    if (calls != remedies.end() && row.kind == prof::GroupKind::Cause && row.name == prof::path_cause_name({prof::PathCause::AllocatorCalls}) && !calls_text(*calls).empty())
      cells.cells[0].tip = calls_text(*calls) + ".";
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

WhatIfPanel::WhatIfPanel(QWidget* parent) : QWidget(parent) {
  build();
  soon_.setSingleShot(true), soon_.setInterval(1500);
  connect(&soon_, &QTimer::timeout, this, [this] {
    if (isVisible()) refresh();
  });
  fill();
}

void WhatIfPanel::build() {
  // Left: what can be changed, and what is. Right: what it does.
  auto* columns = new QSplitter(Qt::Horizontal, this);
  auto *left = new QSplitter(Qt::Vertical, columns), *right = new QSplitter(Qt::Vertical, columns);
  step_pane_ = new Pane(tr("The step"), right);
  body_ = new Headlined(step_pane_);
  view_ = new StepPathView(body_);
  body_->setPicture(view_);
  step_pane_->setBody(body_);
  auto* below = new QSplitter(Qt::Horizontal, right);
  left->addWidget(buildEdits());
  left->addWidget(buildHelp());
  below->addWidget(buildParts());
  below->addWidget(buildProofs());
  for (Pane* pane : {edits_pane_, step_pane_, help_pane_, parts_pane_}) pane->legend()->hide();
  for (QSplitter* splitter : {columns, left, right, below}) splitter->setChildrenCollapsible(false);
  columns->setStretchFactor(1, 1), below->setStretchFactor(0, 1);
  left->setMinimumWidth(280), parts_pane_->setMinimumWidth(240), proofs_->setMinimumWidth(240);  // the first layout may be narrow
  columns->setSizes({360, 800}), left->setSizes({260, 340}), below->setSizes({560, 300}), right->setSizes({380, 260});
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(columns);
  connect(view_, &StepPathView::barChosen, this, [this](const QString& name) { input_->setText(name + QStringLiteral(" /2")); input_->setFocus(); });
  connect(&advice_, &RunAdvice::changed, this, [this] {
    if (!isVisible()) return;
    spans_ = 0;
    refresh();
  });
}

QWidget* WhatIfPanel::buildEdits() {
  edits_pane_ = new Pane(tr("Edits"), this);
  auto* body = new QWidget(edits_pane_);
  list_ = new QListWidget(body);
  list_->setAccessibleName(tr("Edits of the step"));
  list_->installEventFilter(this);
  examples_ = new EmptyWords(list_, {});
  input_ = new QLineEdit(body);
  input_->setToolTip(tr("An edit is one of: %1").arg(QString::fromUtf8(prof::kEditForms)));
  input_->setAccessibleName(tr("New edit"));
  together_ = label(body, 12), why_not_ = label(body, 11);
  prove_ = new QPushButton(tr("Check it"), body);
  prove_->setToolTip(tr("Trains with the choices now and with the choices that do the edits, in turn, and compares the measured step with the prediction."));
  clear_ = new QPushButton(tr("Clear"), body);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(prove_), buttons->addWidget(clear_);
  auto* column = new QVBoxLayout(body);
  for (QWidget* widget : std::initializer_list<QWidget*>{input_, list_, together_}) column->addWidget(widget);
  column->addLayout(buttons);
  column->addWidget(why_not_);
  edits_pane_->setBody(body);
  connect(prove_, &QPushButton::clicked, this, &WhatIfPanel::prove);
  connect(clear_, &QPushButton::clicked, this, &WhatIfPanel::clearEdits);
  connect(input_, &QLineEdit::returnPressed, this, [this] {
    if (addEdit(input_->text())) input_->clear();
  });
  return edits_pane_;
}

namespace {

// A table with a note below it.
QLabel* put_with_note(Pane* pane, QTableView* table) {
  auto* body = new QWidget(pane);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0), column->setSpacing(0);
  table->setParent(body);
  column->addWidget(table, 1);
  QLabel* note = label(body, 11);
  note->setForegroundRole(QPalette::PlaceholderText);
  note->setContentsMargins(10, 3, 10, 5);
  column->addWidget(note);
  pane->setBody(body);
  return note;
}

}  // namespace

QWidget* WhatIfPanel::buildHelp() {
  help_pane_ = new Pane(tr("Advice"), this);
  help_table_ = table_view(help_pane_, help_model_, help_sorter_, tr("Advice"));
  help_table_->viewport()->installEventFilter(this);
  help_note_ = put_with_note(help_pane_, help_table_);
  connect(help_table_, &QTableView::activated, this, [this](const QModelIndex& index) { addRemedy(help_sorter_.mapToSource(index).row()); });
  return help_pane_;
}

QWidget* WhatIfPanel::buildParts() {
  parts_pane_ = new Pane(tr("If a part took no time"), this);
  parts_table_ = table_view(parts_pane_, parts_model_, parts_sorter_, tr("If a part took no time"));
  parts_table_->viewport()->installEventFilter(this);
  parts_note_ = put_with_note(parts_pane_, parts_table_);
  kind_button_ = option_button(tr("What the rows are"), parts_pane_);
  auto* kinds = new QMenu(kind_button_);
  for (const prof::GroupKind kind : {prof::GroupKind::Cause, prof::GroupKind::Module, prof::GroupKind::Op, prof::GroupKind::Line})
    connect(kinds->addAction(list_name(kind)), &QAction::triggered, this, [this, kind] {
      kind_ = kind;
      fillTables();
    });
  kind_button_->setMenu(kinds);
  kind_button_->setText(list_name(kind_));
  parts_pane_->addOption(kind_button_);
  connect(parts_table_, &QTableView::activated, this, [this](const QModelIndex& index) {
    const int row = parts_sorter_.mapToSource(index).row();
    addEdit(text(prof::edit_of(rows_of(result_, kind_)[static_cast<size_t>(row)])));
  });
  return parts_pane_;
}

QWidget* WhatIfPanel::buildProofs() {
  proofs_ = new ProofsPane(this);
  proof_ = label(proofs_, 13), quote_ = label(proofs_, 11);
  proofs_->addNote(proof_);
  proofs_->addNote(quote_);
  return proofs_;
}

QString WhatIfPanel::headline() const { return body_->headline(); }

void WhatIfPanel::setRun(Run* run) {
  if (run_ != run) {
    if (run_) disconnect(run_, nullptr, this, nullptr);
    run_ = run, spans_ = 0, result_.reset();
    proof_->clear();
    if (run)
      connect(run, &Run::changed, this, [this] {
        if (!soon_.isActive()) soon_.start();
      });
  }
  if (isVisible()) refresh();
}

void WhatIfPanel::setTraining(bool busy) {
  training_ = busy;
  fillPrediction();
}

void WhatIfPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  readProofs();
  refresh();
}

bool WhatIfPanel::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) fitTables();
  if (watched == list_ && event->type() == QEvent::KeyPress && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Delete) {
    removeEdit(list_->currentRow());
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

namespace {

struct Example {
  std::vector<PathPicture> pictures;  // measured, with the advice
  prof::WhatIf then;
  QString name;
};

// Without an edit, the advice that would help most shows what the page does.
std::optional<Example> example_of(const prof::StepCauses& causes, const prof::Trace& trace, const std::vector<Insight>& remedies) {
  const auto most = std::ranges::find_if(remedies, [](const Insight& one) { return one.saves_us.value > 0; });
  if (most == remedies.end()) return std::nullopt;
  const std::vector<prof::Edit> edits = prof::parse_edits(most->edits);
  const prof::WhatIf then = prof::what_if(causes, trace, edits, 0);
  const QString action = text(action_of(*most));
  std::vector<PathPicture> pictures = step_pictures(causes, trace, edits, action, then, true);
  return Example{std::move(pictures), then, action};
}

// How the saving relates to the split of the step, if an advice has the same edits.
QString relation_of(const std::vector<Insight>& remedies, const std::string& edits) {
  const auto same = std::ranges::find_if(remedies, [&](const Insight& one) { return one.saves_us.known() && one.edits == edits; });
  const std::string relation = same == remedies.end() ? std::string() : relation_text(*same);
  return relation.empty() ? QString() : QObject::tr("It saves %1: %2.").arg(text(prof::interval_text(same->saves_us)), text(relation));
}

QString change_of(const prof::WhatIf& then) {
  const double before = then.measured_us.value, after = then.predicted_us.value;
  const QString takes = text(prof::interval_text(then.predicted_us));
  return after > 0 && after < before ? QObject::tr("%1, %2× faster").arg(takes, fixed_text(before / after, 2)) : takes;
}

// The predicted step, in one sentence.
QString headline_of(const prof::WhatIf& result, const std::optional<Example>& example) {
  const QString now = QObject::tr("A step takes %1").arg(text(prof::interval_text(result.measured_us)));
  if (!result.edits.empty()) return QObject::tr("%1. With the edits it would take %2").arg(now, change_of(result));
  return example ? QObject::tr("%1. For example, with “%2” it would take %3").arg(now, example->name, change_of(example->then)) : now;
}

// "56 % of it is “matrix product”"; empty without a path.
QString most_of(const std::vector<prof::PathShare>& path, double step_us) {
  return path.empty() || !(step_us > 0) ? QString() : QObject::tr("%1 % of it is “%2”").arg(100 * path.front().path_us / step_us, 0, 'f', 0).arg(text(path.front().name));
}

QString path_note_of(const prof::WhatIf& result, const std::optional<Example>& example) {
  const prof::WhatIf& then = example ? example->then : result;
  QStringList parts{most_of(result.path, result.measured_us.value), most_of(then.path_after, then.predicted_us.value)};
  if (!parts[1].isEmpty()) parts[1].prepend(QObject::tr("in the predicted step, "));
  parts.removeAll(QString());
  return QObject::tr("Underlined: on the [critical path], which decides how long a step takes") + (parts.isEmpty() ? QString() : QStringLiteral(". ") + parts.join(QStringLiteral("; "))) + QStringLiteral(".");
}

}  // namespace

// Edits of another run may select nothing in this one: they are left out, and the sentence says so.
void WhatIfPanel::refresh() {
  const size_t spans = run_ ? run_->trace.span_count() : 0;
  if (!run_ || spans == 0) {
    result_.reset(), remedies_.clear();
    return fill();
  }
  if (result_ && spans == spans_) return;
  spans_ = spans;
  takeAdvice();
  try {
    compute(edits_);
  } catch (const std::exception& problem) {
    result_.reset();
    if (!edits_.empty()) emit said(QString::fromUtf8(problem.what()), true);
    edits_.clear();
    try {
      compute({});
    } catch (const std::exception& none) {
      body_->showReason(QString::fromUtf8(none.what()));
    }
  }
  fill();
}

void WhatIfPanel::takeAdvice() {
  advice_.setRun(run_, true);
  const auto [facts, found] = advice_.found(true);
  facts_step_us_ = facts.step_us, remedies_ = app::remedies(found, facts_step_us_);
}

void WhatIfPanel::compute(const QStringList& edits) {
  const QString written = edits.join(QStringLiteral("; "));
  const std::vector<prof::Edit> parsed = edits.empty() ? std::vector<prof::Edit>{} : prof::parse_edits(written.toStdString());
  const prof::StepCauses causes = causes_of(*run_);
  const prof::WhatIf result = prof::what_if(causes, run_->trace, parsed);
  const std::optional<Example> example = parsed.empty() ? example_of(causes, run_->trace, remedies_) : std::nullopt;
  std::vector<PathPicture> pictures = example ? example->pictures : step_pictures(causes, run_->trace, parsed, written, result);
  headline_ = headline_of(result, example), path_note_ = path_note_of(result, example);
  relation_ = relation_of(remedies_, written.toStdString());
  view_->setPictures(std::move(pictures));
  result_ = result, edits_ = edits;
}

bool WhatIfPanel::addEdit(const QString& edit) {
  if (!run_) return false;
  try {
    QStringList all = edits_;
    for (const prof::Edit& one : prof::parse_edits(edit.toStdString())) all << text(one.text);
    compute(all);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
    return false;
  }
  fill();
  return true;
}

void WhatIfPanel::addRemedy(int row) {
  const Insight& chosen = remedies_[static_cast<size_t>(row)];
  if (chosen.edits.empty()) return emit said(tr("No edit of the replay does this. The page Advice says how to try it."), false);
  addEdit(text(chosen.edits));
}

void WhatIfPanel::removeEdit(int index) {
  if (index < 0 || index >= edits_.size() || !run_) return;
  QStringList left = edits_;
  left.removeAt(index);
  try {
    compute(left);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
  fill();
}

void WhatIfPanel::clearEdits() {
  edits_.clear(), spans_ = 0, result_.reset();
  proof_->clear();
  refresh();
}

void WhatIfPanel::fill() {
  fillEdits();
  fillPrediction();
  fillTables();
  fillQuote();
  if (!result_) {
    view_->setPictures({});
    if (!run_ || run_->trace.span_count() == 0) body_->showReason(run_ ? tr("This run has no trace. Train with the trace level kernels or full.") : tr("Click a run that was traced."));
    return;
  }
  const prof::WhatIf& r = *result_;
  const QString steps = r.whole_trace ? tr("the whole trace") : tr("median step of %1").arg(text(prof::which_steps(r.which)));
  QStringList notes;
  if (!relation_.isEmpty()) notes << relation_;
  notes << path_note_;
  if (r.unexplained_us > 0.01 * r.measured_us.value) notes << tr("For %1 of a step, the records do not show what the GPU waits for.").arg(step_time_text(r.unexplained_us));
  for (const std::string& warning : r.warnings) notes << text(warning);
  body_->showResult(with_units(headline_ + QStringLiteral(".")), notes.join('\n'));
  step_pane_->setTitle(tr("The step"), steps, steps);
}

void WhatIfPanel::showExamples() {
  const QString work = named_work(result_);
  examples_->setText(tr("The page predicts a step with your edits, such as\nno sync") +
                     (work.isEmpty() ? QString() : tr("\n%1 /2 (half the time of %1)").arg(work)));
  input_->setPlaceholderText(work.isEmpty() ? tr("no sync") : tr("no sync; %1 /2").arg(work));
}

void WhatIfPanel::fillEdits() {
  showExamples();
  list_->clear();
  clear_->setEnabled(!edits_.isEmpty());
  for (qsizetype i = 0; i < edits_.size(); ++i) {
    const bool known = result_ && static_cast<size_t>(i) < result_->edits.size();
    const prof::EditPart part = known ? result_->edits[static_cast<size_t>(i)] : prof::EditPart();
    list_->addItem(edits_[i] + (known ? tr("\n%1 · alone %2").arg(less_text(part.mean_us), less_text(part.alone_us)) : QString()));
  }
  if (!result_ || result_->edits.empty()) return together_->setText(tr("Write an edit, or double-click a row below. Del removes an edit."));
  double alone = 0;
  for (const prof::EditPart& part : result_->edits) alone += part.alone_us;
  const double together = result_->saves_us.value;
  QStringList words{tr("Together %1 per step").arg(less_text(together))};
  if (result_->edits.size() > 1) words << (alone > together ? tr("alone they would save %1 more: that much they share") : tr("alone they would save %1 less: they help each other")).arg(step_time_text(std::abs(alone - together)));
  together_->setText(words.join(QStringLiteral("; ")) + QStringLiteral("."));
}

QString WhatIfPanel::whyNotProved() const {
  if (!result_ || edits_.isEmpty()) return tr("Add an edit first.");
  if (!run_->hasChoices()) return tr("Only trainings of this program can be checked here.");
  if (run_->elsewhere) return tr("The run was trained by another program.");
  if (training_) return tr("Stop the training first (Run › Stop).");
  try {
    const ChosenEdits chosen = choices_of(run_->spec, prof::parse_edits(edits_.join("; ").toStdString()), device_info().cuda);
    return text(chosen.refusal);
  } catch (const std::exception& problem) {
    return QString::fromUtf8(problem.what());
  }
}

void WhatIfPanel::fillPrediction() {
  proof_->setVisible(!proof_->text().isEmpty());
  const QString why = whyNotProved();
  prove_->setEnabled(why.isEmpty() && !job_.running());
  why_not_->setText(job_.running() ? tr("Trains both in turn…") : why);
  why_not_->setVisible(!edits_.isEmpty() && !why_not_->text().isEmpty());
}

void WhatIfPanel::fillTables() {
  help_model_.setTable(result_ ? with_columns(remedy_table(remedies_, facts_step_us_), {"action", "now_us", "saves_us"}) : Table{});
  help_note_->setText(text(predictions_note(remedies_)));
  if (result_ && remedies_.empty()) help_note_->setText(tr("No advice makes this step shorter."));
  help_note_->setVisible(!help_note_->text().isEmpty());
  help_pane_->setTitle(tr("Advice"), tr("as on the page Advice · double-click: add as an edit"), tr("double-click: add as an edit"));
  const std::vector<prof::HelpRow> rows = rows_of(result_, kind_);
  parts_model_.setTable(result_ ? parts_table(rows, result_->measured_us.value, remedies_) : Table{});
  kind_button_->setText(list_name(kind_));
  for (int i = 0; const prof::GroupKind kind : {prof::GroupKind::Cause, prof::GroupKind::Module, prof::GroupKind::Op, prof::GroupKind::Line})
    kind_button_->menu()->actions()[i++]->setEnabled(!rows_of(result_, kind).empty());
  parts_note_->setText(text(prof::kUpperLimit));
  parts_note_->setVisible(!rows.empty());
  parts_pane_->setTitle(tr("If a part took no time"), result_ && !result_->edits.empty() ? tr("after the edits") : QString());
  fitTables();
}

// The names matter most: a narrow table leaves out what the tooltips of the rows say, too.
void WhatIfPanel::fitTables() {
  constexpr int kAllColumns = 430, kLess = 2, kWithWaits = 380, kWaits = 1;
  help_table_->setColumnHidden(kWaits, help_table_->viewport()->width() < kWithWaits);
  parts_table_->setColumnHidden(kLess, parts_table_->viewport()->width() < kAllColumns);
  fit_columns(*parts_table_, parts_model_);
  fit_columns(*help_table_, help_model_);
}

void WhatIfPanel::prove() {
  if (!prove_->isEnabled()) return;
  const RunSpec spec = run_->spec;
  const std::string written = edits_.join("; ").toStdString();
  job_.start(
      [this, spec, written](const Job::Side& side) {
        const Proof proof = app::prove(spec, written, data::load(spec.data));
        keep(proof, proofs_file());
        side.post([this, proof] { showProof(proof); });
      },
      [this](const QString& problem) {
        if (!problem.isEmpty()) emit said(problem, true);
        fillPrediction();
      });
  fillPrediction();
}

void WhatIfPanel::showProof(const Proof& proof) {
  proof_->setText(tr("measured %1, predicted %2: %3 % off (%4)")
                      .arg(step_time_text(proof.after_us.value), step_time_text(proof.predicted_us.value), fixed_text(100 * proof.error(), 1), text(proof.changes)));
  readProofs();
  proof_->show();
  proofs_->mark(proof);
  fillTables();
  fillQuote();
}

void WhatIfPanel::readProofs() {
  proved_ = proved_predictions();
  proofs_->setProofs(proved_);
}

// Without edits, the note of the advice says it.
void WhatIfPanel::fillQuote() {
  const bool any = result_ && !edits_.isEmpty();
  quote_->setText(any ? text(proved_.quote(result_->saves_us, result_->predicted_us.value, kind_of_edits(edits_.join("; ").toStdString()))) : QString());
  quote_->setVisible(any);
}

}  // namespace ws::app
