#include "app/pages/what_if/what_if_panel.h"

#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <cmath>

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

namespace ws::app {
namespace {

constexpr size_t kMostSpans = 150'000;  // the window waits for the graph, below 0.1 s

QString saved_text(double us) { return fixed_text(-us, 2) + QStringLiteral(" µs"); }

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

// An op, line or module has no choice that frees it, so most rows have no error.
double median_error(const ProvedPredictions& proved, const prof::HelpRow& row) {
  const std::string kind = kind_of_edits(prof::edit_of(row));
  for (const ProvedKind& one : proved.by_kind())
    if (one.kind == kind) return one.errors.median;
  return std::nan("");
}

Table help_table(const prof::WhatIf& result, const ProvedPredictions& proved) {
  Table table;
  using Kind = Table::Kind;
  table.columns = {{.key = "name", .name = "what", .kind = Kind::Text, .tip = "an op, a line, a module or a cause"},
                   {.key = "kind", .name = "kind", .kind = Kind::Text},
                   {.key = "now_us", .name = "work", .unit = "µs", .kind = Kind::Time, .tip = "its time in the median step, of all threads and ranks together: with several of them, more than the step takes"},
                   {.key = "one_us_less_saves", .name = "1 µs less saves", .decimals = 2, .tip = "what a step saves for each µs that this takes less: 1 on the critical path, 0 beside it"},
                   {.key = "saved_if_free_us", .name = "saved if free", .unit = "µs", .kind = Kind::Time, .tip = std::string("what a step saves if this takes no time. ") + prof::kSavesMore},
                   {.key = "off", .name = "off by", .unit = "%", .kind = Kind::Percent, .tip = "how far such predictions have been off at the median, as a share of the measured step"}};
  const std::vector<prof::HelpRow>& rows = result.edits.empty() ? result.rows : result.rows_after;
  const auto shared = [&rows](const prof::HelpRow& row) { return std::ranges::count(rows, row.name, &prof::HelpRow::name) > 1; };
  for (const prof::HelpRow& row : rows)
    table.rows.push_back({{shared(row) ? row.name + " (" + prof::group_kind_name(row.kind) + ")" : row.name, prof::group_kind_name(row.kind), row.now_us, row.slope(), row.gain_us, median_error(proved, row)}});
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
  auto* rows = new QSplitter(Qt::Vertical, this);
  auto* top = new QSplitter(Qt::Horizontal, rows);
  auto* bottom = new QSplitter(Qt::Horizontal, rows);
  step_pane_ = new Pane(tr("The step"), top);
  body_ = new Headlined(step_pane_);
  view_ = new StepPathView(body_);
  body_->setPicture(view_);
  step_pane_->setBody(body_);
  help_pane_ = new Pane(tr("What would help most"), bottom);
  table_ = table_view(help_pane_, model_, sorter_, tr("What would help most"));
  table_->viewport()->installEventFilter(this);
  help_pane_->setBody(table_);
  top->addWidget(buildEdits());
  top->addWidget(step_pane_);
  bottom->addWidget(help_pane_);
  bottom->addWidget(buildPrediction());
  proofs_ = new ProofsPane(bottom);
  bottom->addWidget(proofs_);
  for (Pane* pane : {edits_pane_, step_pane_, help_pane_, prediction_pane_}) pane->legend()->hide();
  for (QSplitter* splitter : {rows, top, bottom}) splitter->setChildrenCollapsible(false);
  top->setStretchFactor(1, 1), bottom->setStretchFactor(0, 1);
  edits_pane_->setMinimumWidth(200), prediction_pane_->setMinimumWidth(240), proofs_->setMinimumWidth(260);  // the first layout may be narrow
  top->setSizes({230, 800}), bottom->setSizes({520, 270, 330}), rows->setSizes({360, 300});
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(rows);
  connect(table_, &QTableView::activated, this, [this](const QModelIndex& index) {
    const int row = sorter_.mapToSource(index).row();
    const std::vector<prof::HelpRow>& helps = result_->edits.empty() ? result_->rows : result_->rows_after;
    addEdit(text(prof::edit_of(helps[static_cast<size_t>(row)])));
  });
  connect(view_, &StepPathView::barChosen, this, [this](const QString& name) { input_->setText(name + QStringLiteral(" /2")); input_->setFocus(); });
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
  together_ = label(body, 12);
  clear_ = new QPushButton(tr("Clear"), body);
  auto* column = new QVBoxLayout(body);
  for (QWidget* widget : std::initializer_list<QWidget*>{list_, input_, together_, clear_}) column->addWidget(widget);
  edits_pane_->setBody(body);
  connect(clear_, &QPushButton::clicked, this, &WhatIfPanel::clearEdits);
  connect(input_, &QLineEdit::returnPressed, this, [this] {
    if (addEdit(input_->text())) input_->clear();
  });
  return edits_pane_;
}

QWidget* WhatIfPanel::buildPrediction() {
  prediction_pane_ = new Pane(tr("Prediction"), this);
  auto* body = new QWidget(prediction_pane_);
  predicted_ = label(body, 18, 600), why_not_ = label(body, 11), proof_ = label(body, 13), quote_ = label(body, 11);
  prove_ = new QPushButton(tr("Prove it"), body);
  prove_->setToolTip(tr("Trains with the choices now and with the choices that do the edits, in turn, and compares the measured step with the prediction."));
  auto* column = new QVBoxLayout(body);
  for (QWidget* widget : std::initializer_list<QWidget*>{predicted_, quote_, prove_, why_not_, proof_}) column->addWidget(widget);
  column->addStretch(1);
  prediction_pane_->setBody(body);
  connect(prove_, &QPushButton::clicked, this, &WhatIfPanel::prove);
  return prediction_pane_;
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
  if (event->type() == QEvent::Resize) fitTable();
  if (watched == list_ && event->type() == QEvent::KeyPress && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Delete) {
    removeEdit(list_->currentRow());
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

namespace {

// Without an edit, the row that would help most shows what the page does.
std::optional<PathPicture> example_of(const prof::StepCauses& causes, const prof::Trace& trace, const prof::WhatIf& result) {
  const auto most = std::ranges::max_element(result.rows, {}, &prof::HelpRow::gain_us);
  if (most == result.rows.end() || !(most->gain_us > 0)) return std::nullopt;
  const std::vector<prof::Edit> edits = prof::parse_edits(prof::edit_of(*most));
  const prof::WhatIf then = prof::what_if(causes, trace, edits);
  PathPicture picture = step_pictures(causes, trace, edits, then).back();
  picture.title = QObject::tr("for example, if “%1” takes no time: %2 less a step").arg(text(most->name), step_time_text(most->gain_us));
  picture.example = true;
  return picture;
}

}  // namespace

// Edits of another run may select nothing in this one: they are left out, and the sentence says so.
void WhatIfPanel::refresh() {
  const size_t spans = run_ ? run_->trace.span_count() : 0;
  if (!run_ || spans == 0) {
    result_.reset();
    return fill();
  }
  if (result_ && spans == spans_) return;
  spans_ = spans;
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

void WhatIfPanel::compute(const QStringList& edits) {
  const QString written = edits.join(QStringLiteral("; "));
  const std::vector<prof::Edit> parsed = edits.empty() ? std::vector<prof::Edit>{} : prof::parse_edits(written.toStdString());
  const prof::StepCauses causes = causes_of(*run_, kMostSpans);
  const prof::WhatIf result = prof::what_if(causes, run_->trace, parsed);
  std::vector<PathPicture> pictures = step_pictures(causes, run_->trace, parsed, result);
  if (parsed.empty())
    if (auto example = example_of(causes, run_->trace, result)) pictures.push_back(std::move(*example));
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
  fillTable();
  fillQuote();
  if (!result_) {
    view_->setPictures({});
    if (!run_ || run_->trace.span_count() == 0) body_->showReason(run_ ? tr("This run has no trace. Train with the trace level kernels or full.") : tr("Click a run that was traced."));
    return;
  }
  const prof::WhatIf& r = *result_;
  const auto cause = r.path.empty() ? QString() : text(r.path.front().name);
  const QString steps = r.whole_trace ? tr("the whole trace") : tr("mean of %1").arg(text(prof::which_steps(r.which)));
  const double share = r.path.empty() || !(r.measured_us.value > 0) ? 0 : 100 * r.path.front().path_us / r.measured_us.value;
  QStringList notes{tr("Filled: on the [critical path], which decides how long a step takes.")};
  if (r.unexplained_us > 0.01 * r.measured_us.value) notes << tr("The GPU idles %1 a step without a recorded cause.").arg(step_time_text(r.unexplained_us));
  for (const std::string& warning : r.warnings) notes << text(warning);
  body_->showResult(tr("“%1” has the largest part in the length of a step: %2 %.").arg(cause).arg(share, 0, 'f', 0), notes.join('\n'));
  step_pane_->setTitle(tr("The step"), steps, steps);
}

void WhatIfPanel::showExamples() {
  const QString work = named_work(result_);
  examples_->setText(tr("Nothing is edited. For example:\n\nno sync\nno allocator calls") +
                     (work.isEmpty() ? QString() : tr("\n%1 /2\n\nThe last one halves the time of %1.").arg(work)));
  input_->setPlaceholderText(work.isEmpty() ? tr("no sync") : tr("no sync; %1 /2").arg(work));
}

void WhatIfPanel::fillEdits() {
  showExamples();
  list_->clear();
  clear_->setEnabled(!edits_.isEmpty());
  for (qsizetype i = 0; i < edits_.size(); ++i) {
    const bool known = result_ && static_cast<size_t>(i) < result_->edits.size();
    list_->addItem(edits_[i] + (known ? QStringLiteral("   ") + saved_text(result_->edits[static_cast<size_t>(i)].mean_us) : QString()));
  }
  if (!result_ || result_->edits.empty()) return together_->setText(tr("Write an edit, or double-click a row of the table. Del removes an edit."));
  double alone = 0;
  for (const prof::EditPart& part : result_->edits) alone += part.alone_us;
  together_->setText(tr("together %1. Each part is the mean over all orders; one by one they are %2.").arg(saved_text(result_->saves_us.value), saved_text(alone)));
}

QString WhatIfPanel::whyNotProved() const {
  if (!result_ || edits_.isEmpty()) return tr("Add an edit first.");
  if (!run_->hasChoices()) return tr("Only trainings of this program can be proved here.");
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
  const bool any = result_ && !result_->edits.empty();
  if (any) {
    const double before = result_->measured_us.value, after = result_->predicted_us.value;
    predicted_->setText(tr("%1 → %2 ± %3, %4×").arg(step_time_text(before), step_time_text(after), step_time_text(result_->predicted_us.half_width)).arg(after > 0 ? before / after : 0, 0, 'f', 2));
  } else {
    predicted_->setText(result_ ? tr("measured %1").arg(step_time_text(result_->measured_us.value)) : QString());
  }
  const QString how = tr("An edit takes time away from the measured step. The page predicts what is left. Prove it trains both and shows how far "
                         "the prediction was off.");
  if (!any && proof_->text().isEmpty()) proof_->setText(how);
  if (any && proof_->text() == how) proof_->clear();
  const QString why = whyNotProved();
  prove_->setEnabled(why.isEmpty() && !job_.running());
  why_not_->setText(job_.running() ? tr("Trains both in turn…") : why);
}

void WhatIfPanel::fillTable() {
  model_.setTable(result_ ? help_table(*result_, proved_) : Table{});
  const bool several = result_ && std::ranges::any_of(result_->rows, [this](const prof::HelpRow& row) { return row.now_us > result_->measured_us.value; });
  const QString in_step = result_ && !result_->edits.empty() ? tr("in a step, after the edits") : tr("in a step · double-click: add as an edit");
  help_pane_->setTitle(tr("What would help most"), in_step + (several ? tr(" · work: all threads and ranks together") : QString()),
                       several ? tr("work: all threads and ranks together") : in_step);
  fitTable();
}

// The names matter most: a narrow table leaves out what the tooltips of the rows say, too.
void WhatIfPanel::fitTable() {
  constexpr int kAllColumns = 520, kFewColumns = 400, kKind = 1, kLess = 3, kOff = 5;
  for (const int column : {kKind, kLess}) table_->setColumnHidden(column, table_->viewport()->width() < kAllColumns);
  table_->setColumnHidden(kOff, table_->viewport()->width() < kFewColumns);
  fit_columns(*table_, model_);
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
  proofs_->mark(proof);
  fillTable();
  fillQuote();
}

void WhatIfPanel::readProofs() {
  proved_ = proved_predictions();
  proofs_->setProofs(proved_);
}

// Without edits it is about the rows of the table.
void WhatIfPanel::fillQuote() {
  const std::string kind = edits_.isEmpty() ? prof::edit_kind_name(prof::EditKind::Gone) : kind_of_edits(edits_.join("; ").toStdString());
  const QString quote = with_capital(text(proved_.quote(kind))) + QStringLiteral(".");
  quote_->setText(result_ ? quote : QString());
}

}  // namespace ws::app
