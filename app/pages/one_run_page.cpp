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

Page one_run_page(Workspace& workspace, const QString& title, QWidget* widget, std::function<void(Run*)> show,
                  std::function<bool(const Run&)> suits) {
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
  page.suits = suits;
  const auto show_runs = [&workspace, menu, take, chosen, suits = std::move(suits)](const std::vector<Run*>& runs) {
    menu->clear();
    for (Run* run : runs)
      menu->addAction(badge_icon(run->slot), title_among(*run, {runs.begin(), runs.end()}), menu, [take, chosen, run] { *chosen = run, take(run); });
    const auto ticked = [&runs](Run* run) { return run && std::ranges::find(runs, run) != runs.end(); };
    Run* shown = workspace.shownRun();
    if (ticked(*chosen)) return take(*chosen);
    if (ticked(shown) && (!suits || suits(*shown))) return take(shown);
    if (suits)
      if (const auto first = std::ranges::find_if(runs, [&](Run* run) { return suits(*run); }); first != runs.end())
        return take(*first);
    take(ticked(shown) ? shown : runs.empty() ? nullptr : runs.front());
  };
  page.show_runs = show_runs;
  QObject::connect(&workspace, &Workspace::picked, widget, [&workspace, widget, show_runs, chosen] {
    chosen->clear();
    if (widget->isVisible()) show_runs(workspace.library()->ticked());
  });
  return page;
}

}  // namespace ws::app
