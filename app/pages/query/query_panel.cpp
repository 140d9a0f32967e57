#include "app/pages/query/query_panel.h"

#include <QFileInfo>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "app/core/sql/sql_examples.h"
#include "app/core/sql/sql_text.h"
#include "app/pages/query/query_plot.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/empty_words.h"
#include "app/widgets/paged_pane.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr size_t kMostRows = 100'000;
constexpr int64_t kMostBytes = 512 << 20;
constexpr std::chrono::seconds kLongest{20};

QString first_query() {
  return QStringLiteral("select run, short_name, count(step) as in_steps, round(sum(duration_ns) filter (where step is not null) / 1e3, 1) as steps_us,\n"
                        "       count(*) - count(step) as outside, round(sum(duration_ns) filter (where step is null) / 1e3, 1) as outside_us\n"
                        "from kernels group by run, short_name order by steps_us desc, outside_us desc limit 20");
}

// Changes whenever the file does: a run that is being written is read again.
std::string stamp(const std::string& path) {
  const QFileInfo file(QString::fromStdString(path)), log(QString::fromStdString(path) + "-wal");
  return QStringLiteral("%1 %2 %3 %4").arg(file.lastModified().toMSecsSinceEpoch()).arg(file.size())
             .arg(log.lastModified().toMSecsSinceEpoch()).arg(log.size()).toStdString() + path;
}

QString time_text(qint64 ms) { return ms < 1000 ? QObject::tr("%1 ms").arg(ms) : QObject::tr("%1 s").arg(fixed_text(static_cast<double>(ms) / 1e3, 1)); }

}  // namespace

RunDatabase& QueryPanel::Reader::of(const std::vector<std::string>& files, const std::vector<std::string>& names) {
  std::vector<std::string> now = names;
  for (const std::string& file : files) now.push_back(stamp(file));
  if (database && now == stamps) return *database;
  database.reset();
  database = std::make_unique<RunDatabase>(files, names);
  stamps = std::move(now);
  return *database;
}

QueryPanel::QueryPanel(QWidget* parent) : QWidget(parent) {
  auto* rows = new QSplitter(Qt::Vertical, this);
  auto* top = new QSplitter(Qt::Horizontal, rows);
  top->addWidget(buildQuery());
  top->addWidget(buildViews());
  rows->addWidget(buildAnswer());
  for (QSplitter* splitter : {rows, top}) splitter->setChildrenCollapsible(false);
  top->setStretchFactor(0, 1), rows->setStretchFactor(1, 1);
  views_pane_->setMinimumWidth(190);  // the first layout may be narrow
  top->setSizes({760, 270}), rows->setSizes({230, 430});
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(rows);
  setQuery(first_query());
  setRuns({});
  showVerdict(tr("Click a run: the query is answered about it."), false);
  showPlot();
}

QWidget* QueryPanel::buildQuery() {
  query_pane_ = new Pane(tr("Query"), this);
  query_pane_->legend()->hide();
  auto* button = option_button(tr("Examples"), query_pane_);
  button->setText(tr("Examples"));
  examples_ = new QMenu(button);
  connect(examples_, &QMenu::aboutToShow, this, &QueryPanel::fillExamples);
  button->setMenu(examples_);
  query_pane_->addOption(button);
  auto* body = new QWidget(query_pane_);
  editor_ = new QPlainTextEdit(body);
  editor_->setFont(mono_font(12));
  editor_->setAccessibleName(tr("Query in SQL"));
  editor_->setTabChangesFocus(true);
  editor_->installEventFilter(this);
  verdict_ = new QLabel(body);
  verdict_->setWordWrap(true);
  verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  ask_ = new QPushButton(tr("Run query"), body), stop_ = new QPushButton(tr("Stop"), body);
  ask_->setToolTip(tr("Answer the query (Ctrl+Enter)"));
  stop_->setToolTip(tr("Stop the query"));
  auto* line = new QHBoxLayout;
  line->addWidget(ask_), line->addWidget(stop_), line->addWidget(verdict_, 1);
  auto* column = new QVBoxLayout(body);
  column->addWidget(editor_, 1);
  column->addLayout(line);
  query_pane_->setBody(body);
  connect(ask_, &QPushButton::clicked, this, &QueryPanel::ask);
  connect(stop_, &QPushButton::clicked, this, &QueryPanel::stop);
  return query_pane_;
}

QWidget* QueryPanel::buildViews() {
  views_pane_ = new Pane(tr("Views"), this);
  views_pane_->legend()->hide();
  views_ = new QTreeWidget(views_pane_);
  views_->setAccessibleName(tr("Views and their columns"));
  views_->setHeaderHidden(true);
  views_->setFrameShape(QFrame::NoFrame);
  views_->setToolTip(tr("Double-click a name to put it into the query"));
  fillViews();
  connect(views_, &QTreeWidget::itemActivated, this, [this](const QTreeWidgetItem* item) {
    editor_->insertPlainText(item->text(0));
    editor_->setFocus();
  });
  show_whole_rows(*views_);
  views_pane_->setBody(views_);
  return views_pane_;
}

QWidget* QueryPanel::buildAnswer() {
  shown_ = new PagedPane(tr("Answer"), this);
  table_ = table_view(shown_, model_, sorter_, tr("Answer of the query"));
  table_->viewport()->installEventFilter(this);
  new EmptyWords(table_, tr("Results appear here. The tab Plot draws them."));
  plot_ = new QueryPlot(shown_);
  const int table_page = shown_->addPage(tr("Table"), table_), plot_page = shown_->addPage(tr("Plot"), plot_);
  auto* out = new QPushButton(theme_icon("export"), tr("Export…"), shown_);
  out->setProperty("small", true);
  out->setToolTip(tr("Write the table as CSV"));
  connect(out, &QPushButton::clicked, this, &QueryPanel::exportTable);
  shown_->addOption(table_page, out);
  x_button_ = option_button(tr("Column of the x axis"), shown_), y_button_ = option_button(tr("Column of the y axis"), shown_);
  for (QPushButton* button : {x_button_, y_button_}) {
    button->setMenu(new QMenu(button));
    shown_->addOption(plot_page, button);
  }
  connect(x_button_->menu(), &QMenu::aboutToShow, this, [this] { fillColumns(x_button_, &x_, false); });
  connect(y_button_->menu(), &QMenu::aboutToShow, this, [this] { fillColumns(y_button_, &y_, true); });
  return shown_;
}

void QueryPanel::fillExamples() {
  examples_->clear();
  for (const SqlExample& example : shipped_sql_examples())
    examples_->addAction(text(example.question), this, [this, &example] {
      setQuery(text(example.query));
      ask();
    });
  if (examples_->isEmpty()) examples_->addAction(tr("The manual is not installed"))->setEnabled(false);
}

void QueryPanel::fillViews() {
  for (const SqlView& view : sql_views()) {
    auto* item = new QTreeWidgetItem(views_, {text(view.name)});
    item->setToolTip(0, text(view.what));
    for (const SqlColumn& column : view.columns) {
      auto* child = new QTreeWidgetItem(item, {text(column.name)});
      child->setToolTip(0, text(column.what));
    }
  }
}

bool QueryPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched != editor_ && event->type() == QEvent::Resize) fit_columns(*table_, model_);
  if (watched != editor_ || event->type() != QEvent::KeyPress) return QWidget::eventFilter(watched, event);
  const auto* key = static_cast<QKeyEvent*>(event);
  const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
  if (!enter || !(key->modifiers() & Qt::ControlModifier)) return false;
  ask();
  return true;
}

QString QueryPanel::query() const { return editor_->toPlainText(); }
void QueryPanel::setQuery(const QString& sql) {
  if (!sql.isEmpty()) editor_->setPlainText(sql);
}
QString QueryPanel::verdict() const { return verdict_->text(); }

void QueryPanel::setRuns(const std::vector<Run*>& runs) {
  runs_.assign(runs.begin(), runs.end());
  showRuns();
  showButtons();
  askFirst();
}

// Until the user asks, the first query is answered by itself, about the runs that are shown.
void QueryPanel::askFirst() {
  const bool live = std::ranges::any_of(runs_, [](const QPointer<Run>& run) { return run && run->live(); });
  if (asked_ || live || !isVisible() || files().empty() || query() != first_query()) return;
  if (names() == first_about_) return;
  first_about_ = names();
  job_.drop();
  start();
}

void QueryPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  askFirst();
}

void QueryPanel::showRuns() {
  const std::vector<std::string> read = files(), names = this->names();
  QStringList shown;
  for (const std::string& name : names) shown << text(name);
  query_pane_->setTitle(tr("Query"), read.empty() ? tr("click a run to ask about it") : tr("about %1").arg(shown.join(QStringLiteral(", "))));
  std::map<QString, int> of_runs;
  for (size_t i = 0, file = 0; i < runs_.size(); ++i)
    if (runs_[i] && !runs_[i]->path.isEmpty()) of_runs[text(names[file++])] = runs_[i]->slot;
  plot_->setRunColours(std::move(of_runs));
}

std::vector<std::string> QueryPanel::files() const {
  std::vector<std::string> paths;
  for (const QPointer<Run>& run : runs_)
    if (run && !run->path.isEmpty()) paths.push_back(run->path.toStdString());
  return paths;
}

// The names in the window: "B · MNIST 784-128-10 · arena".
std::vector<std::string> QueryPanel::names() const {
  std::vector<std::string> wanted;
  for (const QPointer<Run>& run : runs_)
    if (run && !run->path.isEmpty()) wanted.push_back(((run->slot >= 0 ? run_letter(run->slot) + " · " : QString()) + run->title).toStdString());
  return sql_run_names(wanted);
}

void QueryPanel::ask() {
  if (running() && asked_) return;
  asked_ = true;
  job_.drop();
  start();
}

void QueryPanel::start() {
  const std::vector<std::string> read = files();
  if (read.empty()) return showVerdict(tr("Click a run that has a file: the query reads its file."), true);
  showRuns();  // one may have another name by now
  auto answer = std::make_shared<Answer>();
  clock_.start();
  showVerdict(tr("Reading and answering …"), false);
  job_.start(
      [reader = reader_, read, names = names(), answer, sql = query().toStdString()](const Job::Side& side) {
        RunDatabase& database = reader->of(read, names);
        answer->table = database.query(sql, {.time = kLongest, .rows = kMostRows, .bytes = kMostBytes, .cancelled = side.cancelled()});
        answer->problems = database.problems();
      },
      [this, answer](const QString& problem) { answered(*answer, problem); });
  showButtons();
}

void QueryPanel::stop() { job_.cancel(); }

// A refused query leaves the last answer where it is.
void QueryPanel::answered(const Answer& answer, const QString& problem) {
  showButtons();
  if (!problem.isEmpty()) return showVerdict(problem, true);
  model_.setTable(to_table(answer.table));
  sorter_.sort(-1);
  fit_columns(*table_, model_);
  x_ = y_ = -1;
  showPlot();
  const auto rows = static_cast<int64_t>(answer.table.rows.size());
  QString line = (rows == 1 ? tr("1 row in %1") : tr("%2 rows in %1").arg(QStringLiteral("%1"), count_text(rows))).arg(time_text(clock_.elapsed()));
  for (const std::string& part : answer.problems) line += QStringLiteral("\n") + text(part);
  showVerdict(line, !answer.problems.empty());
}

void QueryPanel::showVerdict(const QString& sentence, bool problem) {
  QPalette palette = this->palette();
  if (problem) palette.setColor(QPalette::WindowText, theme().worse);
  verdict_->setPalette(palette);
  verdict_->setText(sentence);
}

void QueryPanel::showButtons() {
  ask_->setEnabled(!running() && !files().empty());
  stop_->setEnabled(running());
}

void QueryPanel::showPlot() {
  const Table& table = model_.table();
  const QueryPicture picture = query_picture(table, x_, y_);
  const auto name = [&](int column) { return column < 0 ? tr("row") : text(table.columns[static_cast<size_t>(column)].name); };
  x_button_->setText(tr("x: %1").arg(name(picture.x)));
  y_button_->setText(tr("y: %1").arg(picture.y < 0 ? tr("none") : name(picture.y)));
  for (QPushButton* button : {x_button_, y_button_}) button->setEnabled(picture.y >= 0), button->setToolTip(picture.left_out);
  plot_->setPicture(picture, table);
}

void QueryPanel::fillColumns(QPushButton* button, int* chosen, bool numbers_only) {
  button->menu()->clear();
  const Table& table = model_.table();
  for (int c = 0; c < static_cast<int>(table.columns.size()); ++c) {
    const Table::Column& column = table.columns[static_cast<size_t>(c)];
    if (numbers_only && column.kind == Table::Kind::Text) continue;
    button->menu()->addAction(text(column.name), this, [this, chosen, c] {
      *chosen = c;
      showPlot();
    });
  }
}

void QueryPanel::exportTable() {
  try {
    if (const QString written = ask_and_write(this, tr("query.csv"), model_.table()); !written.isEmpty()) emit said(written, false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

}  // namespace ws::app
