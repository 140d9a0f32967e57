#include "app/pages/one_run_page.h"

#include <QMenu>
#include <QPointer>
#include <QPushButton>
#include <algorithm>
#include <memory>

#include "app/text/units.h"
#include "app/widgets/pane.h"
#include "app/widgets/theme.h"

namespace ws::app {

Page one_run_page(Workspace& workspace, const QString& title, QWidget* widget, std::function<void(Run*)> show) {
  QPushButton* picker = option_button(QObject::tr("Run of this page"), widget);
  picker->setText(QObject::tr("No run"));
  picker->setIconSize(kBadgeBesideText);
  auto* menu = new QMenu(picker);
  picker->setMenu(menu);
  const auto take = [show = std::move(show), picker, &workspace](Run* run) {
    show(run);
    const std::vector<Run*> ticked = workspace.library()->ticked();
    const QString name = run ? title_among(*run, {ticked.begin(), ticked.end()}) : QString();
    picker->setText(run ? name : QObject::tr("No run"));
    picker->setAccessibleDescription(run ? run_letter(run->slot) + " " + name : QString());
    picker->setIcon(run ? badge_icon(run->slot) : QIcon());
  };
  const auto chosen = std::make_shared<QPointer<Run>>();
  Page page;
  page.title = title, page.widget = widget, page.picker = picker;
  const auto show_runs = [&workspace, menu, take, chosen](const std::vector<Run*>& runs) {
    menu->clear();
    for (Run* run : runs)
      menu->addAction(badge_icon(run->slot), title_among(*run, {runs.begin(), runs.end()}), menu, [take, chosen, run] { *chosen = run, take(run); });
    for (Run* run : {chosen->data(), workspace.shownRun()})
      if (run && std::find(runs.begin(), runs.end(), run) != runs.end()) return take(run);
    take(runs.empty() ? nullptr : runs.front());
  };
  page.show_runs = show_runs;
  QObject::connect(&workspace, &Workspace::picked, widget, [&workspace, widget, show_runs, chosen] {
    chosen->clear();
    if (widget->isVisible()) show_runs(workspace.library()->ticked());
  });
  return page;
}

}  // namespace ws::app
