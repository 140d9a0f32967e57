#include "app/pages/what_if/what_if_panel.h"

#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/core/insights/predicted_savings.h"
#include "app/core/proofs/proved_predictions.h"
#include "app/pages/what_if/step_path_view.h"
#include "app/pages/what_if/step_pictures.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/glossary.h"
#include "app/widgets/headlined.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/compared_live_run.h"
#include "datasets/dataset.h"
#include "engine/devices/devices.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

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

constexpr std::optional<prof::GroupKind> kKinds[] = {prof::GroupKind::Cause, prof::GroupKind::Module, prof::GroupKind::Op, prof::GroupKind::Line, std::nullopt};

// Rows of one kind do not contain each other. Rows of two kinds do: a module has launch calls. A row that saves under a thousandth
// of the step helps nobody.
std::vector<prof::HelpRow> rows_of(const std::optional<prof::WhatIf>& result, std::optional<prof::GroupKind> kind) {
  constexpr double kLeast = 1e-3;
  if (!result) return {};
  std::vector<prof::HelpRow> rows = result->edits.empty() ? result->rows : result->rows_after;
  std::erase_if(rows, [&](const prof::HelpRow& row) { return (kind && row.kind != *kind) || row.gain_us < kLeast * result->measured_us.value; });
  return rows;
}

QString list_name(std::optional<prof::GroupKind> kind) {
  if (!kind) return QObject::tr("All kinds");
  switch (*kind) {
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

// What the tooltip of a row says beside its saving.
std::string own_time_text(const prof::HelpRow& row, const std::vector<Insight>& remedies) {
  if (row.only_waits()) return "It has no work of its own in most steps: it only waits.";
  std::string text = "Own time " + time_text(row.now_us) + ", without waits. Each µs less saves " + fixed(row.slope(), 2) + " µs.";
  const auto calls = std::ranges::find_if(remedies, [](const Insight& one) { return one.calls_us > 0; });
  if (calls != remedies.end() && prof::edit_of(row) == calls->edits && !calls_text(*calls).empty()) text += "\n" + calls_text(*calls) + ".";
  return text;
}

// What the glossary says of a cause, on a line of its own.
std::string meaning_text(const prof::HelpRow& row) {
  const Word* word = row.kind == prof::GroupKind::Cause ? word_of(text(row.name)) : nullptr;
  return word ? "\n" + word->name.toStdString() + ": " + word->meaning.toStdString() : std::string();
}

// `remedies`: one may say what the allocator's calls do.
Table parts_table(const std::vector<prof::HelpRow>& rows, const prof::WhatIf& result, const std::vector<Insight>& remedies, bool with_kind) {
  Table table;
  using Kind = Table::Kind;
  const StepUnit unit(result.measured_us.value);
  table.columns = {{.key = "name", .name = "what", .kind = Kind::Text, .tip = "what the step does, with the rank that has most of it"},
                   {.key = "saved_if_free_us", .name = "saved per step", .unit = unit.name(), .kind = Kind::Time, .tip = "at most, if the part took no time"}};
  double most = 0;
  for (const prof::HelpRow& row : rows) most = std::max(most, row.gain_us);
  for (const prof::HelpRow& row : rows) {
    const std::string shown = prof::name_after(row, result) + prof::of_rank(row.rank);
    Table::Cell name((with_kind ? std::string(prof::group_kind_name(row.kind)) + " " : std::string()) + shown), saves = unit.cell(row.gain_us);
    name.tip = saves.tip = shown + "\n" + own_time_text(row, remedies) + meaning_text(row);
    const bool data = row.kind == prof::GroupKind::Cause && row.name == prof::path_cause_name({prof::PathCause::WaitsForData});
    saves.swatch = data ? kDataWaitSwatch : static_cast<int>(row.meaning), saves.bar = row.gain_us / most;
    table.rows.push_back({{name, saves}});
  }
  return table;
}

// An edit in words and as it is written, if there is space, and what a step takes more or less with it. The sum of several edits is bold
// and has no button.
class EditRow : public QWidget {
 public:
  EditRow(QString name, QString edit, QString change, QWidget* parent) : QWidget(parent), name_(std::move(name)), edit_(std::move(edit)), change_(std::move(change)), sum_(edit_.isEmpty()) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 4, 0);
    row->addStretch(1);
    remove = new QToolButton(this);
    remove->setText(QStringLiteral("×"));
    remove->setAutoRaise(true), remove->setFixedSize(kRemove, kRemove), remove->setFocusPolicy(Qt::TabFocus);
    remove->setToolTip(QObject::tr("Take this edit away")), remove->setAccessibleName(QObject::tr("Take away: %1").arg(name_));
    remove->setVisible(!sum_);
    setAccessibleName(name_ + ' ' + change_);
    row->addWidget(remove);
  }
  QToolButton* remove;

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setFont(ui_font(12, sum_ ? 600 : 400));
    painter.setPen(theme().text);
    const QRect box = rect().adjusted(4, 0, -kRemove - 10, 0);
    draw_number(painter, box, Qt::AlignRight | Qt::AlignVCenter, change_);
    const int left = box.width() - static_cast<int>(number_width(painter.font(), change_)) - 12;
    painter.drawText(box, Qt::AlignLeft | Qt::AlignVCenter, painter.fontMetrics().elidedText(name_, Qt::ElideMiddle, left));
    const int begin = painter.fontMetrics().horizontalAdvance(name_) + 10;
    painter.setFont(ui_font(11)), painter.setPen(theme().quiet);
    if (begin + painter.fontMetrics().horizontalAdvance(edit_) <= left) painter.drawText(box.adjusted(begin, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, edit_);
  }

 private:
  static constexpr int kRemove = 20;
  QString name_, edit_, change_;
  bool sum_;
};

QStringList texts_of(const std::string& edits) {
  QStringList texts;
  for (const prof::Edit& one : prof::parse_edits(edits)) texts << text(one.text);
  return texts;
}

std::string joined(const QStringList& edits) { return edits.join(QStringLiteral("; ")).toStdString(); }

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
  auto* left = new QSplitter(Qt::Vertical, columns);
  step_pane_ = new Pane(tr("The step"), columns);
  body_ = new Headlined(step_pane_);
  view_ = new StepPathView(body_);
  body_->setPicture(view_);
  step_pane_->setBody(body_);
  left->addWidget(buildEdits());
  left->addWidget(buildHelp());
  left->addWidget(buildParts());
  for (Pane* pane : {edits_pane_, step_pane_, help_pane_, parts_pane_}) pane->legend()->hide();
  for (QSplitter* splitter : {columns, left}) splitter->setChildrenCollapsible(false);
  columns->setStretchFactor(1, 1), left->setStretchFactor(2, 1);
  left->setMinimumWidth(280);  // the first layout may be narrow
  columns->setSizes({370, 800}), left->setSizes({226, 124, 260});
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
  list_->setFrameShape(QFrame::NoFrame);
  list_->installEventFilter(this);
  add_ = option_button(tr("Edits that this run allows"), body);
  add_->setText(tr("Add edit"));
  offers_ = new QMenu(add_);
  add_->setMenu(offers_);
  input_ = new QLineEdit(body);
  input_->setToolTip(tr("An edit is one of: %1").arg(QString::fromUtf8(prof::kEditForms)));
  input_->setAccessibleName(tr("New edit"));
  together_ = label(body, 11), proof_ = label(body, 11), why_not_ = label(body, 11);
  for (QLabel* quiet : {together_, why_not_}) quiet->setForegroundRole(QPalette::PlaceholderText);
  prove_ = new QPushButton(tr("Check it"), body);
  prove_->setToolTip(tr("Trains with the settings now and with the settings that do the edits, in turn, and compares the measured step with the prediction."));
  clear_ = new QPushButton(tr("Clear"), body);
  clear_->setProperty("small", true);
  edits_pane_->addOption(clear_);
  auto *write = new QHBoxLayout, *check = new QHBoxLayout;
  write->addWidget(add_), write->addWidget(input_, 1);
  check->addWidget(prove_), check->addWidget(why_not_, 1);
  auto* column = new QVBoxLayout(body);
  column->addLayout(write);
  column->addWidget(list_, 1);
  column->addWidget(together_);
  column->addLayout(check);
  column->addWidget(proof_);
  edits_pane_->setBody(body);
  connect(prove_, &QPushButton::clicked, this, &WhatIfPanel::prove);
  connect(clear_, &QPushButton::clicked, this, &WhatIfPanel::clearEdits);
  connect(offers_, &QMenu::aboutToShow, this, &WhatIfPanel::fillOffers);
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
  help_pane_ = new Pane(tr("Suggestions"), this);
  help_table_ = table_view(help_pane_, help_model_, help_sorter_, tr("Suggestions"));
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
  parts_note_->setToolTip(text(prof::kNotTheSplit));
  kind_button_ = option_button(tr("What the rows are"), parts_pane_);
  auto* kinds = new QMenu(kind_button_);
  for (const auto& kind : kKinds)
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

QString WhatIfPanel::headline() const { return body_->headline(); }
QString WhatIfPanel::notes() const { return body_->notes(); }

void WhatIfPanel::setRun(Run* run) {
  if (run_ != run) {
    if (run_) disconnect(run_, nullptr, this, nullptr);
    run_ = run, spans_ = 0, result_.reset();
    proof_->clear();
    if (edits_.isEmpty() || !touched_) edits_.clear(), touched_ = false;
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

// Edits of another run may select nothing in this one: they are left out, and the sentence says so.
void WhatIfPanel::refresh() {
  const size_t spans = run_ ? run_->trace.span_count() : 0;
  if (!run_ || spans == 0) {
    result_.reset(), remedies_.clear(), others_ = 0;
    return fill();
  }
  if (result_ && spans == spans_) return;
  spans_ = spans;
  takeAdvice();
  try {
    compute(edits_);
  } catch (const std::exception& problem) {
    if (touched_) emit said(QString::fromUtf8(problem.what()), true);
    edits_.clear(), touched_ = false;
    takeAdvice();
    try {
      compute(edits_);
    } catch (const std::exception& none) {
      result_.reset();
      body_->showReason(QString::fromUtf8(none.what()));
    }
  }
  fill();
}

// Until the person changes the edits, the page shows the advice that saves most. A live run keeps its edits while it has this advice.
void WhatIfPanel::takeAdvice() {
  {
    const QSignalBlocker quiet(advice_);  // its answer comes now
    advice_.setRun(run_, true);
  }
  const auto [facts, found] = advice_.found(true);
  facts_step_us_ = facts.step_us, launch_gaps_us_ = facts.whole_trace ? 0 : facts.part(prof::Meaning::Launch), remedies_ = app::remedies(found, facts_step_us_), others_ = found.size() - remedies_.size();
  if (touched_ || (run_->live() && adviceWithTheEdits())) return;
  const auto most = std::ranges::find_if(remedies_, [](const Insight& one) { return one.saves_us.value > 0; });
  edits_ = most == remedies_.end() ? QStringList() : texts_of(most->edits);
}

const Insight* WhatIfPanel::adviceWithTheEdits() const {
  const auto same = std::ranges::find_if(remedies_, [&](const Insight& one) { return !edits_.isEmpty() && one.saves_us.known() && texts_of(one.edits) == edits_; });
  return same == remedies_.end() ? nullptr : &*same;
}

void WhatIfPanel::compute(const QStringList& edits) {
  const std::vector<prof::Edit> parsed = edits.empty() ? std::vector<prof::Edit>{} : prof::parse_edits(joined(edits));
  const prof::StepCauses causes = causes_of(*run_);
  const prof::WhatIf result = prof::what_if(causes, run_->trace, parsed);
  view_->setPictures(step_pictures(causes, run_->trace, parsed, result));
  result_ = result, edits_ = edits;
}

// False, and says why, if they cannot be applied.
bool WhatIfPanel::use(const QStringList& edits) {
  try {
    compute(edits);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
    return false;
  }
  proof_->clear();
  fill();
  return true;
}

bool WhatIfPanel::addEdit(const QString& edit) {
  if (!run_) return false;
  QStringList all = edits_;
  try {
    for (const QString& one : texts_of(edit.toStdString()))
      if (!all.contains(one)) all << one;
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
    return false;
  }
  const bool used = use(all);
  touched_ = touched_ || used;
  return used;
}

void WhatIfPanel::ask(Run* run, const QString& edit) {
  setRun(run);
  const QStringList before = edits_;
  if (!touched_) edits_.clear();
  if (addEdit(edit)) return;
  edits_ = before;
  input_->setText(edit);
}

// An advice takes the place of another one. Edits of the person stay.
void WhatIfPanel::addRemedy(int row) {
  const Insight& chosen = remedies_[static_cast<size_t>(row)];
  if (chosen.edits.empty()) return emit said(tr("No edit of the replay does this. The page Suggestions says how to try it."), false);
  if (adviceWithTheEdits()) touched_ = use(texts_of(chosen.edits)) || touched_;
  else addEdit(text(chosen.edits));
}

void WhatIfPanel::removeEdit(int index) {
  if (index < 0 || index >= edits_.size() || !run_) return;
  QStringList left = edits_;
  left.removeAt(index);
  touched_ = use(left) || touched_;
}

void WhatIfPanel::clearEdits() {
  if (run_) touched_ = use({}) || touched_;
}

void WhatIfPanel::fill() {
  fillEdits();
  fillPrediction();
  fillTables();
  if (!result_) {
    view_->setPictures({});
    if (!run_ || run_->trace.span_count() == 0) body_->showReason(run_ ? tr("This run has no trace. Train with the trace level kernels or full.") : tr("Click a run that was traced."));
    return;
  }
  const prof::WhatIf& r = *result_;
  const QString steps = r.whole_trace ? tr("the whole trace") : tr("median step of %1").arg(text(prof::which_steps(r.which)));
  QStringList notes, tips;
  if (!edits_.isEmpty()) sayHowSure(notes, tips);
  for (const std::string& warning : r.warnings) notes << text(warning);
  if (r.unexplained_us > 0) tips << tr("For %1 of a step, the records do not show what the GPU waits for. A prediction keeps this time.").arg(step_time_text(r.unexplained_us));
  const QString todo = edits_.isEmpty() ? tr(" Add an edit, or double-click a row.") : QString();
  body_->showResult(with_units(text(prof::saving_text(r)) + todo), with_units(notes.join('\n')), with_units(tips.join('\n')));
  step_pane_->setTitle(tr("The step"), steps, steps);
}

// The same order as on a card of Suggestions: why, then how sure. What else is known stands in the tip.
void WhatIfPanel::sayHowSure(QStringList& notes, QStringList& tips) const {
  const ProvedPredictions proved = proved_predictions(run_->hasChoices() ? CheckedPrograms::Trainings : CheckedPrograms::Programs);
  const std::string kind = kind_of_edits(joined(edits_));
  if (const Insight* advice = adviceWithTheEdits()) {
    notes << text(advice->why);
    if (const QString more = text(advice_lines(*advice, proved).more); !more.isEmpty()) tips << more;
  }
  notes << tr("How sure: %1").arg(text(sure_text(result_->saves_us, result_->measured_us.value, kind, proved)));
  tips << text(known_text(result_->measured_us) + ws::with_capital(proved.checked_text(std::set{kind})) + ".");
}

void WhatIfPanel::fillEdits() {
  const QString work = named_work(result_);
  input_->setPlaceholderText(tr("or type: %1").arg(work.isEmpty() ? tr("no sync") : tr("no sync; %1 /2").arg(work)));
  list_->clear(), together_->clear();
  add_->setEnabled(result_.has_value()), clear_->setEnabled(!edits_.isEmpty());
  const Insight* advice = adviceWithTheEdits();
  edits_pane_->setTitle(tr("Edits"), advice ? tr("from Suggestions") : QString());
  if (result_ && !result_->edits.empty()) {
    constexpr double kNothing = 1e-3;  // of a step
    double shared = -result_->saves_us.value;
    for (const prof::EditPart& part : result_->edits) {
      shared += part.alone_us;
      addRow(text(prof::edits_phrase(part.text)), text(part.text), part.alone_us);
    }
    if (result_->edits.size() > 1) addRow(tr("together"), {}, result_->saves_us.value);
    const QString either = edits_.size() == 2 ? tr("%1 would be saved by either edit.") : tr("%1 would be saved by several of the edits.");
    const QString sum = shared > 0 ? either : tr("%1 are saved only together.");
    if (result_->edits.size() > 1 && std::abs(shared) > kNothing * result_->measured_us.value) together_->setText(sum.arg(text(prof::interval_text({std::abs(shared), 0}, result_->measured_us.value))));
  }
  for (QLabel* below : {together_, proof_}) below->setVisible(!below->text().isEmpty());
}

void WhatIfPanel::addRow(const QString& name, const QString& edit, double saves_us) {
  const QString change = QString(saves_us > 0 ? QChar(0x2212) : QChar('+')) + text(prof::interval_text({std::abs(saves_us), 0}, result_->measured_us.value));
  auto* item = new QListWidgetItem(list_);
  item->setSizeHint({0, 24});
  auto* row = new EditRow(name, edit, change, list_);
  QStringList tip{name};
  if (!edit.isEmpty()) tip << tr("As an edit: %1").arg(edit);
  if (!edit.isEmpty() && result_->edits.size() > 1) tip << tr("What this edit saves alone.");
  row->setToolTip(tip.join('\n'));
  connect(row->remove, &QToolButton::clicked, this, [this, index = list_->row(item)] { removeEdit(index); }, Qt::QueuedConnection);
  list_->setItemWidget(item, row);
}

void WhatIfPanel::fillOffers() {
  qDeleteAll(offers_->findChildren<QMenu*>(Qt::FindDirectChildrenOnly));
  offers_->clear();
  if (!run_ || !result_) return;
  const prof::StepCauses causes = causes_of(*run_);
  for (const prof::EditOffers& group : prof::Editor(causes, run_->trace).offers()) {
    QMenu* menu = offers_->addMenu(text(group.title));
    for (const prof::EditOffer& offer : group.offers) {
      QAction* action = menu->addAction(text(offer.words + "\t" + offer.text).replace('&', "&&"));
      action->setEnabled(!edits_.contains(text(offer.text)));
      connect(action, &QAction::triggered, this, [this, edit = text(offer.text)] { addEdit(edit); });
    }
  }
}

QString WhatIfPanel::whyNotProved() const {
  if (!result_ || edits_.isEmpty()) return tr("Add an edit first.");
  if (!run_->hasChoices()) return tr("Only trainings of Warpsight can be checked here.");
  if (run_->elsewhere) return tr("The run was trained by another program.");
  if (training_) return tr("Stop the training first (Run › Stop).");
  try {
    const auto refusal = [this](bool cuda) { return choices_of(run_->spec, prof::parse_edits(joined(edits_)), cuda).refusal; };
    const std::string here = refusal(device_info().cuda);
    return !here.empty() && refusal(true).empty() ? tr("Checking needs a GPU.") : text(here);
  } catch (const std::exception& problem) {
    return QString::fromUtf8(problem.what());
  }
}

void WhatIfPanel::fillPrediction() {
  const QString why = whyNotProved();
  prove_->setEnabled(why.isEmpty() && !job_.running());
  why_not_->setText(job_.running() ? tr("Trains both in turn…") : why);
}

void WhatIfPanel::fillTables() {
  Table help = result_ ? with_columns(remedy_table(remedies_, facts_step_us_, false), {"action", "saves_us"}) : Table{};
  for (size_t i = 0; i < help.rows.size(); ++i)
    if (const std::string& edits = remedies_[i].edits; !edits.empty()) help.rows[i].cells[0].tip += "\nAs edits: " + edits;
  help_model_.setTable(std::move(help));
  const QString others = others_ == 1 ? tr("One more suggestion has no predicted saving, so it is not listed.") : tr("%1 more suggestions have no predicted saving, so they are not listed.").arg(others_);
  help_note_->setText(remedies_.empty() ? tr("No advice makes this step shorter.") : others);
  help_note_->setVisible(result_ && (remedies_.empty() || others_ > 0));
  help_pane_->setTitle(tr("Suggestions"), tr("double-click a row to predict it"));
  if (const Insight* shown = adviceWithTheEdits()) help_table_->selectRow(help_sorter_.mapFromSource(help_model_.index(static_cast<int>(shown - remedies_.data()), 0)).row());
  else help_table_->clearSelection();
  const std::vector<prof::HelpRow> rows = rows_of(result_, kind_);
  parts_model_.setTable(result_ ? parts_table(rows, *result_, remedies_, !kind_) : Table{});
  kind_button_->setText(list_name(kind_));
  for (int i = 0; const auto& kind : kKinds)
    kind_button_->menu()->actions()[i++]->setEnabled(!rows_of(result_, kind).empty());
  parts_note_->setVisible(!rows.empty());
  if (result_) parts_note_->setText(partsNote());
  parts_pane_->setTitle(tr("If a part took no time"), result_ && !result_->edits.empty() ? tr("after the edits") : QString());
  fitTables();
}

// The rows of causes may have a part of the split in them.
QString WhatIfPanel::partsNote() const {
  const bool causes = !kind_ || kind_ == prof::GroupKind::Cause;
  QStringList notes;
  if (const QString left = text(prof::hand_over_text(*result_)); causes && !left.isEmpty()) notes << left;
  if (const QString gaps = text(prof::launch_gaps_text(*result_, launch_gaps_us_)); causes && !gaps.isEmpty()) notes << gaps;
  if (notes.size() < 2) notes << text(prof::kNotTheSplit);
  return with_units(notes.join('\n'));
}

void WhatIfPanel::fitTables() {
  fit_columns(*parts_table_, parts_model_);
  fit_columns(*help_table_, help_model_);
}

void WhatIfPanel::prove() {
  if (!prove_->isEnabled()) return;
  const RunSpec spec = run_->spec;
  const std::string written = joined(edits_);
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
  fill();
}

}  // namespace ws::app
