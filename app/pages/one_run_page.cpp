#include "app/pages/one_run_page.h"

#include <QMenu>
#include <QPushButton>

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
  Page page;
  page.title = title, page.widget = widget, page.picker = picker;
  page.suits = std::move(suits);
  page.show_runs = [&workspace, menu, take](const std::vector<Run*>& runs) {
    menu->clear();
    for (Run* run : runs)
      menu->addAction(badge_icon(run->slot), title_among(*run, {runs.begin(), runs.end()}), menu,
                      [&workspace, run] { workspace.pick(run); });
    take(workspace.shownRun());
  };
  return page;
}

}  // namespace ws::app
