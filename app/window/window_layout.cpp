// What the bars of the window say, how it adapts to its size, and what it remembers.
#include <QApplication>
#include <QPainter>
#include <QPlainTextEdit>
#include <QSettings>
#include <QSplitter>
#include <QTabBar>
#include <QThreadPool>
#include <nlohmann/json.hpp>

#include "app/pages/setup/setup_panel.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/pages/live/live_page.h"
#include "app/window/main_window.h"
#include "app/window/notice_bar.h"
#include "app/window/side_rail.h"
#include "app/window/start_page.h"
#include "app/window/status_line.h"
#include "app/window/top_bar.h"
#include "profiling/analysis/trace_stats.h"

namespace ws::app {
namespace {

QString what_is_missing(const prof::Losses& losses) { return QString::fromStdString(prof::losses_text(losses)); }

constexpr int kCompactBelow = 1500;

// The device, with a dot, in the corner of the menu bar.
class DeviceCorner : public QWidget {
 public:
  explicit DeviceCorner(QWidget* parent) : QWidget(parent) { setFixedHeight(26); }
  void show(const QString& text, bool good) {
    text_ = text, good_ = good;
    setAccessibleName(QObject::tr("Device"));
    setAccessibleDescription(text);
    setToolTip(text);
    setFixedWidth(static_cast<int>(QFontMetricsF(ui_font(12)).horizontalAdvance(text)) + 30);
    update();
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), theme().header);
    painter.fillRect(QRect(0, height() - 1, width(), 1), theme().border);
    painter.setPen(Qt::NoPen);
    painter.setBrush(good_ ? theme().better : theme().quiet);
    painter.drawEllipse(QPointF(8, height() / 2.0), 3.5, 3.5);
    painter.setFont(ui_font(12));
    painter.setPen(theme().secondary);
    painter.drawText(QRect(18, 0, width() - 18, height()), Qt::AlignVCenter, text_);
  }

 private:
  QString text_;
  bool good_ = false;
};

QString device_text(const DeviceInfo* info, bool compact) {
  if (!info) return QObject::tr("looking for a GPU…");
  const QString name = QString::fromStdString(info->name);
  if (!info->cuda)
    return compact ? QObject::tr("no GPU · CPU")
                   : QObject::tr("no GPU, training on the CPU · %1 threads").arg(info->cpu_threads);
  if (compact) return name;
  return QObject::tr("%1 · %2 SMs · %3 · driver %4 · CUDA %5")
      .arg(name)
      .arg(info->multiprocessors)
      .arg(bytes_text(static_cast<double>(info->memory_bytes)), QString::fromStdString(info->driver),
           QString::fromStdString(info->runtime));
}

}  // namespace

// Waking a driver takes long: the window is shown first.
void MainWindow::lookForDevice() {
  device_ = new DeviceCorner(menuBar());
  showDevice();
  QThreadPool::globalInstance()->start([this, guard = QPointer<MainWindow>(this)] {
    const DeviceInfo* info = &device_info();
    QMetaObject::invokeMethod(qApp, [guard, info] {
      if (!guard) return;
      guard->info_ = info;
      guard->session_.setCuda(info->cuda);
      guard->showDevice();
      guard->setup_->setCuda(info->cuda);
      guard->start_->setDevice(info);
      guard->refreshBars();
      for (const auto& then : std::exchange(guard->waiting_, {})) then();
    });
  });
}

void MainWindow::whenDevice(std::function<void()> then) {
  if (info_) return then();
  waiting_.push_back(std::move(then));
}

void MainWindow::showDevice() {
  if (!device_) return;
  static_cast<DeviceCorner*>(device_)->show(device_text(info_, compact_), info_ && info_->cuda);
  device_->move(width() - device_->width(), 0);
  device_->raise();
}

void MainWindow::refreshBars() {
  const Run* run = shownRun();
  bar_->showRun(run, session_.busy(), session_.paused(), static_cast<int>(session_.waiting()));
  std::vector<StatusPart> parts;
  if (const QString work = library_.work(); !work.isEmpty()) parts.push_back({work, false});
  QString state = info_ && info_->cuda ? tr("Ready · %1").arg(QString::fromStdString(info_->name)) : tr("Ready · CPU");
  QColor dot = theme().better;
  if (session_.busy() && run) {
    const Progress p = run->progress.value_or(Progress{});
    state = tr("%1 %2 · epoch %3 of %4 · %5 elapsed")
                .arg(session_.paused() ? tr("Paused") : tr("Training"), QString(run_letter(std::max(0, run->slot))),
                     count_text(p.epoch), count_text(p.epochs), duration_text(p.elapsed_s));
    dot = session_.paused() ? theme().quiet : theme().focus;
  }
  if (run && run->trace.span_count() > 0) {
    const auto& losses = run->trace.losses;
    parts.push_back({tr("records %1 · %2 dropped")
                         .arg(count_text(static_cast<int64_t>(run->trace.span_count() + losses.evicted_spans)),
                              count_text(static_cast<int64_t>(losses.dropped_records))),
                     losses.dropped_records > 0});
    if (const QString wrong = what_is_missing(losses); !wrong.isEmpty()) parts.push_back({wrong, true});
    parts.push_back({tr("history %1").arg(bytes_text(static_cast<double>(run->trace.resident_bytes()))), false});
  }
  if (run && run->overheadSeen())
    parts.push_back({tr("tracing costs at least %1 µs a step (%2 %)")
                         .arg(us_text(run->usPerStep() * run->overhead_share / (1 + run->overhead_share)))
                         .arg(run->overhead_share * 100, 0, 'f', 1),
                     false});
  if (run && !run->counters_note.isEmpty()) parts.push_back({run->counters_note, run->counters_note.startsWith("No ")});
  status_->setState(state, dot);
  status_->setParts(std::move(parts));
  status_->setKeys(live_->isVisible()
                       ? tr("A pan pauses Follow · [W] [S] zoom · [A] [D] pan · drag sums a range · [?] keys")
                       : tr("[Ctrl R] trains with the choices on the left · [?] keys"));
}

void MainWindow::setCompact(bool compact) {
  compact_ = compact;
  bar_->setCompact(compact);
  live_->setCompact(compact);
  setup_->setCompact(compact);
  const bool fold = compact && !library_.ticked().empty();
  if (!sides_by_hand_)
    for (const Side& side : sides_)
      if (side.name == tr("Runs") || side.name == tr("Details")) side.button->setChecked(!fold);
  columns_->setSizes({compact ? 284 : 312, width() - (compact ? 284 + 214 : 312 + 296), compact ? 214 : 296});
  showDevice();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  const bool compact = event->size().width() < kCompactBelow;
  if (compact != compact_ || !event->oldSize().isValid()) setCompact(compact);
  if (device_) showDevice();
}

void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) refreshBars();
}

void MainWindow::toggleTheme() {
  const ThemeName name = theme().dark() ? ThemeName::Light : ThemeName::Dark;
  set_theme(*qApp, name);
  QSettings().setValue("theme", name == ThemeName::Dark ? "dark" : "light");
  bar_->refreshIcons();
  notice_->refreshIcon();
  start_->setDevice(info_);
  setup_->setSpec(setup_->spec());
  showRuns();
}

void MainWindow::rememberLayout() {
  QSettings settings;
  settings.setValue("window/geometry", saveGeometry());
  settings.setValue("window/columns", columns_->saveState());
  settings.setValue("window/right", right_->saveState());
  settings.setValue("window/live", live_->layoutState());
  settings.setValue("window/compact", compact_);
  settings.setValue("window/tab", tabs_->currentIndex());
  settings.setValue("window/trace", bar_->traceChoices());
  QStringList open, ticked;
  for (const Side& side : sides_)
    if (side.button->isChecked()) open << side.name;
  for (const Run* run : library_.ticked()) ticked << run->path;
  settings.setValue("window/sides", open);
  settings.setValue("session/ticked", ticked);
  for (const Kept& kept : kept_) settings.setValue("kept/" + kept.key, kept.save());
  settings.setValue("session/choices", QString::fromStdString(to_json(setup_->spec()).dump()));
}

void MainWindow::restoreLayout() {
  QSettings settings;
  if (!settings.contains("window/geometry")) return;
  restoreGeometry(settings.value("window/geometry").toByteArray());
  if (settings.value("window/compact").toBool() == (width() < kCompactBelow)) {
    columns_->restoreState(settings.value("window/columns").toByteArray());
    right_->restoreState(settings.value("window/right").toByteArray());
    live_->restoreLayout(settings.value("window/live").toByteArray());
    const QStringList open = settings.value("window/sides").toStringList();
    for (const Side& side : sides_) side.button->setChecked(open.contains(side.name));
  }
  for (const Kept& kept : kept_)
    if (const QByteArray state = settings.value("kept/" + kept.key).toByteArray(); !state.isEmpty())
      kept.restore(state);
  bar_->setTraceChoices(settings.value("window/trace").toList());
  tabs_->setCurrentIndex(settings.value("window/tab").toInt());
  try {
    const std::string choices = settings.value("session/choices").toString().toStdString();
    if (!choices.empty()) setup_->setSpec(parse_spec(choices));
  } catch (const std::exception&) {
    say(tr("The choices of the last session could not be read; the defaults are shown."), false);
  }
  std::vector<Run*> ticked;
  for (const QString& path : settings.value("session/ticked").toStringList())
    if (Run* run = library_.byPath(path)) ticked.push_back(run);
  if (!ticked.empty()) library_.tickOnly(ticked);
}

}  // namespace ws::app
