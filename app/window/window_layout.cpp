#include "app/window/window_layout.h"

#include <QAbstractButton>
#include <QEvent>
#include <QGuiApplication>
#include <QMainWindow>
#include <QScreen>
#include <QSettings>
#include <QSplitter>
#include <algorithm>

#include "app/window/dock_column.h"
#include "app/window/tab_strip.h"
#include "app/window/top_bar.h"
#include "app/workspace/shipped_runs.h"

namespace ws::app {
namespace {

constexpr int kCompactBelow = 1600, kFoldsSetupBelow = 1900, kFrame = 30;  // height of a title bar
constexpr QSize kLeast(1100, 680), kUsualSize(1600, 960);

QString settings_key(const Remembered& kept) { return (kept.layout ? "window/" : "kept/") + kept.key; }

}  // namespace

QSize fitting(QSize wanted, QSize screen) { return wanted.boundedTo(screen - QSize(0, kFrame)); }

WindowLayout::WindowLayout(Workspace& workspace, const Parts& parts, const AllPages& pages)
    : QObject(parts.window), workspace_(workspace), parts_(parts) {
  parts_.columns->setSizes({312, 1200, 296});  // Setup is folded until there is a run
  parts_.columns->setStretchFactor(1, 1);
  parts_.columns->installEventFilter(this);
  connect(parts_.columns, &QSplitter::splitterMoved, this, [this] { kept_widths_ = true; });
  connect(parts_.setup, &QAbstractButton::clicked, this, [this] { chose_setup_ = chose_setup_ || placeOf(tab_) == kUsual; });
  for (const Page& page : pages.tabs) folds_setup_.push_back(!page.beside_setup);
  connect(parts_.strip->pages(), &QTabBar::currentChanged, this, &WindowLayout::showTab);
  for (const Page* page : pages.each()) {
    remembered_.insert(remembered_.end(), page->remembered.begin(), page->remembered.end());
    if (page->set_compact) set_compact_.push_back(page->set_compact);
  }
}

void WindowLayout::fitScreen() {
  const QScreen* screen = parts_.window->screen();
  // The offscreen platform has no real screen.
  const bool real = screen && QGuiApplication::platformName() != "offscreen";
  const QSize space = real ? screen->availableSize() : QSize(1 << 14, 1 << 14);
  parts_.window->setMinimumSize(fitting(kLeast, space));
  parts_.window->resize(fitting(kUsualSize, space));
}

bool WindowLayout::narrow() const { return parts_.window->width() < kCompactBelow; }

void WindowLayout::resized(bool first) {
  if (first || narrow() != compact_) setCompact(narrow());
}

// Docks keep their widths until the user drags them. The pages get the remaining width.
bool WindowLayout::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::Resize && !kept_widths_)
    // Queued: the columns need their new size first.
    QMetaObject::invokeMethod(this, &WindowLayout::shareWidth, Qt::QueuedConnection);
  return QObject::eventFilter(object, event);
}

void WindowLayout::setCompact(bool compact) {
  compact_ = compact;
  parts_.bar->setCompact(compact);
  for (const auto& set : set_compact_) set(compact);
  parts_.docks->fold(compact);
  shareWidth();
  emit compactChanged(compact);
}

void WindowLayout::showTab(int tab) {
  if (tab < 0 || tab == tab_ || tab != parts_.strip->pages()->currentIndex()) return;
  setup_open_[placeOf(tab_)] = parts_.setup->isChecked();
  tab_ = tab;
  foldSetup();
}

void WindowLayout::foldSetup() {
  const auto kept = setup_open_.find(placeOf(tab_));
  if (kept != setup_open_.end())
    parts_.setup->setChecked(kept->second);
  else if (parts_.window->width() < kFoldsSetupBelow && placeOf(tab_) != kUsual)
    parts_.setup->setChecked(false);
}

void WindowLayout::offerSetup(bool open) {
  if (chose_setup_) return;
  setup_open_[kUsual] = open;
  if (placeOf(tab_) == kUsual) parts_.setup->setChecked(open);
}

void WindowLayout::shareWidth() {
  const int left = compact_ ? 284 : 312, right = compact_ ? 214 : 296;
  parts_.columns->setSizes({left, parts_.columns->width() - left - right, right});
}

void WindowLayout::remember() {
  QSettings settings;
  settings.setValue("window/geometry", parts_.window->saveGeometry());
  settings.setValue("window/columns", parts_.columns->saveState());
  settings.setValue("window/right", parts_.docks->heights());
  settings.setValue("window/compact", compact_);
  settings.setValue("window/page", parts_.strip->nameOf(parts_.strip->pages()->currentIndex()));
  settings.setValue("window/trace_level", parts_.bar->traceChoices());
  settings.setValue("window/sides", parts_.docks->openDocks());
  setup_open_[placeOf(tab_)] = parts_.setup->isChecked();
  if (chose_setup_) settings.setValue("window/setup", setup_open_[kUsual]);
  for (const Remembered& kept : remembered_) settings.setValue(settings_key(kept), kept.save());
  rememberRuns();
}

void WindowLayout::rememberRuns() const {
  QSettings settings;
  QStringList ticked;
  for (const Run* run : workspace_.library()->ticked()) ticked << run->path;
  settings.setValue("session/ticked", ticked);
  settings.setValue("session/choices", QString::fromStdString(spec_text(workspace_.choices()->spec())));
}

void WindowLayout::restore() {
  const QSettings settings;
  if (!settings.contains("window/geometry")) return;
  parts_.window->restoreGeometry(settings.value("window/geometry").toByteArray());
  if (settings.value("window/compact").toBool() == narrow()) restoreSizes();
  chose_setup_ = settings.contains("window/setup");
  if (chose_setup_) parts_.setup->setChecked(settings.value("window/setup").toBool());
  restorePages(false);
  parts_.bar->setTraceChoices(settings.value("window/trace_level").toList());
  if (const QString page = settings.value("window/page").toString(); !page.isEmpty())
    parts_.strip->open(std::max(0, parts_.strip->pageNamed(page)));
  restoreRuns();
}

void WindowLayout::restoreSizes() {
  const QSettings settings;
  kept_widths_ = true;
  parts_.columns->restoreState(settings.value("window/columns").toByteArray());
  parts_.docks->restoreHeights(settings.value("window/right").toByteArray());
  restorePages(true);
  parts_.docks->setOpenDocks(settings.value("window/sides").toStringList());
}

void WindowLayout::restorePages(bool layout) {
  const QSettings settings;
  for (const Remembered& kept : remembered_)
    if (const QByteArray state = settings.value(settings_key(kept)).toByteArray();
        kept.layout == layout && !state.isEmpty())
      kept.restore(state);
}

void WindowLayout::restoreRuns() {
  const QSettings settings;
  try {
    const std::string choices = settings.value("session/choices").toString().toStdString();
    if (!choices.empty()) workspace_.choices()->setSpec(parse_spec(choices));
  } catch (const std::exception&) {
    workspace_.say(tr("The settings of the last session could not be read; the defaults are shown."), false);
  }
  std::vector<Run*> ticked;
  RunLibrary* library = workspace_.library();
  for (const QString& path : settings.value("session/ticked").toStringList())
    if (Run* run = is_shipped(path) ? library->open(path) : library->byPath(path)) ticked.push_back(run);
  if (!ticked.empty()) workspace_.library()->tickOnly(ticked);
}

}  // namespace ws::app
