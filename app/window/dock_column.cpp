#include "app/window/dock_column.h"

#include <algorithm>

#include "app/window/side_rail.h"

namespace ws::app {

DockColumn::DockColumn(SideRail* rail, QWidget* parent) : QSplitter(Qt::Vertical, parent), rail_(rail) {
  setHandleWidth(1);
  connect(this, &QSplitter::splitterMoved, this, [this] { dragged_ = true; });
}

void DockColumn::add(const Page& page) {
  QWidget* panel = page.widget;
  addWidget(panel);
  setStretchFactor(count() - 1, count() == 1 ? 3 : 1);
  panel->setAutoFillBackground(true);
  panel->setBackgroundRole(QPalette::Base);
  RailButton* button = rail_->add(page.title);
  button->setChecked(page.open_at_first);
  panel->setVisible(page.open_at_first);
  docks_.push_back({page, button});
  connect(button, &QAbstractButton::clicked, this, [this] { by_hand_ = true; });
  connect(button, &QAbstractButton::toggled, this, [this, panel](bool on) {
    panel->setVisible(on);
    showColumn();
  });
}

void DockColumn::showColumn() {
  setVisible(std::any_of(docks_.begin(), docks_.end(), [](const Dock& dock) { return dock.button->isChecked(); }));
  shareHeight();
}

// The first dock is a list: it gets what its rows need, at most half. The docks below share the rest: Details is always
// high enough to read.
void DockColumn::shareHeight() {
  constexpr int kLeast = 220;  // an empty list explains itself
  if (dragged_ || docks_.empty()) return;
  const auto open = std::ranges::count_if(docks_, [](const Dock& dock) { return dock.button->isChecked(); });
  const bool list = docks_.front().button->isChecked();
  const int first = !list ? 0 : open == 1 ? height() : std::clamp(docks_.front().page.widget->sizeHint().height(), kLeast, std::max(kLeast, height() / 2));
  const int each = (height() - first) / std::max<int>(1, static_cast<int>(open) - (list ? 1 : 0));
  QList<int> sizes{first};
  for (size_t i = 1; i < docks_.size(); ++i) sizes << (docks_[i].button->isChecked() ? each : 0);
  setSizes(sizes);
}

void DockColumn::resizeEvent(QResizeEvent* event) {
  QSplitter::resizeEvent(event);
  if (event->size().height() != event->oldSize().height()) shareHeight();
}

void DockColumn::showRuns(const std::vector<Run*>& runs) {
  for (const Dock& dock : docks_)
    if (dock.page.show_runs) dock.page.show_runs(runs);
  shareHeight();
}

RailButton* DockColumn::button(const QString& name) const {
  for (const Dock& dock : docks_)
    if (dock.page.dock == name) return dock.button;
  return nullptr;
}

QStringList DockColumn::openDocks() const {
  QStringList open;
  for (const Dock& dock : docks_)
    if (dock.button->isChecked()) open << dock.page.dock;
  return open;
}

void DockColumn::setOpenDocks(const QStringList& docks) {
  for (const Dock& dock : docks_) dock.button->setChecked(docks.contains(dock.page.dock));
}

void DockColumn::fold(bool folded) {
  if (by_hand_) return;
  for (const Dock& dock : docks_)
    if (dock.page.open_at_first) dock.button->setChecked(!folded);
}

}  // namespace ws::app
