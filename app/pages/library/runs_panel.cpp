#include "app/pages/library/runs_panel.h"

#include <QAction>
#include <QDesktopServices>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QPushButton>
#include <QStackedWidget>
#include <QStyledItemDelegate>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>

#include "app/pages/library/library_model.h"
#include "app/pages/library/run_actions.h"
#include "app/text/units.h"
#include "app/widgets/labels.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/closing_line.h"
#include "app/workspace/library_jobs.h"
#include "app/workspace/run_library.h"
#include "app/workspace/shipped_runs.h"

namespace ws::app {
namespace {

constexpr int kBoxWidth = 50;  // of a row: its box and its letter

constexpr size_t kMostNamed = 3;

// What the choices differ in, old → new: from the baseline's choices, else from the plain preset of the data.
QString choices_line(const Run& run, const Run* baseline, size_t most) {
  const bool beside = baseline && baseline != &run && comparable(*baseline, run);
  const RunSpec& from = beside ? baseline->spec : plain_choices(run.spec);
  if (const QString changes = changes_between(from, run.spec, most); !changes.isEmpty()) return changes;
  return beside ? QObject::tr("same settings as %1").arg(run_letter(baseline->slot))
                : QObject::tr("as preset %1").arg(QString::fromStdString(data_label(run.spec.data)));
}

}  // namespace

QString second_line(const Run& run, const Run* baseline, const QFontMetricsF& metrics, double width) {
  const auto line = [&](size_t changes, bool time) {
    QStringList parts;
    // "finished" is the normal state and is not shown.
    if (const QString state = status_text(run); !run.shipped && state != QObject::tr("finished")) parts << state;
    if (run.hasChoices() && !run.lab) parts << choices_line(run, baseline, changes);
    if (!run.tags.isEmpty()) parts << run.tags.join(", ");
    if (time && run.created.isValid()) parts << run.created.toString("HH:mm");
    return parts.join(QString::fromUtf8(" · "));
  };
  for (size_t changes = kMostNamed; changes > 0; --changes)
    for (const bool time : {true, false})
      if (const QString whole = line(changes, time); metrics.horizontalAdvance(whole) <= width) return whole;
  return metrics.elidedText(line(1, false), Qt::ElideRight, width);
}

namespace {

class RunDelegate : public QStyledItemDelegate {
 public:
  RunDelegate(const RunLibrary* library, QObject* parent) : QStyledItemDelegate(parent), library_(library) {}

  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const override {
    return {100, index.data(RunsModel::HeadingRole).toString().isEmpty() ? 38 : 22};
  }

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Theme& t = theme();
    painter->save();
    const QString heading = index.data(RunsModel::HeadingRole).toString();
    if (!heading.isEmpty()) {
      painter->fillRect(option.rect, t.header);
      painter->setFont(ui_font(11));
      painter->setPen(t.quiet);
      painter->drawText(option.rect.adjusted(10, 0, -8, 0), Qt::AlignVCenter, heading);
    } else if (auto* run = static_cast<Run*>(index.data(RunsModel::RunRole).value<QObject*>())) {
      paintRun(*painter, option, *run, index.data().toString(), index.data(RunsModel::ShortNameRole).toString(), static_cast<ShownAs>(index.data(RunsModel::RoleRole).toInt()));
    }
    painter->restore();
  }

 private:
  const RunLibrary* library_;

  static void paintCheck(QPainter& painter, const QRectF& box, bool on) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(on ? theme().primary : theme().field_outline, 1));
    painter.setBrush(on ? theme().primary : theme().input);
    painter.drawRoundedRect(box, 3, 3);
    if (on) theme_icon("check", Qt::white).paint(&painter, box.toRect().adjusted(1, 1, 0, 0));
  }

  // The current run is one of all rows: a ring, where the compared runs have ticks.
  static void paintRing(QPainter& painter, const QRectF& box) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme().focus, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(box);
    painter.setBrush(theme().focus);
    painter.drawEllipse(box.adjusted(4, 4, -4, -4));
  }

  // Returns its left edge.
  static double paintRole(QPainter& painter, double right, double top, ShownAs role) {
    const QString name = role == ShownAs::Current    ? QObject::tr("current")
                         : role == ShownAs::Baseline ? QObject::tr("baseline")
                                                     : QString();
    if (name.isEmpty()) return right;
    painter.save();
    painter.setFont(ui_font(10.5));
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(name) + 12;
    const QRectF pill(right - width, top, width, 14);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(role == ShownAs::Current ? theme().focus : theme().strong_border, 1));
    painter.drawRoundedRect(pill.adjusted(.5, .5, -.5, -.5), 6.5, 6.5);
    painter.setPen(role == ShownAs::Current ? theme().text : theme().secondary);
    painter.drawText(pill, Qt::AlignCenter, name);
    painter.restore();
    return pill.left();
  }

  void paintRun(QPainter& painter, const QStyleOptionViewItem& option, const Run& run, const QString& name, const QString& short_name, ShownAs role) const {
    const Theme& t = theme();
    const QRectF r = option.rect;
    const bool selected = option.state & QStyle::State_Selected;
    const QColor back = selected ? t.selected_row : option.state & QStyle::State_MouseOver ? t.header : t.base;
    painter.fillRect(r, back);
    painter.fillRect(QRectF(r.left(), r.bottom(), r.width(), 1), t.grid);
    const QRectF box(r.left() + 10.5, r.top() + 12.5, 13, 13);
    role == ShownAs::Current ? paintRing(painter, box) : paintCheck(painter, box, role != ShownAs::Nothing);
    if (role == ShownAs::Current) painter.fillRect(QRectF(r.left(), r.top(), 3, r.height()), t.focus);
    draw_badge(painter, QRectF(r.left() + 32, r.top() + 11.5, 15, 15), run.slot >= 0 ? run.slot : run.letter, run.slot >= 0);
    const bool steps = !run.lab;  // a sweep has none
    const QStringList time = step_time_text(run.stepUs()).split(' ');
    const QString value = steps ? time.front() : QString();
    painter.setFont(ui_font(12.5, 600));
    painter.setPen(t.text);
    const double value_width = steps ? std::max(46.0, number_width(painter.font(), value) + 6) : 0;
    draw_number(painter, QRectF(r.right() - value_width - 10, r.top() + 3, value_width, 17),
                Qt::AlignRight | Qt::AlignVCenter, value);
    painter.setFont(ui_font(12.5, 500));
    const QRectF title(r.left() + 55, r.top() + 3, r.width() - 55 - value_width - 14, 17);
    painter.drawText(title, Qt::AlignVCenter,
                     QFontMetricsF(painter.font()).elidedText(QFontMetricsF(painter.font()).horizontalAdvance(name) <= title.width() ? name : short_name, Qt::ElideRight, title.width()));
    painter.setFont(ui_font(11));
    painter.setPen(selected ? t.secondary : t.quiet);
    painter.drawText(QRectF(r.right() - 70, r.top() + 19, 60, 15), Qt::AlignRight | Qt::AlignVCenter,
                     steps && time.size() > 1 ? QObject::tr("%1/step").arg(time.back()) : QString());
    double x = r.left() + 55;
    if (run.live()) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(t.focus);
      painter.drawEllipse(QPointF(x + 3, r.top() + 27), 3, 3);
      painter.setPen(selected ? t.secondary : t.quiet);
      x += 10;
    }
    const double unit = steps ? 58 : 10, pill = paintRole(painter, r.right() - unit, r.top() + 20, role);
    const QRectF under(x, r.top() + 19, pill - 6 - x, 15);
    painter.drawText(under, Qt::AlignVCenter, second_line(run, library_->baseline(), QFontMetricsF(painter.font()), under.width()));
    if (option.state & QStyle::State_HasFocus && selected) {
      painter.setPen(QPen(t.focus, 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(r.adjusted(1, 1, -1, -1));
    }
  }
};

// A click on the box compares a run, or no longer; the current run stays. A click beside it makes the run current.
class RunList : public QListView {
 public:
  using QListView::QListView;

 protected:
  void mousePressEvent(QMouseEvent* event) override {
    const QModelIndex index = indexAt(event->position().toPoint());
    const bool box = event->position().x() < visualRect(index).left() + kBoxWidth;
    if (event->button() != Qt::LeftButton || !box || !(index.flags() & Qt::ItemIsUserCheckable))
      return QListView::mousePressEvent(event);
    const bool on = index.data(Qt::CheckStateRole).toInt() == Qt::Checked;
    model()->setData(index, on ? Qt::Unchecked : Qt::Checked, Qt::CheckStateRole);
  }
};

}  // namespace

RunsPanel::RunsPanel(RunLibrary* library, LibraryJobs* jobs, QWidget* parent)
    : QWidget(parent),
      library_(library),
      jobs_(jobs),
      model_(new RunsModel(library, this)),
      view_(new RunList(this)),
      pages_(new QStackedWidget(this)) {
  style_ground(*this, "panel");
  view_->setModel(model_);
  view_->setItemDelegate(new RunDelegate(library, view_));
  view_->setAccessibleName(tr("Runs"));
  view_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  view_->setMouseTracking(true);
  view_->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(view_, &QWidget::customContextMenuRequested, this, &RunsPanel::showMenu);
  connect(model_, &QAbstractItemModel::modelReset, this, &RunsPanel::selectCurrent);
  connect(view_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& index) {
    if (Run* run = model_->run(index); run && !restoring_) emit picked(run);
  });
  auto* remove = new QAction(tr("Delete the current run"), view_);
  remove->setShortcut(QKeySequence::Delete);
  remove->setShortcutContext(Qt::WidgetShortcut);
  connect(remove, &QAction::triggered, this, [this] {
    if (Run* run = current()) library_->remove(run);
  });
  view_->addAction(remove);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(buildHeader());
  filter_ = buildFilter();
  column->addWidget(filter_);
  pages_->addWidget(view_);
  pages_->addWidget(buildEmpty());
  column->addWidget(pages_, 1);
  footer_ = new QWidget(this);
  style_ground(*footer_, "footer");
  auto* row = new QHBoxLayout(footer_);
  row->setContentsMargins(10, 7, 10, 7);
  auto* open = new QPushButton(theme_icon("folder"), tr("Open a run file…"), footer_);
  connect(open, &QPushButton::clicked, this, &RunsPanel::openFile);
  row->addWidget(open);
  column->addWidget(footer_);
  column->addWidget(undo_ = buildUndo());
  connect(library_, &RunLibrary::changed, this, &RunsPanel::refresh);
  refresh();
}

// Appears under the list while a deleted run can be restored.
QWidget* RunsPanel::buildUndo() {
  auto* bar = new QWidget(this);
  style_ground(*bar, "footer");
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(10, 5, 10, 5);
  removed_ = new QLabel(bar);
  removed_->setMinimumWidth(0);
  removed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  auto* undo = new QPushButton(theme_icon("undo"), tr("Undo"), bar);
  undo->setProperty("small", true);
  connect(undo, &QPushButton::clicked, this, [this] { library_->undoRemove(); });
  row->addWidget(removed_, 1);
  row->addWidget(undo);
  return bar;
}

QWidget* RunsPanel::buildHeader() {
  auto* header = new QWidget(this);
  style_ground(*header, "header");
  header->setFixedHeight(28);
  auto* row = new QHBoxLayout(header);
  row->setContentsMargins(10, 0, 6, 0);
  row->setSpacing(6);
  auto* title = label(header, ui_font(12.5, 600), {.wraps = false}, tr("Runs"));
  count_ = new QLabel(header);
  count_->setForegroundRole(QPalette::PlaceholderText);
  auto* folder = new QToolButton(header);
  folder->setIcon(theme_icon("folder"));
  folder->setAccessibleName(tr("Open a run file"));
  folder->setToolTip(tr("Open a run file (Ctrl+O)"));
  connect(folder, &QToolButton::clicked, this, &RunsPanel::openFile);
  auto* more = new QToolButton(header);
  more->setIcon(theme_icon("more"));
  more->setAccessibleName(tr("More about the runs"));
  connect(more, &QToolButton::clicked, this,
          [this, more] { showMenu(view_->mapFromGlobal(more->mapToGlobal(QPoint(0, more->height())))); });
  row->addWidget(title);
  row->addWidget(count_);
  row->addStretch(1);
  row->addWidget(folder);
  row->addWidget(more);
  return header;
}

QWidget* RunsPanel::buildFilter() {
  auto* box = new QWidget(this);
  auto* row = new QHBoxLayout(box);
  row->setContentsMargins(8, 6, 8, 6);
  row->setSpacing(6);
  auto* edit = new QLineEdit(box);
  edit->setPlaceholderText(tr("Filter runs"));
  edit->setAccessibleName(tr("Filter runs"));
  edit->setClearButtonEnabled(true);
  connect(edit, &QLineEdit::textChanged, model_, &RunsModel::setFilter);
  auto* order = option_button(tr("Order of the runs"), box);
  order->setText(tr("By data set"));
  auto* menu = new QMenu(order);
  const std::pair<RunOrder, QString> orders[] = {{RunOrder::DataSet, tr("By data set")},
                                                 {RunOrder::Newest, tr("Newest")},
                                                 {RunOrder::Fastest, tr("Fastest")},
                                                 {RunOrder::Accuracy, tr("Most accurate")},
                                                 {RunOrder::Name, tr("Name")}};
  for (const auto& [value, name] : orders)
    connect(menu->addAction(name), &QAction::triggered, this, [this, order, value = value, name = name] {
      order->setText(name);
      model_->setOrder(value);
    });
  order->setMenu(menu);
  row->addWidget(edit, 1);
  row->addWidget(order);
  return box;
}

QWidget* RunsPanel::buildEmpty() {
  auto* page = new QWidget(this);
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(28, 0, 28, 60);
  column->addStretch(1);
  const auto add = [column](QLabel* line) {
    line->setAlignment(Qt::AlignCenter);
    column->addWidget(line);
  };
  add(label(page, ui_font(12.5, 600), {.wraps = false}, tr("No runs yet")));
  add(label(page, ui_font(11.5), {.quiet = true}, tr("Every run is kept here. Click a run to see it, tick others to compare them with it.")));
  column->addStretch(1);
  return page;
}

// Also after a filter or another order: the row of the current run is selected, whatever the list did.
void RunsPanel::selectCurrent() {
  const bool before = std::exchange(restoring_, true);
  view_->setCurrentIndex(model_->indexOf(library_->current()));
  restoring_ = before;
}

QSize RunsPanel::sizeHint() const {
  int rows = 0;
  for (int i = 0; i < model_->rowCount(); ++i) rows += view_->sizeHintForRow(i);
  const int frame = height() - pages_->height();  // title, filter and footer
  return {QWidget::sizeHint().width(), std::max(frame, 0) + rows};
}

Run* RunsPanel::current() const { return model_->run(view_->currentIndex()); }

void RunsPanel::fillMenu(QMenu& menu, Run* run) {
  menu.addAction(run->slot >= 0 ? tr("Do not compare") : tr("Compare too"), this,
                 [this, run] { library_->setTicked(run, run->slot < 0); });
  menu.addAction(tr("Compare with this run only"), this, [this, run] { library_->selection().compareWith(run->handle); })
      ->setEnabled(run != library_->current());
  menu.addAction(tr("Make it the baseline"), this, [this, run] { library_->selection().setBaseline(run->handle); })
      ->setEnabled(run != library_->current());
  menu.addAction(tr("Show only this"), this, [this, run] { library_->tickOnly({run}); });
  menu.addAction(tr("Use its settings"), this, [this, run] { emit useChoices(run); });
  auto* change = menu.addMenu(tr("Train again with one change"));
  fill_change_menu(*change, *run, [this](const RunSpec& spec, const QString& title) { emit trainWanted(spec, title); });
  menu.addAction(tr("Run the same in PyTorch"), this, [this, run] { emit torchWanted(run->spec); })
      ->setEnabled(run->origin != RunOrigin::Imported);
  menu.addSeparator();
  menu.addAction(tr("Rename…"), this, [this, run] { ask_title(this, *library_, run); });
  menu.addAction(tr("Tags…"), this, [this, run] { ask_tags(this, *library_, {run}); });
  menu.addAction(tr("Notes…"), this, [this, run] { ask_note(this, *library_, run); });
  menu.addAction(tr("Export…"), this, [this, run] { ask_export(this, *jobs_, {run}); });
  menu.addAction(run->shipped ? tr("Remove from the list") : tr("Delete"), this, [this, run] { library_->remove(run); })
      ->setEnabled(!run->live() && !run->elsewhere);
  menu.addSeparator();
}

void RunsPanel::showMenu(const QPoint& at) {
  Run* run = model_->run(view_->indexAt(at).isValid() ? view_->indexAt(at) : view_->currentIndex());
  QMenu menu(this);
  if (run) fillMenu(menu, run);
  menu.addAction(tr("Show no run"), this, [this] { library_->tickOnly({}); });
  menu.addAction(tr("Open a run file…"), this, &RunsPanel::openFile);
  menu.addAction(tr("Show the folder"), this,
                 [this] { QDesktopServices::openUrl(QUrl::fromLocalFile(library_->folder())); });
  menu.exec(view_->viewport()->mapToGlobal(at));
}

void RunsPanel::refresh() {
  restoring_ = true;
  model_->reload();
  restoring_ = false;
  selectCurrent();
  const auto total = library_->runs().size(), ticked = library_->ticked().size();
  count_->setText(ticked < 2 ? QString::number(total) : tr("%1 · %2 compared").arg(total).arg(ticked));
  pages_->setCurrentIndex(total == 0 ? 1 : 0);
  footer_->setVisible(total == 0);
  filter_->setVisible(total != 0);
  undo_->setVisible(!library_->trash().empty());
  removed_->setText(tr("Deleted “%1”").arg(library_->trash().lastTitle()));
}

}  // namespace ws::app
