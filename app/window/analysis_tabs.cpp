#include "app/window/analysis_tabs.h"

#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QSplitter>

#include "app/widgets/command_palette.h"
#include "app/pages/details/details_panel.h"
#include "app/pages/kernels/kernels_panel.h"
#include "app/pages/memory/memory_map_panel.h"
#include "app/pages/plan/plan_panel.h"
#include "app/pages/roofline/roofline_panel.h"
#include "app/widgets/theme.h"
#include "app/pages/weights/weights_panel.h"
#include "app/window/main_window.h"

namespace ws::app {
namespace {

// A page about one run, with a button in the toolbar that picks it among the ticked ones.
template <class Page>
int add_page(MainWindow& window, const QString& name, Page* page) {
  auto* picker = option_button(QObject::tr("Run of this page"), &window);
  picker->setText(QObject::tr("No run"));
  auto* menu = new QMenu(picker);
  picker->setMenu(menu);
  const auto show = [page, picker](Run* run) {
    page->setRun(run);
    picker->setText(run ? QString(run_letter(run->slot)) + "  " + run->title : QObject::tr("No run"));
  };
  const auto chosen = std::make_shared<QPointer<Run>>();
  return window.addTab(
      name, page,
      [menu, show, chosen](const std::vector<Run*>& runs) {
        menu->clear();
        for (Run* run : runs)
          menu->addAction(QString(run_letter(run->slot)) + "  " + run->title, menu,
                          [show, chosen, run] { *chosen = run, show(run); });
        const bool still = std::find(runs.begin(), runs.end(), chosen->data()) != runs.end();
        show(still ? chosen->data() : runs.empty() ? nullptr : runs.front());
      },
      false, picker);
}

AskTrainer trainer_of(MainWindow& window) {
  return [&window](const Run& run, std::function<void(Executor&)> question) {
    TrainControl* control = window.session()->control();
    if (!control || window.session()->run() != &run || !run.live()) return false;
    control->ask(std::move(question));
    return true;
  };
}

}  // namespace

void add_analysis(MainWindow& window) {
  Selection* selection = window.selection();
  auto* details = new DetailsPanel(selection, &window);
  window.addSidePanel(QObject::tr("Details"), details, true,
                      [details](const std::vector<Run*>& runs) { details->setRuns(runs); });
  add_page(window, QObject::tr("Plan"), new PlanPanel(selection, &window));
  auto* kernels = new KernelsPanel(selection, &window);
  add_page(window, QObject::tr("Kernels"), kernels);
  window.remember(
      "kernel_columns", [kernels] { return kernels->columns(); },
      [kernels](const QByteArray& chosen) { kernels->setColumns(chosen); });
  add_page(window, QObject::tr("Memory map"), new MemoryMapPanel(selection, &window));
  add_page(window, QObject::tr("Roofline"), new RooflinePanel(selection, &window));
  add_page(window, QObject::tr("Weights"), new WeightsPanel(trainer_of(window), &window));
  window.menu(QObject::tr("Tools"))
      ->addAction(QObject::tr("Commands…"), QKeySequence("Ctrl+Shift+P"), &window,
                  [&window] { (new CommandPalette(window.menuBar(), &window))->open(); });
}

}  // namespace ws::app
