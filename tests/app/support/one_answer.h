// What the views of a window answer to "which run is this?". There is one current run: all must name the same one.
#pragma once
#include <QLabel>
#include <QMetaObject>
#include <QPointer>
#include <QPushButton>
#include <QRegularExpression>
#include <QTabBar>
#include <map>

#include "app/pages/compare/compare_tab.h"
#include "app/pages/details/details_panel.h"
#include "app/pages/flame/flame_panel.h"
#include "app/pages/insights/insights_tab.h"
#include "app/pages/kernel_editor/kernel_panel.h"
#include "app/pages/kernels/kernels_panel.h"
#include "app/pages/library/library_tab.h"
#include "app/pages/library/runs_panel.h"
#include "app/pages/live/live_page.h"
#include "app/pages/memory/memory_map_panel.h"
#include "app/pages/multiprocessors/multiprocessors_panel.h"
#include "app/pages/plan/plan_panel.h"
#include "app/pages/ranks/ranks_panel.h"
#include "app/pages/roofline/roofline_panel.h"
#include "app/pages/setup/program_panel.h"
#include "app/pages/setup/setup_panel.h"
#include "app/pages/weights/weights_panel.h"
#include "app/pages/what_if/what_if_panel.h"
#include "app/text/units.h"
#include "app/timeline/timeline_pane.h"
#include "app/window/main_window.h"
#include "app/window/top_bar.h"

namespace ws::test {

class OneAnswer {
 public:
  explicit OneAnswer(app::MainWindow& window) : window_(window), library_(*window.workspace()->library()) {}

  // Empty if all agree; else the view that names another run, and what it names. Looks at the page in front first: it was not
  // filled again since the action. Afterwards that page is in front again.
  QString wrong() {
    current_ = library_.current(), baseline_ = library_.baseline();
    letter_ = current_ ? app::run_letter(current_->slot) : QString();
    if (current_ && current_->slot < 0) return "the current run has no letter";
    QTabBar* tabs = window_.tabs();
    const int front = tabs->currentIndex();
    if (const QString fixed = aroundThePage(); !fixed.isEmpty()) return fixed;
    if (const QString before = ofPage(); !before.isEmpty()) return "page in front: " + before;
    for (int tab = 0; tab < tabs->count(); ++tab) {
      if (!tabs->isTabEnabled(tab)) continue;
      tabs->setCurrentIndex(tab);
      if (tabs->currentIndex() != tab) return tabs->tabText(tab) + " cannot be chosen";
      if (const QString page = ofPage(); !page.isEmpty()) return page;
    }
    tabs->setCurrentIndex(front);
    return aroundThePage();
  }

 private:
  // A window has thousands of widgets: each view is looked for once.
  template <class View>
  View* find() const {
    QPointer<QObject>& known = views_[&View::staticMetaObject];
    if (!known) known = window_.findChild<View*>();
    return static_cast<View*>(known.data());
  }
  static QString named(const app::Run* run) { return run ? app::run_letter(run->slot) + " " + run->title : QString("no run"); }
  QString is(const QString& view, const app::Run* run) const { return run == current_ ? QString() : view + ": " + named(run); }

  // What stands beside every page: Runs, the header, Details and Setup.
  QString aroundThePage() const {
    for (const auto& look : {&OneAnswer::ofRuns, &OneAnswer::ofHeader, &OneAnswer::ofDetails, &OneAnswer::ofSetup})
      if (const QString wrong = (this->*look)(); !wrong.isEmpty()) return wrong;
    return {};
  }
  QString ofRuns() const {
    const auto* runs = find<app::RunsPanel>();
    for (int row = 0; row < runs->model()->rowCount(); ++row) {
      const QModelIndex index = runs->model()->index(row);
      const app::Run* run = runs->model()->run(index);
      if (!run) continue;
      const auto role = static_cast<app::ShownAs>(index.data(app::RunsModel::RoleRole).toInt());
      if ((role == app::ShownAs::Current) != (run == current_)) return "Runs, role current: " + named(run);
      if ((role == app::ShownAs::Baseline) != (run == baseline_)) return "Runs, role baseline: " + named(run);
      if ((run->slot >= 0) != library_.selection().has(run->handle)) return "Runs, letter: " + named(run);
    }
    return current_ ? is("Runs, selected row", runs->current()) : QString();
  }
  QString ofHeader() const {
    const QString said = find<app::ProgressCell>()->accessibleDescription();
    const bool right = current_ ? said.startsWith(letter_ + " ") : said.isEmpty();
    return right ? QString() : "header: " + said;
  }
  QString ofDetails() const {
    const auto* details = find<app::DetailsPanel>();
    const QString html = details->html();
    static const QRegularExpression badge(">&nbsp;([A-Z]+)&nbsp;<");
    const QRegularExpressionMatch first = badge.match(html);
    if (!first.hasMatch()) return !current_ || !details->isVisible() || !has_steps(*current_) ? QString() : QString("Details: no run");
    return first.captured(1) == letter_ ? QString() : "Details: " + first.captured(1);
  }
  static bool has_steps(const app::Run& run) { return run.split.steps > 0; }
  QString ofSetup() const {
    const bool program = window_.workspace()->shownProgram();
    if (find<app::ProgramPanel>()->isVisible() != (program && find<app::ProgramPanel>()->parentWidget()->isVisible())) return "Setup: program";
    const app::TrainingSession& session = *window_.workspace()->session();
    if (!differs_) differs_ = find<app::SetupPanel>()->findChild<QLabel*>("differs");
    const QString line = differs_->text();
    if (session.busy()) return line == "the settings of the run in training" ? QString() : "Setup: " + line;
    if (!current_ || !current_->hasChoices()) return QString();
    static const QRegularExpression of("(?:from|as) ([A-Z]+)");
    return of.match(line).captured(1) == letter_ ? QString() : "Setup: " + line;
  }

  // The page in front.
  QString ofPage() const {
    const QTabBar* tabs = window_.tabs();
    const QString name = tabs->tabText(tabs->currentIndex()).section("  ", 0, 0);
    const QString& header = window_.topBar()->currentRun()->title();
    if (header != (current_ ? current_->title : QString())) return name + ", header: " + header;
    if (name == "Overview") return ofLive();
    if (name == "Compare") return ofCompare();
    if (name == "All runs") return ofLibrary();
    if (name == "What if") return is(name, find<app::WhatIfPanel>()->run());
    if (name == "Plan" || name == "Memory") {
      if (plans_.isEmpty()) plans_ = window_.findChildren<app::PlanPanel*>();
      for (const auto* plan : plans_)
        if (plan->isVisible() && plan->run() != current_) return is(name, plan->run());
      return name == "Memory" ? is(name, find<app::MemoryMapPanel>()->run()) : QString();
    }
    if (name == "Kernel times") return is(name, find<app::KernelsPanel>()->run());
    if (name == "Ranks") return is(name, find<app::RanksPanel>()->reader().run());
    if (name == "Multiprocessors") return is(name, find<app::MultiprocessorsPanel>()->run());
    if (name == "Flame graph") return is(name, find<app::FlamePanel>()->run());
    if (name == "Roofline") return is(name, find<app::RooflinePanel>()->run());
    if (name == "Weights") return is(name, find<app::WeightsPanel>()->run());
    if (name == "Suggestions") return is(name, find<app::InsightsTab>()->run());
    if (name == "Own kernel") return is(name, find<app::KernelPanel>()->run());
    return {};
  }
  QString ofLive() const {
    if (!current_) return find<app::LivePage>()->isVisible() ? QString("Live is shown without a run") : QString();
    if (!find<app::LivePage>()->isVisible()) return "Live: the start page";
    const app::TimelineModel& timeline = *find<app::TimelinePane>()->model();
    if (timeline.runCount() != library_.ticked().size()) return QString("Timeline: %1 runs").arg(timeline.runCount());
    if (app::current_of(library_.ticked()) != current_) return is("order", app::current_of(library_.ticked()));
    if (timeline.run(timeline.leader()) != current_) return is("Timeline", timeline.run(timeline.leader()));
    return is("The network now", find<app::LivePage>()->network()->run());
  }
  QString ofCompare() const {
    const auto* compare = find<app::CompareTab>();
    if (compare->candidate() != current_) return is("Compare", compare->candidate());
    return compare->baseline() == baseline_ ? QString() : "Compare, baseline: " + named(compare->baseline());
  }
  QString ofLibrary() const {
    const auto chosen = find<app::LibraryTab>()->chosen();
    if (!current_) return {};
    return chosen.size() == 1 ? is("Library", chosen.front()) : QString("Library: %1 rows").arg(chosen.size());
  }

  app::MainWindow& window_;
  app::RunLibrary& library_;
  const app::Run *current_ = nullptr, *baseline_ = nullptr;
  QString letter_;
  mutable std::map<const QMetaObject*, QPointer<QObject>> views_;
  mutable QList<app::PlanPanel*> plans_;
  mutable QLabel* differs_ = nullptr;
};

}  // namespace ws::test
