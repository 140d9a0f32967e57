#include "app/pages/kernels/kernels_panel.h"

#include <QEvent>
#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMouseEvent>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "app/text/units.h"
#include "app/timeline/block_label.h"
#include "app/timeline/meaning_legend.h"
#include "app/timeline/time_scale.h"
#include "app/widgets/instruction_view.h"
#include "app/widgets/labels.h"
#include "app/widgets/theme.h"
#include "app/workspace/card_limits.h"
#include "app/workspace/marked_steps.h"
#include "profiling/analysis/launch_stacks.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/kernel_names.h"
#include "profiling/trace/span_walk.h"

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
                                   {prof::GroupBy::Line, "By line"},
                                   {prof::GroupBy::Shape, "By name and shape"}};

bool is_work(const prof::Track& track) {
  return track.kind == prof::TrackKind::Stream || track.kind == prof::TrackKind::GraphLaunches ||
         track.kind == prof::TrackKind::CpuThread || prof::times_collectives(track);
}

constexpr int kNameWidth = 300, kLeastNameWidth = 220;

int width_of(const QHeaderView& header, int column) {
  const int least = column == KernelsPanel::Grid ? 142 : column == KernelsPanel::Limit ? 108 : 60;
  return std::max(least, header.sectionSizeHint(column) + 2);
}

QString readable_name(const prof::KernelRow& row) {
  constexpr size_t kMostLetters = 90;
  return QString::fromStdString(prof::shortened(prof::plain_kernel_name(row.key), kMostLetters));
}

// The executions of one kernel. `own`: a run of ours, which marks its steps and its evaluations.
Table instances_table(const prof::Trace* trace, const std::vector<prof::FoundSpan>& spans, bool own) {
  Table table{{{"us", "duration", "µs", Table::Kind::Time}, {"step", "step", "", Table::Kind::Count}, {"begin", "begins at", "", Table::Kind::Count}}, {}};
  for (const auto& [track, span] : spans) {
    Table::Cell step = span.step ? Table::Cell(int64_t{span.step} - 1) : Table::Cell(), begin(span.start);
    const prof::OpInfo* op = trace ? op_of(*trace, span.op) : nullptr;
    if (!span.step && own) step.text = (op && op->phase == "evaluate" ? QObject::tr("evaluation") : QObject::tr("outside of the steps")).toStdString();
    begin.text = offset_time(span.start, 1000).toStdString();
    table.rows.push_back({{static_cast<double>(span.duration) / 1000, step, begin}});
  }
  return table;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// What names have in common is cut away at both ends, up to whole words: "<64, 32>" and "<128, 64>" are left.
std::vector<std::string> differences(const std::vector<std::string>& names) {
  size_t head = names[0].size(), tail = head;
  for (const std::string& name : names) {
    const size_t most = std::min(name.size(), names[0].size());
    size_t same = 0, end = 0;
    while (same < most && name[same] == names[0][same]) ++same;
    while (end < most && name[name.size() - 1 - end] == names[0][names[0].size() - 1 - end]) ++end;
    head = std::min(head, same), tail = std::min(tail, end);
  }
  while (head > 0 && in_word(names[0][head - 1])) --head;
  while (tail > 0 && in_word(names[0][names[0].size() - tail])) --tail;
  std::vector<std::string> all;
  for (const std::string& name : names) all.push_back(head + tail < name.size() ? name.substr(head, name.size() - head - tail) : std::string());
  return all;
}

std::vector<std::string> items_of(const std::string& text) {
  constexpr std::string_view kBetween = ", ";
  std::vector<std::string> items;
  size_t begin = 0;
  for (size_t end = text.find(kBetween); end != std::string::npos; end = text.find(kBetween, begin)) {
    items.push_back(text.substr(begin, end - begin));
    begin = end + kBetween.size();
  }
  items.push_back(text.substr(begin));
  return items;
}

// Keeps the items that differ, if all lists are equally long: "false, 64, 32" and "false, 128, 32" become "64" and "128".
std::vector<std::string> differing_items(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::string>> lists;
  for (const std::string& text : texts) lists.push_back(items_of(text));
  if (std::ranges::any_of(lists, [&](const auto& list) { return list.size() != lists[0].size(); })) return texts;
  std::vector<std::string> left(texts.size());
  for (size_t item = 0; item < lists[0].size(); ++item) {
    if (std::ranges::all_of(lists, [&](const auto& list) { return list[item] == lists[0][item]; })) continue;
    for (size_t i = 0; i < texts.size(); ++i) left[i] += (left[i].empty() ? "" : ", ") + lists[i][item];
  }
  return left;
}

// Rows of different kernels with one short name get what differs: the template, or its arguments, or the launch.
void make_distinct(Table& table, const std::vector<prof::KernelRow>& rows) {
  constexpr size_t kLetters = 44;
  std::map<std::string, std::vector<size_t>> alike;
  for (size_t i = 0; i < rows.size(); ++i) alike[table.rows[i].cells[0].text].push_back(i);
  for (const auto& [name, places] : alike) {
    if (places.size() < 2 || name.empty()) continue;
    std::vector<std::string> keys, functions;
    for (const size_t i : places) keys.push_back(prof::plain_kernel_name(rows[i].key)), functions.push_back(keys.back().substr(0, keys.back().find('<')));
    const bool distinct = std::set(functions.begin(), functions.end()).size() == functions.size();
    const std::vector<std::string> parts = distinct ? functions : differing_items(differences(keys));
    for (size_t i = 0; i < places.size(); ++i)
      if (!parts[i].empty()) table.rows[places[i]].cells[0].text += " · " + prof::shortened(parts[i], kLetters);
  }
}

// Norms whose name does not say so: "bn_bw_1C11_kernel_new · batch norm".
void name_norms(Table& table, const std::vector<prof::KernelRow>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string kind(prof::kind_of_reduction(rows[i].key));
    std::string& name = table.rows[i].cells[0].text;
    if (kind.ends_with("norm") && name.find("norm") == std::string::npos && name.find("Norm") == std::string::npos) name += " · " + kind;
  }
}

// Names of kernels lose their template arguments, which the tip has. Lines, modules and ops stay unchanged.
Table table_of(const std::vector<prof::KernelRow>& rows, prof::GroupBy by) {
  static const std::vector<std::string> kKeys{"name",   "count",  "total_us", "share",   "min_us", "mean_us",   "stddev_us", "p50_us",       "p90_us",
                                              "p95_us", "p99_us", "p999_us",  "max_us",  "launch", "registers", "occupancy", "occupancy_limit", "with_calls_us"};
  Table table = with_columns(prof::kernel_rows(rows, "name"), kKeys);
  const bool kernels = by == prof::GroupBy::Name || by == prof::GroupBy::Shape;
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].kind != prof::SpanKind::GraphRun) {
      const bool shortens = kernels && rows[i].kind == prof::SpanKind::Kernel;
      table.rows[i].cells[0].text = shortens ? prof::short_kernel_name(rows[i].key) : rows[i].key;
      table.rows[i].cells[0].tip = rows[i].key;
    }
  if (by == prof::GroupBy::Name) make_distinct(table, rows);
  if (kernels) name_norms(table, rows);
  return table;
}

// A program without GPU work shows its own ranges as rows.
bool holds(const prof::Track& track, prof::SpanKind kind) {
  return kind == prof::SpanKind::Phase ? track.kind == prof::TrackKind::Ranges : is_work(track);
}

// "Reduction takes 61 % of the kernel time and matrix product 20 %; the kernel with the most time is bn_bw_1C11_kernel_new, 11 %". Empty if rows lie inside others.
QString largest_part(const std::vector<prof::KernelRow>& rows, const Table& table) {
  if (rows.empty() || rows.front().kind == prof::SpanKind::Phase) return {};
  std::map<QString, double> kinds;
  for (const prof::KernelRow& row : rows) kinds[ws::app::meaning_name(row.meaning)] += row.share;
  std::vector<std::pair<QString, double>> most(kinds.begin(), kinds.end());
  std::ranges::stable_sort(most, std::greater{}, &std::pair<QString, double>::second);
  const auto row = std::ranges::max_element(rows, {}, &prof::KernelRow::share);
  const QString name = most[0].first, of = row->kind == prof::SpanKind::Op ? QObject::tr("the op time") : QObject::tr("the kernel time");
  constexpr double kWorthNaming = 0.1;
  const bool second = most.size() > 1 && most[1].second >= kWorthNaming;
  const QString next = second ? QObject::tr(" and %1 %2 %").arg(most[1].first, fixed_text(100 * most[1].second, 0)) : QString();
  const QString longest = row->kind == prof::SpanKind::Op ? QObject::tr("op") : row->kind == prof::SpanKind::GraphRun ? QObject::tr("graph") : QObject::tr("kernel");
  return QObject::tr("%1 takes %2 % of %3%4; the %7 with the most time is %5, %6 %")
      .arg(name.left(1).toUpper() + name.mid(1), fixed_text(100 * most[0].second, 0), of, next,
           QString::fromStdString(table.rows[static_cast<size_t>(row - rows.begin())].cells[0].text), fixed_text(100 * row->share, 0), longest);
}

QString part_text(bool whole) { return whole ? QObject::tr("Whole run") : QObject::tr("In the steps"); }

bool calls_from(const prof::OpInfo& op, const std::string& line) {
  return std::ranges::any_of(prof::stack_of(op), [&](const prof::CodeFrame& frame) { return prof::place_text(frame) == line; });
}

}  // namespace

KernelsPanel::KernelsPanel(Focus* focus, QWidget* parent)
    : QWidget(parent),
      focus_(focus),
      table_(new QTableView(this)),
      instances_(new QTableView(this)),
      histogram_(new HistogramView(tr("Durations of the chosen kernel"), this)),
      source_(new SourceView(this)) {
  top_ = new Pane(tr("Kernel times"), this);
  buildTable(top_);
  below_ = new Pane(tr("Executions"), this);
  below_->legend()->hide();
  no_source_ = label(below_, ui_font(11), {.wraps = false, .quiet = true, .plain = true});
  below_->addOption(no_source_);
  auto* split = new QSplitter(Qt::Horizontal, below_);
  executions_.setTable(instances_table(nullptr, {}, false));
  instances_->setModel(&executions_);
  style_table(*instances_, tr("Executions of the chosen kernel, slowest first"));
  instances_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  instances_->horizontalHeader()->setMinimumSectionSize(64);
  instances_->setMinimumWidth(230), source_->setMinimumWidth(150), histogram_->setMinimumWidth(120);
  split->addWidget(histogram_);
  split->addWidget(instances_);
  split->addWidget(source_);
  split->setSizes({260, 320, 560});
  source_->hide();
  below_->setBody(split);
  auto* rows = new QSplitter(Qt::Vertical, this);
  rows->addWidget(top_);
  rows->addWidget(below_);
  rows->setStretchFactor(0, 1);
  below_->setMinimumHeight(210);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(rows);
  refresh_.setInterval(kKernelsRefreshMs);
  connect(&refresh_, &QTimer::timeout, this, [this] {
    if (isVisible() && run_ && run_->live()) refresh();
  });
  refresh_.start();
  connect(instances_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& index) {
    if (run_ && index.isValid()) {
      const prof::FoundSpan& one = shown_[static_cast<size_t>(index.row())];
      focus_->reveal(SpanChoice{run_, one.track, one.span});
    }
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
    menu->addAction(tr(g.text), this, [this, g] { groupBy(g.by); });
  group_->setMenu(menu);
  pane->addOption(group_);
  part_ = option_button(tr("Which part of the run"), pane);
  auto* parts = new QMenu(part_);
  for (const bool whole : {false, true}) parts->addAction(part_text(whole), this, [this, whole] { showWholeRun(whole); });
  part_->setMenu(parts);
  part_->setFixedWidth(part_->fontMetrics().horizontalAdvance(part_text(false)) + 32);  // it never moves what stands beside it
  pane->addOption(part_);
  model_.setTable(table_of({}, by_));
  sorted_.setSourceModel(&model_);
  sorted_.setSortRole(kSortRole);
  sorted_.setFilterCaseSensitivity(Qt::CaseInsensitive);
  sorted_.setFilterKeyColumn(KernelsPanel::Name);
  table_->setModel(&sorted_);
  table_->setTextElideMode(Qt::ElideMiddle);  // kernels differ at the end of their names
  style_table(*table_, tr("Kernels"));
  table_->setSortingEnabled(true);
  table_->sortByColumn(KernelsPanel::Total, Qt::DescendingOrder);
  for (int c = 1; c < KernelsPanel::Columns; ++c) table_->setColumnWidth(c, width_of(*table_->horizontalHeader(), c));
  table_->horizontalHeader()->moveSection(KernelsPanel::WithCalls, KernelsPanel::Total + 1);
  buildColumnMenu(pane);
  table_->viewport()->installEventFilter(this);
  empty_ = put_table(*pane, table_);
  headline_ = label(pane, ui_font(17, 600), {.selectable = true});
  headline_->setContentsMargins(10, 0, 10, 4);
  static_cast<QVBoxLayout*>(empty_->parentWidget()->layout())->insertWidget(0, headline_);
  empty_->parentWidget()->layout()->addWidget(colours_ = new MeaningLegend(pane));
  connect(filter_, &QLineEdit::textChanged, &sorted_, &QSortFilterProxyModel::setFilterFixedString);
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, &KernelsPanel::drillDown);
}

void KernelsPanel::setRun(Run* run) {
  if (run_ != run && run_) disconnect(run_, nullptr, this, nullptr);
  if (run_ != run) texts_.clear(), disassembling_.drop();
  run_ = run;
  if (run) connect(run, &QObject::destroyed, this, [this] { setRun(nullptr); });
  if (run) connect(run, &Run::foldsChanged, this, &KernelsPanel::refresh, Qt::UniqueConnection);
  if (isVisible() || !run) refresh();
}

// The context menu of the header. A button opens it too, for people who do not expect a menu there.
void KernelsPanel::buildColumnMenu(Pane* pane) {
  QPushButton* button = option_button(tr("Columns"), pane);
  button->setText(tr("Columns"));
  column_menu_ = new QMenu(button);
  column_actions_.assign(KernelsPanel::Columns, nullptr);
  for (int c = 1; c < KernelsPanel::Columns; ++c) {
    QAction* action = column_menu_->addAction(model_.headerData(c, Qt::Horizontal, Qt::DisplayRole).toString());
    action->setCheckable(true);
    connect(action, &QAction::triggered, this, [this, c](bool on) { showColumn(c, on); });
    column_actions_[static_cast<size_t>(c)] = action;
  }
  column_menu_->addSeparator();
  column_menu_->addAction(tr("Default columns"), this, &KernelsPanel::showUsualColumns);
  button->setMenu(column_menu_);
  pane->addOption(button);
  QHeaderView* header = table_->horizontalHeader();
  header->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(header, &QWidget::customContextMenuRequested, this,
          [this, header](QPoint at) { column_menu_->popup(header->mapToGlobal(at)); });
}

// Names distinguish the rows. In a narrow window, the least useful columns are hidden to make space for them.
std::vector<int> KernelsPanel::usualColumns() const {
  std::vector<int> columns{KernelsPanel::Count,     KernelsPanel::Total,    KernelsPanel::Share, KernelsPanel::Mean,
                           KernelsPanel::Median,    KernelsPanel::P99,      KernelsPanel::Max,   KernelsPanel::Grid,
                           KernelsPanel::Registers, KernelsPanel::Occupancy, KernelsPanel::Limit};
  if (!launched_)
    std::erase_if(columns, [](int c) { return c >= KernelsPanel::Grid; });
  else if (!card_known_)
    std::erase_if(columns, [](int c) { return c == KernelsPanel::Occupancy || c == KernelsPanel::Limit; });
  if (calls_known_) columns.push_back(KernelsPanel::WithCalls);
  const auto wide = [&] {
    int sum = kNameWidth;
    for (const int c : columns)
      sum += table_->columnWidth(c) > 0 ? table_->columnWidth(c) : width_of(*table_->horizontalHeader(), c);
    return sum;
  };
  for (const int least : {KernelsPanel::Registers, KernelsPanel::Max, KernelsPanel::Grid, KernelsPanel::Limit})
    if (wide() > table_->viewport()->width()) std::erase(columns, least);
  return columns;
}

// The name gets the remaining width. If the columns do not fit, the table scrolls sideways.
void KernelsPanel::fitColumns() {
  const std::vector<int> shown = chosen_.empty() ? usualColumns() : chosen_;
  int taken = 0;
  for (int c = 1; c < KernelsPanel::Columns; ++c) {
    const bool on = std::find(shown.begin(), shown.end(), c) != shown.end();
    table_->setColumnHidden(c, !on);
    column_actions_[static_cast<size_t>(c)]->setChecked(on);
    if (on) taken += table_->columnWidth(c);
  }
  table_->setColumnWidth(KernelsPanel::Name, std::max(kLeastNameWidth, table_->viewport()->width() - taken));
}

void KernelsPanel::showColumn(int column, bool shown) {
  if (chosen_.empty()) chosen_ = usualColumns();
  std::erase(chosen_, column);
  if (shown) chosen_.push_back(column);
  fitColumns();
}

void KernelsPanel::showUsualColumns() { chosen_.clear(); fitColumns(); }

QByteArray KernelsPanel::columns() const {
  QByteArray text;
  for (const int column : chosen_) text += QByteArray::number(column) + ' ';
  return text;
}

void KernelsPanel::setColumns(const QByteArray& chosen) {
  chosen_.clear();
  for (const QByteArray& word : chosen.split(' '))
    if (const int column = word.toInt(); column > 0 && column < KernelsPanel::Columns) chosen_.push_back(column);
  fitColumns();
}

// A scroll bar that appears also takes width.
bool KernelsPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_->viewport() && event->type() == QEvent::Resize) fitColumns();
  if (watched == table_->viewport() && event->type() == QEvent::MouseButtonRelease) foldAt(static_cast<QMouseEvent*>(event)->pos());
  return QWidget::eventFilter(watched, event);
}

void KernelsPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  fitColumns();
  refresh();
}

void KernelsPanel::showWholeRun(bool whole) {
  whole_ = whole;
  refresh();
}

bool KernelsPanel::own() const { return run_ && run_->origin != RunOrigin::Imported && !run_->recording; }

// Something ran outside of the steps: matrix products that were tried, evaluations. Of a recorded program, before them.
bool KernelsPanel::hasOtherWork() const {
  const TimeRange steps = run_ ? marked_steps(run_->trace) : TimeRange();
  if (steps.length() == 0) return false;
  bool in = false, out = false;
  for (const prof::Track& track : run_->trace.tracks())
    if (is_work(track))
      for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && !(in && out); ++block)
        for (const prof::Span& span : block->spans) (own() ? span.step == 0 : span.start < steps.begin) ? out = true : in = true;
  return in && out;
}

// The newest spans: a table over a whole long run would block the window.
TimeRange KernelsPanel::lookedAt() const {
  const prof::Trace& trace = run_->trace;
  prof::TimeNs begin = inSteps() && !own() ? marked_steps(trace).begin : trace.first_time();
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

const prof::KernelRow* KernelsPanel::rowAt(int row) const {
  return row >= 0 && row < static_cast<int>(rows_.size()) ? &rows_[static_cast<size_t>(row)] : nullptr;
}

void KernelsPanel::refresh() {
  const auto* chosen = rowAt(sorted_.mapToSource(table_->currentIndex()).row());
  const std::string key = chosen ? chosen->key : std::string();
  std::vector<prof::KernelRow> rows;
  bool whole = true;
  has_other_work_ = hasOtherWork();
  if (run_) {
    const TimeRange range = lookedAt();
    whole = range.begin <= (inSteps() && !own() ? marked_steps(run_->trace).begin : run_->trace.first_time());
    rows = prof::work_table(run_->trace, range.begin, range.end, by_, inSteps() && own(), run_->foldedBlocks());
    const auto limits = card_limits(*run_);
    card_known_ = limits.has_value();
    if (limits) prof::add_occupancy(rows, *limits);
  }
  part_->setEnabled(has_other_work_);
  part_->setText(part_text(!inSteps()));
  const size_t count = rows.size();
  table_->setVisible(count > 0), below_->setVisible(count > 0), empty_->setVisible(count == 0);
  std::set<prof::Meaning> meanings;
  for (const prof::KernelRow& row : rows) meanings.insert(row.meaning);
  colours_->setMeanings(meanings);
  const QString reason =
      !run_                ? tr("Click a run or press Train to see its kernels and their times.")
      : run_->hasChoices() ? tr("No kernel was traced in this run. Choose the trace level Graphs or Kernels, then train again.")
                           : tr("No kernel was recorded: the program did not use the GPU.");
  empty_->setText(reason);
  // CPU ops have no grid and no registers: two columns of dashes would be useless.
  const bool launched = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.detail.block[0] != 0; });
  launched_ = launched || count == 0;
  calls_known_ = std::ranges::any_of(rows, [](const auto& row) { return row.with_calls > 0; });
  fitColumns();
  const bool ranges = count > 0 && rows.front().kind == prof::SpanKind::Phase;
  rows_ = std::move(rows);
  const Table shown = shownRows();
  headline_->setText(largest_part(rows_, shown));
  headline_->setVisible(!headline_->text().isEmpty());
  model_.setTable(shown);
  const QString note = !run_        ? tr("No run is chosen")
                       : count == 0 ? tr("No kernel was traced in this run")
                       : whole      ? run_->title + " · " + (!inSteps() ? tr("whole run") : own() ? tr("in the steps") : tr("from the first step on"))
                                    : tr("%1 · newest %2 spans").arg(run_->title, count_text(kNewestSpans));
  top_->setTitle(ranges ? tr("Modules and ops") : tr("Kernel times"), note);
  int again = 0;
  for (int r = 0; r < sorted_.rowCount(); ++r)
    if (const auto* row = rowAt(sorted_.mapToSource(sorted_.index(r, 0)).row()); row && row->key == key)
      again = r;
  if (sorted_.rowCount() > 0) table_->setCurrentIndex(sorted_.index(again, 0));
  drillDown();
}

QString KernelsPanel::headline() const { return headline_->text(); }

void KernelsPanel::groupBy(prof::GroupBy by) {
  by_ = by;
  group_->setText(tr(std::ranges::find(kGroupings, by, &Grouping::by)->text));
  refresh();
}

// With one row for each layer, an arrow folds and opens the block that holds the layer.
Table KernelsPanel::shownRows() const {
  Table table = table_of(rows_, by_);
  for (size_t i = 0; i < rows_.size(); ++i)
    if (const std::string block = blockOf(rows_[i]); !block.empty()) {
      const bool folded = block == rows_[i].key;
      table.rows[i].cells[0].text = folded ? "▸ " + block : "▾ " + block + " · " + rows_[i].key;
      table.rows[i].cells[0].tip = folded ? "Click the arrow to see the layers of this block." : "Click the arrow to fold this block.";
    }
  return table;
}

std::string KernelsPanel::blockOf(const prof::KernelRow& row) const {
  if (!run_ || by_ != prof::GroupBy::Layer) return {};
  const auto blocks = run_->blocks();
  if (const auto found = blocks.find(row.key); found != blocks.end()) return found->second;
  return std::ranges::any_of(blocks, [&](const auto& layer) { return layer.second == row.key; }) ? row.key : std::string();
}

void KernelsPanel::foldAt(QPoint at) {
  constexpr int kArrow = 24;
  const QModelIndex index = table_->indexAt(at);
  const prof::KernelRow* row = index.isValid() ? rowAt(sorted_.mapToSource(index).row()) : nullptr;
  if (!row || index.column() != KernelsPanel::Name || at.x() - table_->columnViewportPosition(KernelsPanel::Name) > kArrow) return;
  if (const std::string block = blockOf(*row); !block.empty()) run_->setFolded(block, block != row->key);
}

void KernelsPanel::drillDown() {
  const prof::KernelRow* row = run_ ? rowAt(sorted_.mapToSource(table_->currentIndex()).row()) : nullptr;
  below_->setTitle(tr("Executions"), row ? readable_name(*row) : tr("choose a kernel"));
  no_source_->clear();
  if (!row) {
    histogram_->setData({}, theme().focus);
    histogram_->show();
    source_->hide();
    return showInstances({}, false);
  }
  const TimeRange range = lookedAt();
  fillInstances(*row, range);
  showSource(*row, range);
  if (source_->isVisibleTo(below_) && source_->table()->model()->rowCount() == 0 && source_->instructions()->isHidden()) {  // then its place goes to the executions
    no_source_->setText(source_->note());
    source_->hide();
  }
  constexpr int kWidthForAll = 1300;  // in a narrower window instructions take the place of the distribution
  histogram_->setVisible(source_->isHidden() || source_->instructions()->isHidden() || width() >= kWidthForAll);
}

// The source of a kernel whose instructions were sampled, at the line with the most samples. False if its file is not known.
bool KernelsPanel::showSamples(const prof::KernelRow& row) {
  if (run_->trace.stalls.empty() || row.kind != prof::SpanKind::Kernel || by_ == prof::GroupBy::Line) {
    source_->setInstructions({}, {});
    return false;
  }
  std::vector<prof::StallRow> lines = prof::stalls_by_line(run_->trace, run_->trace.name(row.name));
  const std::string& kernel = run_->trace.name(row.name);
  const bool has_code = !prof::code_of(run_->trace, kernel).empty();
  has_code ? showInstructions(kernel) : source_->setInstructions({}, {});
  const auto first = std::ranges::find_if(lines, [](const prof::StallRow& line) { return line.line > 0 && QFileInfo::exists(QString::fromStdString(line.file)); });
  if (first == lines.end()) {
    const prof::OpInfo* op = op_of(run_->trace, row.op);
    if (!has_code || (op && prof::source_place(prof::line_of(*op)))) return false;  // the line that launches it
    const auto named = std::ranges::find_if(lines, [](const prof::StallRow& line) { return line.line > 0; });
    source_->setVisible(true);
    source_->showNoSource(named == lines.end() ? std::string() : named->file);
    return true;
  }
  const prof::SourcePlace place{first->file, first->line};
  std::erase_if(lines, [&](const prof::StallRow& line) { return line.file != place.path; });
  source_->setVisible(true);
  source_->showLine(*run_, place, {}, 0, lines);
  return true;
}

// With offsets at once, and with their texts when the disassembler has ended.
void KernelsPanel::showInstructions(const std::string& kernel) {
  const std::vector<prof::SampledCode> codes = prof::code_of(run_->trace, kernel);
  std::vector<prof::Disassembly> texts;
  QString sentence;
  for (const prof::SampledCode& code : codes) {
    const auto known = texts_.find({code.module, code.function});
    if (known == texts_.end()) continue;
    texts.push_back(known->second);
    if (!known->second.missing.empty()) sentence = QString::fromStdString(known->second.missing);
  }
  source_->setInstructions(prof::stalls_by_instruction(run_->trace, kernel, texts), sentence);
  if (texts.size() == codes.size() || disassembling_.running()) return;
  disassembling_.start(
      [this, codes, kernel](const Job::Side& side) {
        std::map<std::pair<uint64_t, prof::NameId>, prof::Disassembly> made;
        for (const prof::SampledCode& code : codes) made[{code.module, code.function}] = prof::disassembled(code);
        side.post([this, made] { texts_.insert(made.begin(), made.end()); });
      },
      [this](const QString& problem) {
        if (problem.isEmpty()) drillDown();
      });
}

void KernelsPanel::showSource(const prof::KernelRow& row, TimeRange range) {
  if (showSamples(row)) return;
  const prof::OpInfo* op = op_of(run_->trace, row.op);
  const auto place = by_ == prof::GroupBy::Line ? prof::source_place(row.key)
                     : op                       ? prof::source_place(prof::line_of(*op))
                                                : std::nullopt;
  source_->setVisible(place.has_value());
  if (!place) return;
  int64_t steps = 0;
  for (const prof::Track& track : run_->trace.tracks())
    if (track.kind == prof::TrackKind::Steps)
      prof::for_each_span(track, range.begin, range.end, [&](const prof::Span&) { ++steps; return true; });
  source_->showLine(*run_, *place, prof::time_by_line(run_->trace, range, place->path), steps);
}

void KernelsPanel::showInstances(std::vector<prof::FoundSpan> spans, bool own) {
  executions_.setTable(instances_table(nullptr, {}, own));  // none of the new ones is chosen
  shown_ = std::move(spans);
  executions_.setTable(instances_table(run_ ? &run_->trace : nullptr, shown_, own));
}

void KernelsPanel::fillInstances(const prof::KernelRow& row, TimeRange range) {
  const prof::Trace& trace = run_->trace;
  const auto folded = run_->foldedBlocks();
  const auto belongs = [&](const prof::Span& s) {
    if (s.span_kind() != row.kind || (inSteps() && own() && s.step == 0)) return false;
    if (row.kind == prof::SpanKind::GraphRun) return s.name == row.name;
    const prof::OpInfo *op = op_of(trace, s.op), *own = op_of(trace, row.op);
    switch (by_) {
      case prof::GroupBy::Name:
        return s.name == row.name;
      case prof::GroupBy::Shape:
        return s.name == row.name && trace.detail(s.detail) == row.detail;
      case prof::GroupBy::Op:
        return s.op == row.op || (op && own && op->name == own->name && op->layer == own->layer && op->phase == own->phase);
      case prof::GroupBy::Layer:
      case prof::GroupBy::Block:
        return op && own && (op->layer == own->layer || (folded.contains(op->layer) && folded.at(op->layer) == row.key));
      case prof::GroupBy::Phase:
        return op && own && op->phase == own->phase;
      case prof::GroupBy::Line:
        if (row.time.count == 0) return op && calls_from(*op, row.key);
        return op && own && prof::line_of(*op) == prof::line_of(*own);
    }
    return false;
  };
  std::vector<prof::FoundSpan> all;
  std::vector<double> us;
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    if (!holds(trace.tracks()[i], row.kind)) continue;
    prof::for_each_span(trace.tracks()[i], range.begin, range.end, [&](const prof::Span& s) {
      if (belongs(s)) all.push_back({i, s}), us.push_back(static_cast<double>(s.duration) / 1000);
      return true;
    });
  }
  HistogramData bins =
      app::histogram_of(us, 60,
                        !us.empty() && *std::max_element(us.begin(), us.end()) >
                                           20 * std::max(0.001, *std::min_element(us.begin(), us.end())));
  const double most = bins.counts.empty() ? 0 : std::ranges::max(bins.counts);
  bins.unit = "µs", bins.caption = tr("duration, %1 executions · highest bar: %2").arg(count_text(static_cast<int64_t>(us.size())), count_text(static_cast<int64_t>(most))) +
                                   (bins.log_x ? tr(" · log axis") : QString());
  histogram_->setData(std::move(bins), theme().of(row.meaning));
  const size_t kept = std::min(kInstances, all.size());
  const bool own = this->own();
  // Training steps first: evaluations and tries have larger batches, and their executions would fill the top of the list.
  const auto outside = [own](const prof::FoundSpan& one) { return own && one.span.step == 0; };
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                    [&](const prof::FoundSpan& a, const prof::FoundSpan& b) {
                      return std::pair(outside(a), b.span.duration) < std::pair(outside(b), a.span.duration);
                    });
  all.resize(kept);
  // Kernels of a recorded program have no step number. Take it from the detected steps.
  for (auto& one : all) {
    const prof::Span* step = own || one.span.step != 0 ? nullptr : step_at(trace, one.span.start);
    if (step && step->start <= one.span.start && one.span.start < step->end()) one.span.step = step->step;
  }
  showInstances(std::move(all), own);
}

}  // namespace ws::app
