#include "app/pages/plan/plan_panel.h"

#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>

#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "engine/own_kernels/kernel_contract.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {
constexpr int kPlanRefreshMs = 1000, kReadsFrom = 400;
}

PlanPanel::PlanPanel(Focus* focus, QWidget* parent)
    : Pane(tr("Plan"), parent),
      focus_(focus),
      table_(new QTableView(this)),
      log_(new QLabel(this)),
      empty_(new QLabel(this)) {
  legend()->hide();
  stage_button_ = option_button(tr("Which plan"), this);
  stage_button_->setText(tr("After all passes"));
  auto* menu = new QMenu(stage_button_);
  menu->addAction(tr("As built, before the passes"), this, [this] { setStage(PlanStage::Before); });
  menu->addAction(tr("After all passes"), this, [this] { setStage(PlanStage::After); });
  stage_button_->setMenu(menu);
  addOption(stage_button_);
  write_ = new QPushButton(tr("Own kernel…"), this);
  connect(write_, &QPushButton::clicked, this, [this] {
    if (const int op = opAt(table_->currentIndex().row()); op >= 0 && plan()) emit kernelWanted(QString::fromStdString(plan()->ops[static_cast<size_t>(op)].name));
  });
  addOption(write_);
  table_->setModel(&model_);
  style_table(*table_, tr("Ops of the plan"));
  empty_->setText(tr("No plan yet: press Train, or click a run."));
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  log_->setWordWrap(true);
  log_->setMargin(8);
  log_->setFont(ui_font(11));
  log_->setForegroundRole(QPalette::PlaceholderText);
  auto* body = new QWidget(this);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(table_, 1);
  column->addWidget(empty_, 1);
  column->addWidget(log_);
  setBody(body);
  refresh_.setInterval(kPlanRefreshMs);
  connect(&refresh_, &QTimer::timeout, this, [this] {
    if (!isVisible() || !plan()) return;
    refreshTimes();
    showNote();
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, &PlanPanel::chooseRow);
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, &PlanPanel::showWhetherWritable);
  connect(table_, &QTableView::doubleClicked, this, [this](const QModelIndex& index) {
    if (run_ && tagAt(index.row()) != prof::kNoOp) focus_->reveal(OpChoice{run_, tagAt(index.row())});
  });
  connect(table_, &QTableView::clicked, this, [this](const QModelIndex& index) { fold(index.row()); });
  connect(focus_, &Focus::changed, this, &PlanPanel::showSelection);
  setRun(nullptr);
}

void PlanPanel::setRun(Run* run) {
  if (run_) disconnect(run_, nullptr, this, nullptr);
  run_ = run;
  if (run) {
    connect(run, &Run::changed, this, [this] {
      if (run_ && run_->plan && run_->plan->plan.id != shown_id_) present(run_);
    });
    connect(run, &Run::foldsChanged, this, [this] { present(run_); });
    connect(run, &QObject::destroyed, this, [this] { setRun(nullptr); });
    refresh_.start();
  } else {
    refresh_.stop();
  }
  present(run);
}

const Plan* PlanPanel::plan() const {
  if (!run_ || !run_->plan) return nullptr;
  return stage_ == PlanStage::Before ? &run_->plan->before : &run_->plan->plan;
}

void PlanPanel::refreshTimes() {
  const Plan none, *shown = plan();
  tags_ = shown ? op_tags(*shown, run_->trace) : std::vector<prof::OpTag>();
  times_ = shown ? plan_times(*shown, run_->trace) : PlanTimes();
  Table table = plan_rows(shown ? *shown : none, times_, [this](const std::string& block) { return run_ && run_->folded(block); });
  for (Table::Row& row : table.rows)
    for (Table::Cell& cell : row.cells)
      if (narrow_) cell.swatch = -1;  // beside the memory map, where colours are what a buffer holds
  model_.setTable(std::move(table));
}

int PlanPanel::opAt(int row) const {
  if (row < 0 || row >= model_.rowCount() || model_.isHeading(row)) return -1;
  return static_cast<int>(model_.table().rows[static_cast<size_t>(row)].cells[Number].number());
}

std::string PlanPanel::blockAt(int row) const {
  if (!model_.isHeading(row)) return {};
  const Table::Cell& cell = model_.table().rows[static_cast<size_t>(row)].cells[0];
  return cell.text.empty() ? std::string() : std::get<std::string>(cell.value);
}

void PlanPanel::fold(int row) {
  if (const std::string block = blockAt(row); run_ && !block.empty()) run_->setFolded(block, !run_->folded(block));
}

int PlanPanel::rowOf(int op) const {
  for (int row = 0; row < model_.rowCount(); ++row)
    if (op >= 0 && opAt(row) == op) return row;
  return -1;
}

prof::OpTag PlanPanel::tagAt(int row) const {
  const int op = opAt(row);
  return op < 0 ? prof::kNoOp : tags_[static_cast<size_t>(op)];
}

// A kernel of one's own is for one op of the plan as it runs. The button keeps its place.
void PlanPanel::showWhetherWritable() {
  const int op = opAt(table_->currentIndex().row());
  std::optional<std::string> why;
  if (stage_ == PlanStage::Before)
    why = tr("Choose the plan after all passes first.").toStdString();
  else if (!plan() || op < 0)
    why = tr("Select an op first.").toStdString();
  else
    why = own::why_none(*plan(), plan()->ops[static_cast<size_t>(op)]);
  write_->setEnabled(!why);
  write_->setToolTip(why ? QString::fromStdString(*why) : tr("Opens the page Own kernel with a kernel for this op that works."));
}

void PlanPanel::present(Run* run) {
  refreshTimes();
  const Plan* const plan = this->plan();
  shown_id_ = run && run->plan ? run->plan->plan.id : std::string();
  const bool imported = run && run->origin == RunOrigin::Imported;
  const QString budget = budget_.isEmpty() ? QString() : "\n\n" + budget_;
  empty_->setText(imported ? tr("A recorded program has no plan: its ops are not known here.")
                           : tr("No plan yet: press Train, or click a run.") + budget);
  table_->setVisible(plan), empty_->setVisible(!plan), log_->setVisible(plan);
  showNote();
  showWhetherWritable();
  if (!plan) return;
  QStringList changes;
  for (const std::string& change : plan->log) changes << QString::fromStdString(change);
  log_->setText(changes.join(' '));
  log_->setVisible(!changes.isEmpty());
  table_->clearSpans();
  for (int row = 0; row < model_.rowCount(); ++row)
    if (opAt(row) < 0) table_->setSpan(row, 0, 1, Columns);
  setNarrow(narrow_);
}

// The times are medians, as the step time is. Their sum exceeds a step if ops run on several streams, or if a kernel begins
// before the previous one ends; on one CPU thread nothing overlaps.
void PlanPanel::showNote() {
  constexpr double kMore = 1.02;
  const Plan* const plan = this->plan();
  QString note = plan ? tr("%1 ops in the order they run, without batch, memory calls and syncs").arg(computing_ops(*plan)) : QString();
  const double sum = std::accumulate(times_.us.begin(), times_.us.end(), 0.0), step = plan ? run_->stepUs() : 0;
  if (sum > 0) note += (times_.means ? tr(" · times: means, together %1; step time: %2, median") : tr(" · times: medians, together %1; step time: %2, median")).arg(step_time_text(sum), step_time_text(step));
  if (sum > kMore * step && step > 0 && prof::used_gpu(run_->trace)) note += tr(" · ops of different streams overlap");
  if (times_.waits_us > 0)
    note += tr(" · waits for other multiprocessors: %1").arg(step_time_text(times_.waits_us));
  setTitle(tr("Plan"), note);
}

void PlanPanel::resizeEvent(QResizeEvent* event) {
  Pane::resizeEvent(event);
  table_->setColumnHidden(Reads, narrow_ && width() < kReadsFrom);
  shareWidth();
}

// Keeps the op beside what it reads and writes, at any window width.
void PlanPanel::shareWidth() {
  if (narrow_) return;
  int numbers = 0;
  for (int c : {Number, Bytes, Flops, Time})
    numbers += table_->columnWidth(c);
  const double space = width() - numbers - 10;
  table_->setColumnWidth(Reads, std::max(160, static_cast<int>(space * 0.3)));
  table_->setColumnWidth(Writes, std::max(160, static_cast<int>(space * 0.26)));
}

void PlanPanel::setNarrow(bool narrow) {
  narrow_ = narrow;
  auto* header = table_->horizontalHeader();
  const int widths[] = {40, 230, 160, 160, 104, 90, 84};
  for (int c = 0; c < Columns; ++c) table_->setColumnWidth(c, widths[c]);
  header->setSectionResizeMode(QHeaderView::Interactive);
  header->setSectionResizeMode(Name, QHeaderView::Stretch);
  table_->setColumnHidden(Writes, narrow);
  table_->setColumnHidden(Flops, narrow);
  if (narrow)
    table_->setColumnWidth(Reads, 76), table_->setColumnWidth(Bytes, 80),
        table_->setColumnWidth(Time, 80);
  shareWidth();
}

void PlanPanel::setStage(PlanStage stage) {
  stage_ = stage;
  stage_button_->setText(stage == PlanStage::Before ? tr("As built") : tr("After all passes"));
  present(run_);
}

void PlanPanel::setBudget(const QString& lines) {
  budget_ = lines;
  if (!run_) present(nullptr);
}

void PlanPanel::chooseRow(const QModelIndex& index) {
  if (!index.isValid() || !run_) return;
  if (opAt(index.row()) >= 0) emit opChosen(opAt(index.row()));
  const prof::OpTag tag = tagAt(index.row());
  const auto* op = focus_->get<OpChoice>();
  if (tag != prof::kNoOp && !(op && op->op == tag)) focus_->choose(OpChoice{run_, tag});
}

void PlanPanel::showSelection() {
  prof::OpTag tag = prof::kNoOp;
  if (const auto* chosen = focus_->get<OpChoice>(); chosen && chosen->run == run_) tag = chosen->op;
  if (const auto* span = focus_->get<SpanChoice>(); span && span->run == run_) tag = span->span.op;
  const auto op = std::ranges::find(tags_, tag);
  const int row = tag == prof::kNoOp || op == tags_.end() ? -1 : rowOf(static_cast<int>(op - tags_.begin()));
  if (row < 0 || row == table_->currentIndex().row()) return;
  const QSignalBlocker quiet(table_->selectionModel());
  table_->selectRow(row);
  table_->scrollTo(model_.index(row, 0));
  table_->viewport()->update();
}

}  // namespace ws::app
