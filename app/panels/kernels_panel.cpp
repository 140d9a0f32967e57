#include "app/panels/kernels_panel.h"

#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "app/panels/theme.h"
#include "app/panels/units.h"
#include "app/timeline/block_label.h"
#include "app/timeline/trace_queries.h"

namespace ws::app {
namespace {

constexpr int kKernelsRefreshMs = 1500;
constexpr size_t kNewestSpans = 300'000, kInstances = 200;

struct Grouping {
  prof::GroupBy by;
  const char* text;
};
constexpr Grouping kGroupings[] = {{prof::GroupBy::Name, "By name"},
                                   {prof::GroupBy::Op, "By op"},
                                   {prof::GroupBy::Layer, "By layer"},
                                   {prof::GroupBy::Phase, "By phase"},
                                   {prof::GroupBy::Shape, "By name and shape"}};

bool is_work(const prof::Track& track) {
  return track.kind == prof::TrackKind::Stream || track.kind == prof::TrackKind::CpuThread;
}

}  // namespace

// The executions of one kernel, slowest first.
class InstanceModel : public QAbstractTableModel {
 public:
  struct Row {
    size_t track;
    prof::Span span;
  };
  using QAbstractTableModel::QAbstractTableModel;

  // `own`: of a run of ours, where what runs outside of a step is an evaluation.
  void setRows(std::vector<Row> rows, bool own = false) {
    beginResetModel();
    rows_ = std::move(rows), own_ = own;
    endResetModel();
  }
  const Row* at(int row) const {
    return row >= 0 && row < static_cast<int>(rows_.size()) ? &rows_[static_cast<size_t>(row)] : nullptr;
  }
  int rowCount(const QModelIndex& parent = {}) const override {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
  }
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : 3; }

  QVariant data(const QModelIndex& index, int role) const override {
    const Row* row = index.isValid() ? at(index.row()) : nullptr;
    if (!row) return {};
    if (role == Qt::TextAlignmentRole) return QVariant::fromValue(static_cast<int>(Qt::AlignRight | Qt::AlignVCenter));
    if (role != Qt::DisplayRole) return {};
    if (index.column() == 0) return us_text(static_cast<double>(row->span.duration) / 1000);
    if (index.column() == 1) return step_text(row->span);
    return offset_time(row->span.start, 1000);
  }

  QVariant headerData(int section, Qt::Orientation orientation, int role) const override {
    static const char* const kNames[] = {"µs", "step", "begins at"};
    if (orientation != Qt::Horizontal || section < 0 || section > 2) return {};
    if (role == Qt::TextAlignmentRole) return QVariant::fromValue(static_cast<int>(Qt::AlignRight | Qt::AlignVCenter));
    return role == Qt::DisplayRole ? QVariant(QString::fromUtf8(kNames[section])) : QVariant();
  }

 private:
  QString step_text(const prof::Span& span) const {
    if (span.step) return count_text(static_cast<int64_t>(span.step) - 1);
    return own_ ? tr("evaluation") : QStringLiteral("—");
  }

  std::vector<Row> rows_;
  bool own_ = false;
};

KernelsPanel::KernelsPanel(Selection* selection, QWidget* parent)
    : QWidget(parent),
      selection_(selection),
      table_(new QTableView(this)),
      instances_(new QTableView(this)),
      instance_model_(new InstanceModel(this)),
      histogram_(new HistogramView(tr("Durations of the chosen kernel"), this)) {
  top_ = new Pane(tr("Kernels"), this);
  buildTable(top_);
  below_ = new Pane(tr("Executions"), this);
  below_->legend()->hide();
  auto* split = new QSplitter(Qt::Horizontal, below_);
  instances_->setModel(instance_model_);
  style_table(*instances_, tr("Executions of the chosen kernel, slowest first"));
  instances_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  split->addWidget(histogram_);
  split->addWidget(instances_);
  split->setSizes({500, 300});
  below_->setBody(split);
  auto* rows = new QSplitter(Qt::Vertical, this);
  rows->addWidget(top_);
  rows->addWidget(below_);
  rows->setSizes({460, 240});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(rows);
  refresh_.setInterval(kKernelsRefreshMs);
  connect(&refresh_, &QTimer::timeout, this, [this] {
    if (isVisible() && run_ && run_->live()) refresh();
  });
  refresh_.start();
  connect(instances_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& index) {
    if (const auto* row = instance_model_->at(index.row()); row && run_)
      selection_->reveal(SpanChoice{run_, row->track, row->span});
  });
  setRun(nullptr);
}

void KernelsPanel::buildTable(Pane* pane) {
  pane->legend()->hide();
  filter_ = new QLineEdit(pane);
  filter_->setPlaceholderText(tr("Filter kernels"));
  filter_->setAccessibleName(tr("Filter kernels"));
  filter_->setClearButtonEnabled(true);
  filter_->setFixedWidth(180);
  pane->addOption(filter_);
  group_ = option_button(tr("One row per"), pane);
  group_->setText(tr(kGroupings[0].text));
  auto* menu = new QMenu(group_);
  for (const Grouping& g : kGroupings)
    menu->addAction(tr(g.text), this, [this, g] { by_ = g.by, group_->setText(tr(g.text)), refresh(); });
  group_->setMenu(menu);
  pane->addOption(group_);
  sorted_.setSourceModel(&model_);
  sorted_.setSortRole(kSortRole);
  sorted_.setFilterCaseSensitivity(Qt::CaseInsensitive);
  sorted_.setFilterKeyColumn(KernelModel::Name);
  table_->setModel(&sorted_);
  style_table(*table_, tr("Kernels"));
  table_->setSortingEnabled(true);
  table_->sortByColumn(KernelModel::Total, Qt::DescendingOrder);
  table_->horizontalHeader()->setSectionResizeMode(KernelModel::Name, QHeaderView::Stretch);
  for (int c = 1; c < KernelModel::Columns; ++c)
    table_->setColumnWidth(
        c, c == KernelModel::Grid ? 142 : std::max(60, table_->horizontalHeader()->sectionSizeHint(c) + 2));
  empty_ = put_table(*pane, table_);
  connect(filter_, &QLineEdit::textChanged, &sorted_, &QSortFilterProxyModel::setFilterFixedString);
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, &KernelsPanel::drillDown);
}

void KernelsPanel::setRun(Run* run) {
  if (run_ != run && run_) disconnect(run_, nullptr, this, nullptr);
  run_ = run;
  if (run) connect(run, &QObject::destroyed, this, [this] { setRun(nullptr); });
  if (isVisible() || !run) refresh();
}

// The names are what tells the rows apart: in a narrow window the slowest of each, which stands below, and what Details
// says too make room for them.
void KernelsPanel::fitColumns() {
  constexpr int kNarrow = 1150;
  const bool narrow = width() < kNarrow;
  table_->setColumnHidden(KernelModel::Max, narrow);
  table_->setColumnHidden(KernelModel::Registers, narrow || !launched_);
  table_->setColumnHidden(KernelModel::Grid, !launched_);
}

void KernelsPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fitColumns();
}

void KernelsPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

// The newest spans: a table over a whole long run would hold the window up.
TimeRange KernelsPanel::lookedAt() const {
  const prof::Trace& trace = run_->trace;
  prof::TimeNs begin = trace.first_time();
  for (const prof::Track& track : trace.tracks()) {
    if (!is_work(track)) continue;
    size_t seen = 0;
    for (auto block = track.blocks.rbegin(); block != track.blocks.rend(); ++block)
      if ((seen += block->count) > kNewestSpans) {
        begin = std::max(begin, block->first);
        break;
      }
  }
  return {begin, trace.last_time() + 1};
}

void KernelsPanel::refresh() {
  const auto* chosen = model_.rowAt(sorted_.mapToSource(table_->currentIndex()).row());
  const std::string key = chosen ? chosen->key : std::string();
  std::vector<prof::KernelRow> rows;
  bool whole = true;
  if (run_) {
    const TimeRange range = lookedAt();
    whole = range.begin <= run_->trace.first_time();
    rows = prof::kernel_table(run_->trace, range.begin, range.end, by_);
    if (rows.empty()) rows = prof::kernel_table(run_->trace, range.begin, range.end, by_, prof::SpanKind::Op);
  }
  const size_t count = rows.size();
  table_->setVisible(count > 0), below_->setVisible(count > 0), empty_->setVisible(count == 0);
  empty_->setText(run_ ? tr("No kernel was traced in this run: choose another trace level than Off, then train again.")
                       : tr("Tick a run, or press Train: its kernels stand here, with the time of each."));
  // The CPU's ops have neither: two columns of dashes say nothing.
  const bool launched = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.detail.block[0] != 0; });
  launched_ = launched || count == 0;
  fitColumns();
  model_.setRows(std::move(rows));
  top_->setTitle(tr("Kernels"), !run_        ? tr("No run is ticked")
                                : count == 0 ? tr("No kernel was traced in this run")
                                : whole      ? tr("%1 · whole run").arg(run_->title)
                                             : tr("%1 · newest %2 spans").arg(run_->title, count_text(kNewestSpans)));
  int again = 0;
  for (int r = 0; r < sorted_.rowCount(); ++r)
    if (const auto* row = model_.rowAt(sorted_.mapToSource(sorted_.index(r, 0)).row()); row && row->key == key)
      again = r;
  if (sorted_.rowCount() > 0) table_->setCurrentIndex(sorted_.index(again, 0));
  drillDown();
}

void KernelsPanel::drillDown() {
  const prof::KernelRow* row = run_ ? model_.rowAt(sorted_.mapToSource(table_->currentIndex()).row()) : nullptr;
  below_->setTitle(tr("Executions"), row ? QString::fromStdString(row->key) : tr("choose a kernel"));
  if (!row) {
    histogram_->setData({}, theme().focus);
    return instance_model_->setRows({});
  }
  fillInstances(*row, lookedAt());
}

void KernelsPanel::fillInstances(const prof::KernelRow& row, TimeRange range) {
  const prof::Trace& trace = run_->trace;
  const auto belongs = [&](const prof::Span& s) {
    const prof::OpInfo *op = op_of(trace, s.op), *own = op_of(trace, row.op);
    switch (by_) {
      case prof::GroupBy::Name:
        return s.name == row.name;
      case prof::GroupBy::Shape:
        return s.name == row.name && trace.detail(s.detail) == row.detail;
      case prof::GroupBy::Op:
        return s.op == row.op;
      case prof::GroupBy::Layer:
        return op && own && op->layer == own->layer;
      case prof::GroupBy::Phase:
        return op && own && op->phase == own->phase;
    }
    return false;
  };
  std::vector<InstanceModel::Row> all;
  std::vector<double> us;
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    if (!is_work(trace.tracks()[i])) continue;
    for_each_span(trace.tracks()[i], range.begin, range.end, [&](const prof::Span& s) {
      if (belongs(s)) all.push_back({i, s}), us.push_back(static_cast<double>(s.duration) / 1000);
      return true;
    });
  }
  HistogramData bins =
      app::histogram_of(us, 60,
                        !us.empty() && *std::max_element(us.begin(), us.end()) >
                                           20 * std::max(0.001, *std::min_element(us.begin(), us.end())));
  bins.unit = "µs", bins.caption = tr("duration, %1 executions").arg(count_text(static_cast<int64_t>(us.size()))) +
                                   (bins.log_x ? tr(" · log axis") : QString());
  histogram_->setData(std::move(bins), theme().of(row.meaning));
  const size_t kept = std::min(kInstances, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                    [](const auto& a, const auto& b) { return a.span.duration > b.span.duration; });
  all.resize(kept);
  instance_model_->setRows(std::move(all), run_->origin != RunOrigin::Imported && !run_->recording);
}

}  // namespace ws::app
